"""Access to SQLite or PostgreSQL for the stores of the runtime, through a few plain steps.

A statement is written once for both: `:name` stands for a value, `{now}` for the clock (on
PostgreSQL the clock of the server, so that machines need not agree) and `{skip}` for the clause
that skips rows locked by others. A connection that raised an error is closed and not used again;
the database rolls its transaction back.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from time import time
from typing import Any, Final, Protocol

from tallystick.core.errors import UsageError
from tallystick.runtime.store_url import StoreUnavailable, StoreUrl, store_fault

__all__ = ["Busy", "Database", "SqliteDatabase", "open_database", "write_for"]

_WAIT: Final = 10.0
_DIALECTS: Final[Mapping[str, Mapping[str, str]]] = {
    "sqlite": {"now": ":now", "skip": "", "serial": "INTEGER", "bytes": "BLOB"},
    "postgresql": {
        "now": "CAST(extract(epoch FROM clock_timestamp()) AS double precision)",
        "skip": "FOR UPDATE SKIP LOCKED",
        "serial": "bigserial",
        "bytes": "bytea",
    },
}


class Busy(Exception):
    """Another connection holds the lock, and did not release it in time."""


class Database(Protocol):
    """One database; any thread may borrow a connection."""

    kind: str

    @contextmanager
    def borrow(self) -> Iterator[Any]:
        """Lend a connection, in autocommit."""

    def run(
        self, connection: Any, statement: str, values: Mapping[str, Any] | None = None
    ) -> list[Any]:
        """Run one statement and give its rows; raise `Busy` or `StoreUnavailable`."""

    def create(self, connection: Any, table: str, statements: Sequence[str]) -> None:
        """Create a table and its indexes if it does not exist; one process at a time."""

    def begin(self, connection: Any, wait: float = _WAIT) -> None:
        """Open a transaction; wait for other transactions at most this long."""

    def wait_as_usual(self, connection: Any) -> None:
        """Use the default time limit again, instead of the one of `begin`."""

    def commit(self, connection: Any) -> None:
        """Commit; raise if the transaction has ended, or violates a constraint."""

    def rollback(self, connection: Any) -> None:
        """Undo."""

    def close(self) -> None:
        """End all connections."""


class Idle:
    """Idle connections, the last used first."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect: Final = connect
        self._lock: Final = Lock()
        self._kept: list[Any] = []
        self._closed = 0

    @contextmanager
    def borrow(self) -> Iterator[Any]:
        """Lend a connection; any exception closes it, and a fault of the store closes all."""
        with self._lock:
            connection, closed = self._kept.pop() if self._kept else None, self._closed
        if connection is None:
            connection = self._connect()
        try:
            yield connection
        except BaseException as error:
            connection.close()
            if isinstance(error, StoreUnavailable):
                self.close()
            raise
        with self._lock:
            if closed == self._closed:
                self._kept.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close all connections; those in use are closed when they are returned."""
        with self._lock:
            kept, self._kept = self._kept, []
            self._closed += 1
        for connection in kept:
            connection.close()


class SqliteDatabase:
    """One file. Writers take turns; a transaction holds the file for as long as it lasts."""

    kind = "sqlite"

    def __init__(self, url: StoreUrl, clock: Callable[[], float] = time) -> None:
        self._url: Final = url
        self._clock: Final = clock
        self._idle: Final = Idle(self._connect)
        self.borrow: Final = self._idle.borrow
        self.close: Final = self._idle.close

    def run(
        self,
        connection: sqlite3.Connection,
        statement: str,
        values: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        """Run one statement and give its rows."""
        text = write_for("sqlite", statement)
        try:
            return connection.execute(text, {**(values or {}), "now": self._clock()}).fetchall()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                raise Busy(str(error)) from error
            raise store_fault(self._url, error) from error
        except sqlite3.Error as error:
            raise store_fault(self._url, error) from error

    def create(self, connection: sqlite3.Connection, table: str, statements: Sequence[str]) -> None:
        """Create a table and its indexes if it does not exist."""
        if self.run(connection, "SELECT 1 FROM sqlite_master WHERE name = :name", {"name": table}):
            return
        self.begin(connection)
        for statement in statements:
            self.run(connection, statement)
        self.commit(connection)

    def begin(self, connection: sqlite3.Connection, wait: float = _WAIT) -> None:
        """Take the file for writing."""
        connection.execute(f"PRAGMA busy_timeout = {int(wait * 1000)}")
        self.run(connection, "BEGIN IMMEDIATE")

    def wait_as_usual(self, connection: sqlite3.Connection) -> None:
        """Wait for other writers with the default time limit again."""
        connection.execute(f"PRAGMA busy_timeout = {int(_WAIT * 1000)}")

    def commit(self, connection: sqlite3.Connection) -> None:
        """Commit the open transaction."""
        if not connection.in_transaction:
            raise ended()
        try:
            connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise store_fault(self._url, error) from error

    def rollback(self, connection: sqlite3.Connection) -> None:
        """Roll the open transaction back, if there is one."""
        if connection.in_transaction:
            self.run(connection, "ROLLBACK")
        self.wait_as_usual(connection)

    def _connect(self) -> sqlite3.Connection:
        try:
            return sqlite3.connect(
                self._url.target, timeout=_WAIT, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise store_fault(self._url, error) from error


def write_for(kind: str, statement: str) -> str:
    """Write a statement in the dialect of one kind of database."""
    text = statement.format(**_DIALECTS[kind])
    return re.sub(r":(\w+)", r"%(\1)s", text) if kind == "postgresql" else text


def ended() -> UsageError:
    """Report that the handler ended the transaction that it received."""
    return UsageError(
        "the handler ended or broke the transaction that it received",
        code="transaction",
        hint="do not commit, roll back or catch a database error; return or raise",
    )


def open_database(url: StoreUrl, clock: Callable[[], float] = time) -> Database:
    """Open the database of a URL; the connection is made on first use."""
    if url.kind == "sqlite":
        return SqliteDatabase(url, clock)
    from tallystick.runtime.database_postgresql import PostgresDatabase  # noqa: PLC0415

    return PostgresDatabase(url)
