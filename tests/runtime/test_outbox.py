"""The outbox: what is added in a transaction is kept with it, and goes out as it was written."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.runtime.outboxes import QUICK, URN, add, connect, fake_link, ids, opened, received

from tallystick.cli import main
from tallystick.core.canonical import canonical_message
from tallystick.core.envelope import decode
from tallystick.core.errors import UsageError
from tallystick.runtime.address import link_to
from tallystick.runtime.outbox import Outbox
from tallystick.runtime.outbox.relay import Relay, Relayed, relay


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


def test_the_command_relays_and_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = f"sqlite:///{tmp_path}/orders.db"
    assert main(["outbox", "create", "--store", store]) == 0
    with opened(store) as outbox:
        add(outbox, store, 2)
    assert main(["outbox", "status", "--store", store]) == 0
    assert capsys.readouterr().out.startswith("2 waiting, the oldest for ")
    broker = f"memory://{uuid4().hex}"
    assert main(["outbox", "relay", "--store", store, "--broker", broker, "--idle", "0"]) == 0
    assert capsys.readouterr().out == "2 sent, 0 failed\n"
    assert main(["outbox", "status", "--store", store, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"pending": 0, "sent": 2, "faulty": 0, "oldest": None, "faults": []}
    assert main(["outbox", "retry", "--store", store]) == 0
    assert main(["outbox", "relay", "--store", store]) == 2
