"""What was handled is acknowledged once, in lots, in its turn, and never when it is not ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from logging import LogRecord, getLogger
from threading import Event, Timer
from time import sleep
from typing import Any

import pytest

from tallystick import App
from tallystick.brokers.memory.transport import MemoryTransport, Space
from tallystick.brokers.pulsar.binding import BINDING as PULSAR
from tallystick.core.binding import project
from tallystick.core.envelope import make
from tallystick.core.errors import Unavailable
from tallystick.core.frame import Frame
from tallystick.core.transport import Delivery
from tallystick.runtime.reading import reader
from tallystick.runtime.worker import Worker

URN = "urn:babel:orders:created"


class Desk(MemoryTransport):
    """Hands out the same deliveries as told, and notes what is settled."""

    def __init__(self, deliveries: Sequence[Delivery]) -> None:
        super().__init__(Space())
        self._given = [*deliveries]
        self.lots: list[list[Delivery]] = []
        self.released: list[Delivery] = []
        self.faults: list[str] = []
        self.renewing: Callable[[Sequence[Delivery]], list[Delivery]] = lambda _: []

    def receive(self, _queue: str, limit: int, timeout: float) -> list[Delivery]:
        given, self._given = self._given[:limit], self._given[limit:]
        if not given:
            sleep(min(timeout, 0.01))
        return given

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        if "ack" in self.faults:
            self.faults.remove("ack")
            raise Unavailable("away", code="unreachable")
        self.lots.append([*deliveries])

    def release(self, delivery: Delivery, delay: float = 0.0) -> None:  # noqa: ARG002
        if "release" in self.faults:
            self.faults.remove("release")
            raise Unavailable("away", code="unreachable")
        self.released.append(delivery)

    def renew(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        return self.renewing(deliveries)


def delivery(n: int, **more: Any) -> Delivery:
    made = make(URN, {"n": n}, now_ms=1, new_id=lambda: f"id-{n}")
    return Delivery(Frame(project(PULSAR, made).body), "q", n, **more)


def consume(
    desk: Desk, handle: Callable[[Any], None], stopping: Event | None = None, **settings: Any
) -> dict[str, int]:
    """Run a worker over what the desk gives; one that hangs is stopped and has handled less."""
    app = App("memory://", queue="q", **settings)
    app.handler(URN)(handle)
    worker = Worker(desk, "q", app._worker("q")[0]._execution, stopping or Event())
    patience = Timer(10, worker._stopping.set)
    patience.start()
    worker.run(limit=len(desk._given))
    patience.cancel()
    app.close()
    return dict(worker.counts)


def lose(_: Sequence[Delivery]) -> list[Delivery]:
    raise Unavailable("away", code="unreachable")


@pytest.mark.parametrize("renewing", [lose, list])
def test_what_was_handled_after_its_lease_is_not_acknowledged(
    renewing: Callable[[Sequence[Delivery]], list[Delivery]],
) -> None:
    desk = Desk([delivery(1, lease=0.1), delivery(2)])
    desk.renewing = renewing  # the broker is away, or has given it to another
    assert consume(desk, lambda _: sleep(0.3)) == {"lost": 1, "handled": 1}
    assert [one.handle for lot in desk.lots for one in lot] == [2]


def test_the_next_of_a_group_begins_when_the_one_before_was_handled() -> None:
    desk, seen = Desk([delivery(n, group="g") for n in range(3)]), list[int]()
    assert consume(desk, lambda data: seen.append(data["n"]), concurrency=3) == {"handled": 3}
    assert seen == [0, 1, 2]
    assert [one.handle for lot in desk.lots for one in lot] == [0, 1, 2]


def test_when_many_are_handled_they_are_acknowledged_before_the_others_are() -> None:
    desk = Desk([delivery(n) for n in range(9)])
    assert consume(desk, lambda _: None, prefetch=8) == {"handled": 9}
    assert [one.handle for lot in desk.lots for one in lot] == [*range(9)]
    assert max(map(len, desk.lots)) <= 4, "half of what is held ahead"


def test_what_cannot_be_settled_is_counted_once_however_often_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tallystick.runtime.settling.LEFT", 0.01)
    desk = Desk([delivery(1)])
    desk.faults = ["ack", "release", "release"]
    assert consume(desk, lambda _: None) == {"unsettled": 1}
    assert (len(desk.lots), len(desk.released)) == (0, 1)


def test_on_a_log_nothing_is_handed_back_by_a_worker_that_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Desk, "capabilities", replace(Desk.capabilities, log=True))
    desk, stopping = Desk([delivery(n) for n in range(3)]), Event()

    def handle(_data: Any) -> None:
        stopping.set()
        sleep(0.2)  # until what is not begun was handed back

    assert consume(desk, handle, stopping) == {"handled": 1, "handed_back": 2}
    assert desk.released == []


def test_what_was_not_handled_counts_nothing_as_handled() -> None:
    desk = Desk([Delivery(Frame(b'{"job":"urn:x:y:z"}'), "q", 1)])
    counts = consume(desk, lambda _: None, on_unknown_urn="delete", dead_letter=False)
    assert counts == {"dropped": 1}


@pytest.mark.parametrize(
    ("said", "kind"),
    [("1", "message"), (" ", "message"), (None, "message"), ("2", "gated"), (2, "gated"),
     (b"1", "gated"), (["1"], "gated"), ({}, "gated")],
)  # fmt: skip
def test_a_message_is_turned_away_by_the_native_version_before_its_body_is_read(
    said: Any, kind: str
) -> None:
    frame = Frame(delivery(1).frame.body, {"properties": {"bq-schema-version": said}})
    assert reader(PULSAR)(Delivery(frame, "q"), 0).kind == kind
    unreadable = Delivery(Frame(b"no message", frame.sections), "q")
    assert reader(PULSAR)(unreadable, 0).kind == {"message": "poison"}.get(kind, kind)


@pytest.mark.parametrize(("said", "urn"), [("urn:other", "urn:other"), (URN, URN), (" ", URN)])
def test_a_message_is_routed_by_the_native_field_where_the_broker_has_one(
    said: str, urn: str
) -> None:
    one = delivery(1)
    native = {"properties": {"bq-job": said, "bq-schema-version": "1"}}
    assert reader(PULSAR)(Delivery(Frame(one.frame.body, native), "q"), 0).urn == urn


def test_a_body_that_cannot_be_shown_is_left_and_stops_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(record: LogRecord) -> bool:
        if "received" in record.msg and next(lines) == 1:
            raise ValueError("a filter's fault")
        return True

    lines, desk = count(), Desk([delivery(n, lease=60) for n in range(3)])
    log = getLogger("tallystick.runtime")
    log.addFilter(refuse)
    try:
        with caplog.at_level("DEBUG", "tallystick.runtime"):
            assert consume(desk, lambda _: None) == {"handled": 2, "left": 1}
    finally:
        log.removeFilter(refuse)
    assert [one.handle for lot in desk.lots for one in lot] == [0, 2]
    assert len([one for one in caplog.messages if one.startswith("queue q: received:")]) == 2
