"""A worker keeps its handlers busy while a broker is told, but only where that is safe."""

from __future__ import annotations

from dataclasses import replace
from threading import Event, Thread
from threading import enumerate as list_threads
from time import monotonic
from typing import Any

import pytest

from tallystick import App
from tallystick.brokers.memory.transport import MemoryTransport, Space
from tallystick.core import splice
from tallystick.core.frame import Frame
from tallystick.core.transport import Capabilities, Delivery
from tallystick.runtime.retry import Backoff
from tallystick.runtime.settlement import Plan
from tallystick.runtime.worker import Worker

URN = "urn:babel:orders:created"
PREFETCH = 10
ACK = Plan("ack", Delivery(Frame(b"{}"), "default"), "handled")
RETRY = Plan("replace", Delivery(Frame(b"{}"), "default"), "retried", "default", Frame(b"{}"))


def open_transport(space: Space, *, buffered: bool = True, delays: bool = True) -> MemoryTransport:
    class Fake(MemoryTransport):
        capabilities: Capabilities = replace(
            MemoryTransport.capabilities, buffered=buffered, delays=delays
        )

    return Fake(space)


@pytest.mark.parametrize(
    ("buffered", "plans", "rush"),
    [
        (True, [ACK] * (PREFETCH // 2), True),
        (True, [ACK] * (PREFETCH // 2 - 1), False),
        (False, [ACK] * PREFETCH, False),
        (True, [*[ACK] * PREFETCH, RETRY], False),
    ],
)
def test_more_is_taken_first_only_when_much_is_done_well_and_taking_costs_no_round_trip(
    buffered: bool, plans: list[Plan], rush: bool
) -> None:
    execution = App("memory://", prefetch=PREFETCH)._worker("default")[0]._execution
    transport = open_transport(Space(), buffered=buffered)
    assert Worker(transport, "default", execution, Event())._is_rush(plans) is rush


def test_a_message_that_is_held_back_keeps_no_other_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    space, stopping = Space(), Event()
    monkeypatch.setattr(App, "_open", lambda _: open_transport(space, delays=False))
    app = App("memory://", backoff=Backoff(3600))

    @app.handler(URN)
    def handle(data: dict[str, Any]) -> None:
        if data["n"] == 0:
            raise ValueError("again, in an hour")
        stopping.set()

    app.publish(URN, {"n": 0})
    execution = app._worker("default")[0]._execution
    worker = Worker(open_transport(space, delays=False), "default", execution, stopping)
    thread = Thread(target=worker.run, daemon=True)
    thread.start()
    end = monotonic() + 60
    while not worker._held and monotonic() < end:
        stopping.wait(0.01)
    app.publish(URN, {"n": 1})
    thread.join(60)
    assert stopping.is_set()
    assert (worker.counts["handled"], worker.counts["retried"]) == (1, 1)


def test_a_worker_without_room_takes_part_in_its_group_and_takes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tallystick.runtime.worker._ATTEND", 0.0)
    attended = Event()

    class Log(MemoryTransport):
        capabilities: Capabilities = replace(MemoryTransport.capabilities, log=True)

        def receive(self, queue: str, limit: int, timeout: float) -> list[Delivery]:
            if not limit:
                attended.set()
                return []
            return super().receive(queue, limit, timeout)

    space, seen = Space(), list[bool]()
    monkeypatch.setattr(App, "_open", lambda _: Log(space))
    app = App("memory://", prefetch=0)

    @app.handler(URN)
    def handle(_data: dict[str, Any]) -> None:
        seen.append(attended.wait(60))

    app.publish(URN, {})
    worker = Worker(Log(space), "default", app._worker("default")[0]._execution, Event())
    worker.run(limit=1)
    assert seen == [True]
    assert worker.counts == {"handled": 1}


def test_a_worker_that_stops_stays_in_its_group_until_its_handlers_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tallystick.runtime.worker._ATTEND", 0.0)
    monkeypatch.setattr("tallystick.runtime.worker._IDLE", 0.01)
    stopping, stayed, attended = Event(), Event(), list[bool]()

    class Log(MemoryTransport):
        capabilities: Capabilities = replace(MemoryTransport.capabilities, log=True)

        def receive(self, queue: str, limit: int, timeout: float) -> list[Delivery]:
            if limit:
                return super().receive(queue, limit, timeout)
            attended.append(stopping.is_set())
            if sum(attended) > 1:  # the first may be of a turn that began before
                stayed.set()
            return []

    space, seen = Space(), list[bool]()
    monkeypatch.setattr(App, "_open", lambda _: Log(space))
    app = App("memory://", prefetch=0)

    @app.handler(URN)
    def handle(_data: dict[str, Any]) -> None:
        stopping.set()
        seen.append(stayed.wait(20))

    app.publish(URN, {})
    Worker(Log(space), "default", app._worker("default")[0]._execution, stopping).run()
    assert seen == [True]


@pytest.mark.parametrize(
    ("counts", "attempts", "handled"), [(True, 19, 1), (True, 20, 0), (False, 20, 1)]
)
def test_a_message_that_a_counting_broker_hands_out_again_and_again_is_given_up_unhandled(
    monkeypatch: pytest.MonkeyPatch, counts: bool, attempts: int, handled: int
) -> None:
    class Counting(MemoryTransport):
        capabilities: Capabilities = replace(MemoryTransport.capabilities, counts=counts)

    space, seen = Space(), list[Any]()
    monkeypatch.setattr(App, "_open", lambda _: Counting(space))
    app = App("memory://")
    app.handler(URN)(seen.append)
    app.publish(URN, {})
    broker = Counting(space)
    (delivery,) = broker.receive("default", 1, 0)
    broker.replace(delivery, "default", Frame(splice.retry(delivery.frame.body, attempts)))
    assert app.run(limit=1)["handled"] == len(seen) == handled
    assert len(broker.receive("default.dlq", 1, 0)) == 1 - handled


def test_threads_that_are_busy_are_called_no_more_often_than_there_are() -> None:
    execution = App("memory://", concurrency=3)._worker("default")[0]._execution
    worker = Worker(open_transport(Space()), "default", execution, Event())
    for _ in range(100):
        worker._hand_out([ACK.delivery] * 5)
    assert (len(worker._todo), worker._ring.qsize()) == (500, 3)


def test_a_worker_that_fails_begins_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(MemoryTransport):
        def receive(self, queue: str, limit: int, timeout: float) -> list[Delivery]:
            if begun:
                raise RuntimeError("a fault of ours")
            return super().receive(queue, limit, timeout)

    space, begun, failed = Space(), list[int](), Event()
    monkeypatch.setattr(App, "_open", lambda _: MemoryTransport(space))
    app = App("memory://")

    @app.handler(URN)
    def handle(data: dict[str, Any]) -> None:
        begun.append(data["n"])
        failed.wait(60)

    for n in range(3):
        app.publish(URN, {"n": n})
    worker = Worker(Broken(space), "default", app._worker("default")[0]._execution, Event())
    with pytest.raises(RuntimeError):
        worker.run()
    failed.set()
    for thread in list_threads():
        if thread.name == "default-0":
            thread.join(60)
    assert begun == [0]
