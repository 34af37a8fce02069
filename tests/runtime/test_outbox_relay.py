"""The relay: all is published, in order, whoever is killed or away, and no row stops the rest."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

import pytest
from tests.runtime.outboxes import QUICK, add, connect, fake_link, ids, opened, received

from tallystick.core.envelope import decode
from tallystick.core.errors import Refused, Unavailable
from tallystick.runtime.address import link_to
from tallystick.runtime.outbox import Outbox
from tallystick.runtime.outbox.relay import Relay, Relayed, Terms, relay

PROGRAM = Path(__file__).with_name("outbox_program.py")
PATIENCE = 60.0


def away(*_: Any) -> None:
    raise Unavailable("the broker is away", code="broker")


def steps(worker: Relay, until: Callable[[], bool]) -> Relayed:
    total = Relayed()
    for _ in range(100_000):
        if until():
            return total
        with suppress(Unavailable):
            total += worker.step()
    raise AssertionError("it did not come to pass")


def test_a_row_that_is_no_message_is_put_aside_at_once(store: str) -> None:
    broker = f"memory://{uuid4().hex}"
    with opened(store) as outbox:
        before = add(outbox, store, 1)
        with closing(connect(store)) as connection:
            fault = (
                "INSERT INTO tallystick_outbox (id, queue, body, options, created) "
                "VALUES ('bad', 'orders', {}, '{{}}', 0)"
            )
            blob = "X'7b'" if store.startswith("sqlite") else r"'\x7b'"
            connection.execute(fault.format(blob))
            connection.commit()
        after = add(outbox, store, 1)
        assert relay(store, broker, idle=0, terms=QUICK) == Relayed(2, 1)
        assert ids(received(link_to(broker), "orders")) == before + after
        found = outbox.status()
        assert (found.pending, found.faulty, found.faults[0].id) == (0, 1, "bad")
        assert outbox.retry_faulty() == 1
        assert outbox.status().pending == 1


def test_a_row_that_the_broker_does_not_take_holds_its_queue_for_some_tries_and_not_for_ever(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tallystick.runtime.outbox.relay._PAUSES", (0.0,))
    taken: list[tuple[str, bytes]] = []

    def send(queue: str, frames: Any) -> None:
        if any(b'"n":1}' in one.body for one in frames):
            raise Unavailable("too strange", code="broker")
        taken.extend((queue, one.body) for one in frames)

    with opened(store) as outbox:
        orders = add(outbox, store, 3)
        others = add(outbox, store, 1, "others")
        worker = Relay(outbox, fake_link(send), Terms(tries=3))
        assert worker.step() == Relayed(2, 0), "0 went, 1 waits, 2 waits behind it; others went"
        assert outbox.status().pending == 2
        assert steps(worker, lambda: outbox.status().pending == 0) == Relayed(1, 1)
        assert [decode(body).meta.id for queue, body in taken if queue == "orders"] == [  # type: ignore[union-attr]
            orders[0],
            orders[2],
        ]
        assert [decode(body).meta.id for queue, body in taken if queue == "others"] == others  # type: ignore[union-attr]
        (fault,) = outbox.status().faults
        assert (fault.id, fault.error) == (orders[1], "too strange")


def test_a_row_that_the_transport_refuses_is_put_aside_at_once_and_doubles_no_other(
    store: str,
) -> None:
    taken: list[bytes] = []

    def send(_queue: str, frames: Any) -> None:
        if any(b'"n":1}' in one.body for one in frames):
            raise Refused("too large", code="too_large")
        taken.extend(one.body for one in frames)

    with opened(store) as outbox:
        orders = add(outbox, store, 3)
        worker = Relay(outbox, fake_link(send), Terms(tries=9))
        assert [worker.step(), worker.step()] == [Relayed(2, 1), Relayed()]
        assert ids([decode(body) for body in taken]) == [orders[0], orders[2]]
        found = outbox.status()
        assert (found.pending, found.sent, found.faults[0].error) == (0, 2, "too large")


def test_a_broker_that_is_away_costs_no_row_a_try(store: str) -> None:
    with opened(store) as outbox:
        add(outbox, store, 2)
        worker = Relay(outbox, fake_link(away, away), Terms(tries=1))
        for _ in range(3):
            with pytest.raises(Unavailable):
                worker.step()
        found = outbox.status()
        assert (found.pending, found.faulty) == (2, 0)


@pytest.mark.parametrize("fault", [Unavailable("away", code="broker"), ValueError("a client's")])
def test_what_was_sent_before_a_failure_is_marked_and_not_sent_again(
    store: str, fault: Exception
) -> None:
    taken: list[bytes] = []
    broken = True

    def send(_queue: str, frames: Any) -> None:
        if broken and (len(frames) > 1 or len(taken) == 2):
            raise Unavailable("away", code="broker") if len(frames) > 1 else fault
        taken.extend(one.body for one in frames)

    def answers() -> None:
        if broken and taken:
            away()

    with opened(store) as outbox:
        sent = add(outbox, store, 4)
        worker = Relay(outbox, fake_link(send, answers), QUICK)
        with suppress(type(fault)):
            assert worker.step() == Relayed(2, 0)
        assert outbox.status().pending == 2
        broken = False
        steps(worker, lambda: outbox.status().pending == 0)
        assert ids([decode(body) for body in taken]) == sent


def test_a_queue_that_cannot_be_had_stops_no_other(store: str) -> None:
    taken: list[str] = []

    def send(queue: str, frames: Any) -> None:
        if queue == "bad name":
            away()
        taken.extend(queue for _ in frames)

    with opened(store) as outbox:
        add(outbox, store, 1, "bad name")
        add(outbox, store, 2, "orders")
        worker = Relay(outbox, fake_link(send), Terms(tries=9))
        assert worker.step() == Relayed(2, 0)
        assert taken == ["orders", "orders"]


def test_what_is_wrong_with_one_queue_is_said_once_while_others_go_on(
    store: str, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = ["denied"]

    def check(queues: list[str]) -> None:
        if queues == ["bad"] and wrong:
            raise Unavailable(wrong[0], code="broker")

    with opened(store) as outbox:
        worker = Relay(outbox, fake_link(lambda *_: None, check_queues=check), QUICK)

        def said(queue: str) -> list[str]:
            add(outbox, store, 1, "orders")
            add(outbox, store, 1, queue)
            caplog.clear()
            assert worker.step().sent > 0
            return [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]

        assert said("bad") == ["outbox: queue bad: denied"]
        assert said("bad") == [], "once"
        wrong[0] = "still denied"
        assert said("bad") == ["outbox: queue bad: still denied"]
        wrong.clear()
        assert said("bad") == []
        assert outbox.status().pending == 0


def test_sent_rows_are_swept_a_bounded_number_at_a_time(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tallystick.runtime.outbox.relay._SWEPT_AT_ONCE", 2)
    with opened(store) as outbox:
        add(outbox, store, 5)
        worker = Relay(outbox, fake_link(lambda _queue, _frames: None), Terms(keep=-60.0))
        left = [(worker.step(), outbox.status().sent)[1] for _ in range(4)]
    assert left == [5, 3, 1, 0]


def start(store: str, broker: str, when: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(PROGRAM), store, broker, when]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def go(*relays: subprocess.Popen[str]) -> list[int]:
    for one in relays:
        assert one.stdout
        assert one.stdout.readline() == "ready\n"
    for one in relays:
        assert one.stdin
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in relays:
        one.communicate(timeout=PATIENCE)
    return [one.returncode for one in relays]


def test_a_relay_that_is_killed_loses_nothing_and_keeps_the_order(
    store: str, broker_url: Callable[[str], str]
) -> None:
    broker, queue = broker_url("redis"), f"outbox-{uuid4().hex}"
    with opened(store) as outbox:
        added = add(outbox, store, 100, queue)
        assert go(start(store, broker, "before")) == [-signal.SIGKILL]
        assert go(start(store, broker, "within")) == [-signal.SIGKILL]
        assert outbox.status().pending > 0
        assert relay(store, broker, idle=10, stopping=drained(outbox), terms=QUICK).sent > 0
        arrived = ids(received(link_to(broker), queue))
    assert list(dict.fromkeys(arrived)) == added, "all, in order"
    assert len(arrived) > len(added), "the kills doubled some, and that is allowed"


def drained(outbox: Outbox) -> Event:
    """Give an event that is set when nothing waits any more."""

    class Drained(Event):
        def is_set(self) -> bool:
            return outbox.status().pending == 0

    return Drained()


def test_relays_at_the_same_time_double_nothing_and_keep_the_order(
    store: str, broker_url: Callable[[str], str]
) -> None:
    broker, queues = broker_url("redis"), [f"outbox-{uuid4().hex}" for _ in range(3)]
    with opened(store) as outbox:
        added = {queue: add(outbox, store, 100, queue) for queue in queues}
        assert go(start(store, broker, "never"), start(store, broker, "never")) == [0, 0]
        assert outbox.status().pending == 0
    for queue in queues:
        assert ids(received(link_to(broker), queue)) == added[queue]


def test_a_broker_that_is_away_at_the_start_is_said_and_later_waited_for(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tallystick.runtime.outbox.relay._PAUSES", (0.001,))
    moments = iter([True, False, False])
    here = [False]

    def send(*_: Any) -> None:
        here[0] = next(moments, True)
        answer()

    def answer() -> None:
        if not here[0]:
            away()

    with opened(store) as outbox:
        add(outbox, store, 3)
        worker = Relay(outbox, fake_link(send, answer), Terms(batch=1, poll=0.001))
        with pytest.raises(Unavailable):
            worker.run(Event())
        here[0] = True
        assert worker.run(drained(outbox)) == Relayed(3, 0)
        assert next(moments, None) is None, "it went away in between"
