"""What the tests of the outbox share: an outbox, what came out of it, and a broker to misbehave."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any
from uuid import uuid4

import psycopg

from tallystick.brokers.memory.binding import BINDING
from tallystick.core.envelope import decode
from tallystick.core.transport import Address
from tallystick.runtime.address import Link, link_to
from tallystick.runtime.outbox import Outbox
from tallystick.runtime.outbox.relay import Terms

URN = "urn:babel:orders:created"
QUICK = Terms(poll=0.001, lease=1.0)


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


def fake_link(
    send: Callable[[str, Any], None],
    answers: Callable[[], None] = lambda: None,
    check_queues: Callable[[list[str]], None] = lambda _queues: None,
) -> Link:
    """Make a broker of one's own, to misbehave at will."""
    inner = link_to(f"memory://{uuid4().hex}")

    class Fake:
        def __init__(self) -> None:
            self.capabilities = inner.open().capabilities

        def ensure(self, queues: Any) -> None:
            answers()
            check_queues(list(queues))

        def send(self, queue: str, frames: Any) -> None:
            send(queue, frames)

        def close(self) -> None: ...

    return Link(Address("memory", "memory"), BINDING, Fake)  # type: ignore[arg-type]
