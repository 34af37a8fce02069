"""A worker keeps its handlers busy and its broker told, whoever has the transport."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Event, Lock, Thread, current_thread
from threading import enumerate as list_threads
from time import monotonic
from typing import Any

import pytest

from tallystick import App
from tallystick.brokers.memory.transport import MemoryTransport, Space
from tallystick.brokers.sqs.binding import BINDING
from tallystick.core.binding import project
from tallystick.core.envelope import make
from tallystick.core.frame import Frame
from tallystick.core.transport import Capabilities, Delivery
from tallystick.runtime.claims import Claim, Claims, SeenClaims
from tallystick.runtime.idempotency import MemorySeen
from tallystick.runtime.retry import Backoff
from tallystick.runtime.settlement import Plan, Rules
from tallystick.runtime.store_url import StoreUnavailable
from tallystick.runtime.worker import _BUSY, Worker

URN = "urn:babel:orders:created"


def open_transport(space: Space, *, buffered: bool = True, delays: bool = True) -> MemoryTransport:
    class Fake(MemoryTransport):
        capabilities: Capabilities = replace(
            MemoryTransport.capabilities, buffered=buffered, delays=delays
        )

    return Fake(space)


class Watched(MemoryTransport):
    """Notes which thread did what; two at a time are a fault."""

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self.users: dict[str, set[str]] = {"receive": set(), "ack": set()}
        self._one = Lock()

    def receive(self, queue: str, limit: int, timeout: float) -> list[Delivery]:
        with self._using("receive"):
            return super().receive(queue, limit, timeout)

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        with self._using("ack"):
            super().ack(deliveries)

    @contextmanager
    def _using(self, what: str) -> Iterator[None]:
        assert self._one.acquire(blocking=False), "two threads use the transport"
        self.users[what].add(current_thread().name)
        try:
            yield
        finally:
            self._one.release()


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("buffered", [True, False])
def test_a_handlers_thread_relieves_the_other_where_receiving_costs_no_round_trip(
    monkeypatch: pytest.MonkeyPatch, buffered: bool, concurrency: int
) -> None:
    space, seen = Space(), list[int]()
    transport = Watched(space)
    monkeypatch.setattr(
        Watched, "capabilities", replace(MemoryTransport.capabilities, buffered=buffered)
    )
    monkeypatch.setattr(App, "_open", lambda _: MemoryTransport(space))
    app = App("memory://", prefetch=10, concurrency=concurrency)
    app.handler(URN)(lambda data: seen.append(data["n"]))
    app.publish_all((URN, {"n": n}) for n in range(2000))
    execution = app._worker("default")[0]._execution
    worker = Worker(transport, "default", execution, Event())
    worker.run(limit=2000)
    assert sorted(seen) == list(range(2000))
    assert worker.counts == {"handled": 2000}
    for users in transport.users.values():
        assert any(name.startswith("default-") for name in users) is buffered, users


def test_a_fault_in_a_handlers_thread_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(MemoryTransport):
        def ack(self, deliveries: Sequence[Delivery]) -> None:
            if current_thread().name == "default-0":
                raise RuntimeError("a fault of ours")
            super().ack(deliveries)

    space = Space()
    monkeypatch.setattr(App, "_open", lambda _: MemoryTransport(space))
    app = App("memory://", prefetch=10)
    app.handler(URN)(lambda _: None)
    app.publish_all((URN, {"n": n}) for n in range(2000))
    worker = Worker(Broken(space), "default", app._worker("default")[0]._execution, Event())
    with pytest.raises(RuntimeError, match="a fault of ours"):
        worker.run(limit=2000)


def test_a_fault_in_a_handlers_thread_is_told_by_a_run_that_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken(MemoryTransport):
        def ack(self, deliveries: Sequence[Delivery]) -> None:
            if current_thread().name == "default-0":
                stopping.set()
                raise RuntimeError("a fault of ours")
            super().ack(deliveries)

    space, stopping = Space(), Event()
    monkeypatch.setattr(App, "_open", lambda _: MemoryTransport(space))
    app = App("memory://", prefetch=10)
    app.handler(URN)(lambda _: None)
    app.publish_all((URN, {"n": n}) for n in range(2000))
    worker = Worker(Broken(space), "default", app._worker("default")[0]._execution, stopping)
    with pytest.raises(RuntimeError, match="a fault of ours"):
        worker.run(limit=2000)


@pytest.mark.parametrize("prefetch", [0, 10])
def test_a_run_is_idle_from_when_the_last_message_came_or_ended(
    monkeypatch: pytest.MonkeyPatch, prefetch: int
) -> None:
    """However long the queue has flowed before."""
    idle, space = 1.0, Space()
    monkeypatch.setattr(App, "_open", lambda _: MemoryTransport(space))
    app = App("memory://", prefetch=prefetch)
    app.handler(URN)(lambda _: None)
    app.publish(URN, {})
    execution = app._worker("default")[0]._execution
    (one,) = MemoryTransport(space).receive("default", 1, 0)
    begun, ended = monotonic(), list[float]()

    class Flow(MemoryTransport):
        def receive(self, queue: str, limit: int, timeout: float) -> list[Delivery]:
            if monotonic() < begun + 1.5 * idle:
                ended[:] = [monotonic()]
                return [replace_handle(one) for _ in range(limit)]
            return super().receive(queue, limit, timeout)

        def ack(self, deliveries: Sequence[Delivery]) -> None:
            pass

    Worker(Flow(Space()), "default", execution, Event()).run(idle=idle)
    assert monotonic() - ended[0] >= idle


def replace_handle(delivery: Delivery) -> Delivery:
    """Give another delivery of the same frame."""
    return Delivery(delivery.frame, delivery.queue)


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
    monkeypatch.setattr("tallystick.runtime.receiving._ATTEND", 0.0)
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
    monkeypatch.setattr("tallystick.runtime.receiving._ATTEND", 0.0)
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


def plan_counted(
    app: App,
    before: int,
    *,
    counts: bool = True,
    claims: Claims | None = None,
    frame: Frame | None = None,
) -> Plan:
    """Plan a delivery that SQS has handed out so often before."""
    sent = frame or project(BINDING, make(URN, {}, now_ms=1, new_id=lambda: "an-id"), queue="q")
    attributes = {"ApproximateReceiveCount": str(before + 1)}
    delivery = Delivery(Frame(sent.body, {**sent.sections, "attributes": attributes}), "q")
    able = replace(MemoryTransport.capabilities, counts=counts)
    execution = app._worker("q")[0]._execution
    rules = Rules(BINDING, able, app.settings)
    plan = replace(execution, rules=rules, claims=claims).run(delivery)
    return plan or Plan("ack", delivery, "handled")


@pytest.mark.parametrize(
    ("counts", "most", "attempts", "outcome"),
    [
        (True, 20, 19, "handled"),
        (True, 20, 20, "dead_lettered"),
        (True, 1, 2, "handled"),
        (True, 0, 1000, "handled"),
        (False, 20, 20, "handled"),
    ],
)
def test_a_message_that_a_counting_broker_hands_out_too_often_is_not_handled_if_so_told(
    counts: bool, most: int, attempts: int, outcome: str
) -> None:
    seen = list[Any]()
    app = App("memory://", max_deliveries=most)
    app.handler(URN)(seen.append)
    assert plan_counted(app, attempts, counts=counts).outcome == outcome
    assert len(seen) == (outcome == "handled")


def test_a_message_that_came_too_often_is_left_to_the_broker_where_it_would_be_dropped() -> None:
    seen = list[Any]()
    app = App("memory://", max_deliveries=20, dead_letter=False)
    app.handler(URN)(seen.append)
    assert (plan_counted(app, 20).move, seen) == ("give_up", [])


class Given(SeenClaims):
    """Claims that come to one verdict, or to none because the store is away."""

    def __init__(self, verdict: str) -> None:
        super().__init__(MemorySeen())
        self.verdict = verdict
        self.released = 0

    def claim(self, _message_id: str) -> Claim:
        if self.verdict == "away":
            raise StoreUnavailable("away", code="store")
        return Claim(self.verdict)

    def release(self, _message_id: str, _token: str) -> None:
        self.released += 1


@pytest.mark.parametrize(
    ("verdict", "outcome", "released"),
    [("held", "released", 0), ("away", "released", 0), ("done", "skipped", 0),
     ("run", "dead_lettered", 1)],
)  # fmt: skip
def test_only_the_worker_that_has_the_claim_gives_up_what_came_too_often(
    verdict: str, outcome: str, released: int
) -> None:
    claims, seen = Given(verdict), list[Any]()
    app = App("memory://", max_deliveries=20)
    app.handler(URN)(seen.append)
    assert plan_counted(app, 20, claims=claims).outcome == outcome
    assert (claims.released, seen) == (released, [])


GATED = Frame(b"{}", {"message_attributes": {"schema_version": {"StringValue": "9"}}})
POISON = Frame(b"no message")


@pytest.mark.parametrize(
    ("frame", "dead_letter", "outcome"),
    [
        (None, True, "released"),
        (None, False, "released"),
        (POISON, True, "dead_lettered"),
        (POISON, False, "native"),
        (GATED, True, "dead_lettered"),
        (GATED, False, "native"),
    ],
)
@pytest.mark.parametrize("count", [0, 1000])
def test_deliveries_decide_nothing_about_what_no_handler_gets(
    frame: Frame | None, dead_letter: bool, outcome: str, count: int
) -> None:
    app = App("memory://", max_deliveries=1, on_unknown_urn="release", dead_letter=dead_letter)
    assert plan_counted(app, count, frame=frame).outcome == outcome


def test_before_a_run_ends_idle_the_broker_is_asked_for_longer_than_a_busy_worker_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Noting(MemoryTransport):
        def receive(self, queue: str, limit: int, timeout: float) -> list[Delivery]:
            waits.append(timeout)
            return super().receive(queue, limit, timeout)

    space, waits = Space(), list[float]()
    monkeypatch.setattr(App, "_open", lambda _: Noting(space))
    app = App("memory://")
    app.handler(URN)(lambda _: None)
    app.publish(URN, {})
    assert app.run(idle=0) == {"handled": 1}
    assert waits[-1] > _BUSY


def test_threads_that_are_busy_are_called_no_more_often_than_there_are() -> None:
    execution = App("memory://", concurrency=3)._worker("default")[0]._execution
    worker = Worker(open_transport(Space()), "default", execution, Event())
    for _ in range(100):
        worker._todo.extend([Delivery(Frame(b"{}"), "default")] * 5)
        worker._call_hands()
    assert (len(worker._todo), worker._ring.qsize()) == (500, 3)


def test_the_first_thread_rests_while_a_handlers_thread_talks_unless_it_is_called() -> None:
    execution = App("memory://")._worker("default")[0]._execution
    worker = Worker(open_transport(Space()), "default", execution, Event())
    assert worker._rest() == 0
    assert not worker._relieve()  # nothing came
    assert 0 < worker._rest() <= _BUSY
    worker._wake.set()
    assert worker._rest() == 0


def test_who_talks_without_room_takes_part_in_the_group() -> None:
    class Noting(MemoryTransport):
        capabilities = replace(MemoryTransport.capabilities, buffered=True, log=True)

        def receive(self, queue: str, limit: int, timeout: float) -> list[Delivery]:
            limits.append(limit)
            return super().receive(queue, limit, timeout)

    limits = list[int]()
    execution = App("memory://")._worker("default")[0]._execution
    worker = Worker(Noting(Space()), "default", execution, Event())
    worker._running.update({n: Delivery(Frame(b"{}"), "default") for n in range(1000)})
    assert not worker._relieve()
    assert limits == [0]


def test_the_first_thread_does_not_stand_in_line_while_another_talks() -> None:
    execution = App("memory://")._worker("default")[0]._execution
    worker = Worker(open_transport(Space()), "default", execution, Event())
    turns = list[float | None]()
    worker._turn = turns.append  # type: ignore[assignment, method-assign]
    with worker._token:
        thread = Thread(target=worker.run, daemon=True)
        thread.start()
        thread.join(5 * _BUSY)
        assert not turns
        assert worker._relieve() is False  # the token is taken, and there is nothing else to do
        worker._todo.append(Delivery(Frame(b"{}"), "default"))
        assert worker._relieve() is True  # ask again after that one
        worker._todo.clear()
    thread.join(10)
    assert turns == [None]
    assert not thread.is_alive()


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
