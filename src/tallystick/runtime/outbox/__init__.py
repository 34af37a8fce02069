"""The transactional outbox (ADR-0029): a message is published if, and only if, you committed.

    outbox = Outbox("postgresql://me@db/orders")
    outbox.create()                                   once, with your migrations

    with psycopg.connect(...) as connection:          your own transaction
        connection.execute("INSERT INTO orders ...")
        outbox.add(connection, "urn:babel:orders:created", {"id": 7}, queue="orders")

`add` writes the canonical bytes of the message into a table in your database. If you roll back, the
row is gone too. A relay (`tallystick.runtime.outbox.relay`) publishes the rows of a queue in the
order of adding, and marks them after the broker has confirmed them: a crash may duplicate a message
but never loses one. Two transactions that are open at the same time have no order. With
`telemetry`, the message carries the current trace.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from tallystick.core.envelope import encode, make
from tallystick.core.errors import UsageError
from tallystick.core.names import DEFAULT_QUEUE
from tallystick.runtime.contracts import open_contracts, refuse_breach
from tallystick.runtime.database import Database, open_database, write_for
from tallystick.runtime.ids import new_uuid
from tallystick.runtime.outbox import rows
from tallystick.runtime.payload import read_payload
from tallystick.runtime.store_url import StoreUrl, read_store_url
from tallystick.runtime.telemetry import Sending, current_trace
from tallystick.schemas.catalog import Catalog

__all__ = ["Outbox", "Status"]

_DRIVERS: Final = {"sqlite": "sqlite3.Connection", "postgresql": "psycopg.Connection"}


@dataclass(frozen=True, slots=True)
class Status:
    """The numbers of waiting, sent and failed rows, and the age of the oldest waiting row."""

    pending: int
    sent: int
    faulty: int
    oldest: float | None
    faults: tuple[rows.Fault, ...] = ()


class Outbox:
    """The rows of one database."""

    def __init__(
        self,
        url: str,
        *,
        catalog: str | Path | Catalog | None = None,
        on_unknown_schema: str = "allow",
        telemetry: bool = False,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] = new_uuid,
    ) -> None:
        self.url: Final[StoreUrl] = read_store_url(url, ("sqlite", "postgresql"), ())
        self.database: Final[Database] = open_database(self.url, clock)
        self.clock: Final = clock
        self._new_id: Final = new_id
        self._contracts: Final = open_contracts(catalog, None, on_unknown_schema)
        self._traced: Final = telemetry
        self._insert: Final = write_for(self.url.kind, rows.INSERT)

    def __repr__(self) -> str:
        return f"Outbox({str(self.url)!r})"

    def create(self) -> None:
        """Create the tables if they do not exist."""
        with self.database.borrow() as connection:
            self.database.create(connection, rows.TABLE, rows.CREATE)

    def add(
        self,
        connection: Any,
        urn: str,
        data: Any,
        *,
        queue: str = DEFAULT_QUEUE,
        headers: Mapping[str, str] | None = None,
        trace_id: str = "",
        key: str | None = None,
        group: str = "",
        delay: float | None = None,
    ) -> str:
        """Add one message to your open transaction and return its id. Nothing is sent yet."""
        kind = type(connection)
        name = f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
        if not isinstance(connection, _connection_type(self.url.kind)):
            raise UsageError(
                f"this outbox needs a {_DRIVERS[self.url.kind]}, not a {name}",
                code="connection",
                hint="pass the connection on which your transaction is open",
            )
        if not _in_transaction(connection, self.url.kind):
            raise UsageError(
                "no transaction is open, and this connection commits every statement on its own",
                code="autocommit",
                hint="add the message inside the transaction that it belongs to",
            )
        sending = current_trace() if self._traced else Sending()
        now = self.clock()
        envelope = make(
            urn,
            read_payload(data),
            now_ms=int(now * 1000),
            new_id=self._new_id,
            trace_id=trace_id or sending.trace_id,
            queue=queue,
        )
        refuse_breach(self._contracts, envelope)
        message_id = str(envelope.meta.id if envelope.meta else "")
        options = rows.Options({**sending.headers, **(headers or {})}, key, group, delay)
        values = {
            "id": message_id,
            "queue": queue,
            "body": encode(envelope),
            "options": msgspec.json.encode(options).decode(),
            "created": now,
        }
        connection.execute(self._insert, values)
        return message_id

    def status(self, *, faults: int = 10) -> Status:
        """Count the rows, and show some of those that cannot be sent."""
        with self.database.borrow() as connection:
            self.database.create(connection, rows.TABLE, rows.CREATE)
            counted = dict(self.database.run(connection, rows.COUNT))
            oldest = self.database.run(connection, rows.OLDEST)[0][0]
            shown = self.database.run(connection, rows.FAULTS, {"most": faults})
        return Status(
            counted.get(rows.PENDING, 0),
            counted.get(rows.SENT, 0),
            counted.get(rows.FAULTY, 0),
            None if oldest is None else max(oldest, 0.0),
            tuple(rows.Fault(*row) for row in shown),
        )

    def retry_faulty(self) -> int:
        """Reset every failed row, so that it is sent again; return their number."""
        with self.database.borrow() as connection:
            self.database.create(connection, rows.TABLE, rows.CREATE)
            return len(self.database.run(connection, rows.RETRY))

    def close(self) -> None:
        """Close the connections of this outbox."""
        self.database.close()


def _in_transaction(connection: Any, kind: str) -> bool:
    """Return whether a message added now waits for a commit."""
    if kind == "sqlite":
        return connection.isolation_level is not None or connection.in_transaction
    return not connection.autocommit or bool(connection.info.transaction_status)


def _connection_type(kind: str) -> type[Any]:
    if kind == "sqlite":
        from sqlite3 import Connection as SqliteConnection  # noqa: PLC0415

        return SqliteConnection
    from psycopg import Connection  # noqa: PLC0415 (loads only when it is used)

    return Connection
