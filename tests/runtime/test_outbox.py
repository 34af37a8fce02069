"""The outbox: what was committed is published, in order, whoever is killed; what was not is not."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tallystick.brokers.memory.binding import BINDING
from tallystick.cli import main
from tallystick.core.canonical import canonical_message
from tallystick.core.envelope import decode
from tallystick.core.errors import Unavailable, UsageError
from tallystick.core.transport import Address
from tallystick.runtime.address import Link, link_to
from tallystick.runtime.outbox import Outbox
from tallystick.runtime.outbox.relay import Relay, Relayed, Terms, relay

KINDS = ["sqlite", "postgresql"]
PROGRAM = Path(__file__).with_name("outbox_program.py")
URN = "urn:babel:orders:created"
PATIENCE = 60.0
QUICK = Terms(poll=0.001, lease=1.0)


@pytest.fixture(params=KINDS)
def store(
    request: pytest.FixtureRequest, broker_url: Callable[[str], str], tmp_path: Path
) -> Iterator[str]:
    """Give a database with an empty outbox."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/orders.db"
        return
    server, name = broker_url("postgresql"), f"outbox_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield f"{server.rpartition('/')[0]}/{name}"


@contextmanager
def opened(store: str) -> Iterator[Outbox]:
    with closing(Outbox(store)) as outbox:
        outbox.create()
        yield outbox


def connect(store: str) -> Any:
    if store.startswith("sqlite"):
        return sqlite3.connect(store.removeprefix("sqlite:///"))
    return psycopg.connect(store)


def add(outbox: Outbox, store: str, count: int, queue: str = "orders") -> list[str]:
    with closing(connect(store)) as connection:
        ids = [outbox.add(connection, URN, {"n": n}, queue=queue) for n in range(count)]
        connection.commit()
    return ids


def received(link: Link, queue: str) -> list[Any]:
    transport = link.open()
    try:
        found = list[Any]()
        while taken := transport.receive(queue, 1000, 0.05):
            found += [decode(one.frame.body) for one in taken]
            transport.ack(taken)
    finally:
        transport.close()
    return found


def ids(messages: list[Any]) -> list[str]:
    return [one.meta.id for one in messages]


def test_what_is_committed_is_published_in_order_and_what_is_rolled_back_is_not(store: str) -> None:
    broker = f"memory://{uuid4().hex}"
    with opened(store) as outbox:
        first = add(outbox, store, 3)
        with closing(connect(store)) as connection:
            outbox.add(connection, URN, {"n": 99}, queue="orders")
            connection.rollback()
        second = add(outbox, store, 2)
        assert outbox.status().pending == 5
        assert relay(store, broker, idle=0, terms=QUICK) == Relayed(5, 0)
        assert ids(received(link_to(broker), "orders")) == first + second
        found = outbox.status()
        assert (found.pending, found.sent, found.faulty, found.oldest) == (0, 5, 0, None)
        assert relay(store, broker, idle=0, terms=QUICK) == Relayed(), "sent once"


def test_the_bytes_in_the_row_are_canonical_and_go_out_as_they_are(store: str) -> None:
    broker = f"memory://{uuid4().hex}"
    with opened(store) as outbox, closing(connect(store)) as connection:
        outbox.add(connection, URN, {"b": 1.0, "a": "é"}, queue="orders", trace_id="t-1")
        body = bytes(connection.execute("SELECT body FROM tallystick_outbox").fetchone()[0])
        connection.commit()
        assert body == canonical_message(decode(body).document)
        relay(store, broker, idle=0, terms=QUICK)
        (message,) = received(link_to(broker), "orders")
    assert message.body == body
    assert message.trace_id == "t-1"


def test_headers_key_group_and_what_is_left_of_a_delay_go_out(store: str) -> None:
    now = [1000.0]
    frames: list[Any] = []
    outbox = Outbox(store, clock=lambda: now[0])
    outbox.create()
    with closing(connect(store)) as connection:
        outbox.add(connection, URN, {}, queue="q", headers={"tenant": "7"}, delay=30.0)
        outbox.add(connection, URN, {}, queue="q", delay=1.0)
        connection.commit()
    now[0] = 1010.0
    worker = Relay(outbox, fake_link(lambda _queue, sent: frames.extend(sent)), QUICK)
    assert worker.step().sent == 2
    outbox.close()
    assert [one.sections for one in frames] == [
        {"message": {"due": 1_030_000}, "headers": {"tenant": "7"}},
        {},
    ]


def fake_link(send: Callable[[str, Any], None], answers: Callable[[], None] = lambda: None) -> Link:
    """Make a broker of one's own, to misbehave at will."""
    inner = link_to(f"memory://{uuid4().hex}")

    class Fake:
        def __init__(self) -> None:
            self.capabilities = inner.open().capabilities

        def ensure(self, _queues: Any) -> None:
            answers()

        def send(self, queue: str, frames: Any) -> None:
            send(queue, frames)

        def close(self) -> None: ...

    return Link(Address("memory", "memory"), BINDING, Fake)  # type: ignore[arg-type]


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


def test_an_outbox_takes_the_connection_of_its_own_database(tmp_path: Path) -> None:
    outbox = Outbox(f"sqlite:///{tmp_path}/a.db")
    for wrong in (object(), "connection", None):
        with pytest.raises(UsageError) as caught:
            outbox.add(wrong, URN, {})
        assert caught.value.code == "connection"
    for url in ("memory", "redis://x", "nonsense"):
        with pytest.raises(UsageError):
            Outbox(url)


def test_an_open_transaction_of_yours_stops_nobody_from_looking(store: str) -> None:
    with opened(store) as outbox, closing(connect(store)) as connection:
        outbox.add(connection, URN, {})
        with closing(Outbox(store)) as other:
            other.create()
            assert other.status().pending == 0
        connection.rollback()


def test_a_message_is_not_added_outside_a_transaction(store: str) -> None:
    with opened(store) as outbox, closing(connect(store)) as connection:
        if store.startswith("sqlite"):
            connection.isolation_level = None
        else:
            connection.autocommit = True
        with pytest.raises(UsageError) as caught:
            outbox.add(connection, URN, {})
        assert caught.value.code == "autocommit"
        connection.execute("BEGIN")
        outbox.add(connection, URN, {})
        connection.execute("COMMIT")
        assert outbox.status().pending == 1


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


def test_the_command_relays_and_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = f"sqlite:///{tmp_path}/orders.db"
    assert main(["outbox", "create", "--store", store]) == 0
    with opened(store) as outbox:
        add(outbox, store, 2)
    assert main(["outbox", "status", "--store", store]) == 0
    assert capsys.readouterr().out.startswith("2 pending, the oldest for ")
    broker = f"memory://{uuid4().hex}"
    assert main(["outbox", "relay", "--store", store, "--broker", broker, "--idle", "0"]) == 0
    assert capsys.readouterr().out == "2 sent, 0 faulty\n"
    assert main(["outbox", "status", "--store", store, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"pending": 0, "sent": 2, "faulty": 0, "oldest": None, "faults": []}
    assert main(["outbox", "retry", "--store", store]) == 0
    assert main(["outbox", "relay", "--store", store]) == 2
