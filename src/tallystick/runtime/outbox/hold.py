"""Reserve a queue for one relay; a relay can write only while it holds the queue.

On PostgreSQL the row of the queue is locked in the transaction that marks sent messages. A relay
that is killed or loses its connection releases the lock at once and has written nothing. On SQLite
such a transaction would block all other writers, so the queue is leased. Every write renews the
lease; so does a send after half of the lease. Every write checks the token in the same transaction:
when another relay has taken the queue, nothing is written (`Overtaken`), and the other relay sends
those rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from tallystick.runtime.database import Database
from tallystick.runtime.outbox import rows
from tallystick.runtime.store_url import StoreUnavailable

__all__ = ["Hold", "Lease", "Overtaken", "hold"]


class Overtaken(Exception):
    """The lease has ended, and another relay has the queue now."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The token, the length and the clock (that of the database) of a lease."""

    token: str
    seconds: float
    clock: Callable[[], float]


class Hold(Protocol):
    """A queue that this relay holds."""

    def read(self, statement: str, values: Mapping[str, Any]) -> list[Any]:
        """Return rows."""

    def write(self, statement: str, values: Mapping[str, Any]) -> None:
        """Write, if this relay still holds the queue."""

    def renew(self) -> None:
        """Renew the lease if too little of it is left for a send."""


class _Locked:
    """In the transaction that locks the queue."""

    def __init__(self, database: Database, connection: Any) -> None:
        self._database: Final = database
        self._connection: Final = connection

    def read(self, statement: str, values: Mapping[str, Any]) -> list[Any]:
        return self._database.run(self._connection, statement, values)

    def write(self, statement: str, values: Mapping[str, Any]) -> None:
        self._database.run(self._connection, statement, values)

    def renew(self) -> None:
        """Do nothing: the lock lasts as long as the transaction."""


class _Leased(_Locked):
    """Under a lease, by its token."""

    def __init__(self, database: Database, connection: Any, queue: str, lease: Lease) -> None:
        super().__init__(database, connection)
        self._lease: Final = lease
        self._own: Final = {"queue": queue, "token": lease.token, "lease": lease.seconds}
        self._began = lease.clock()

    def write(self, statement: str, values: Mapping[str, Any]) -> None:
        self._database.begin(self._connection)
        self._begin_anew()
        self._database.run(self._connection, statement, values)
        self._database.commit(self._connection)

    def renew(self) -> None:
        if self._lease.clock() - self._began >= self._lease.seconds / 2:
            self._begin_anew()

    def _begin_anew(self) -> None:
        began = self._lease.clock()
        if not self._database.run(self._connection, rows.RENEW, self._own):
            raise Overtaken
        self._began = began


@contextmanager
def hold(database: Database, queue: str, lease: Lease) -> Iterator[Hold | None]:
    """Hold a queue for this relay; None if another relay holds it."""
    own = {"queue": queue, "token": lease.token}
    with database.borrow() as connection:
        database.run(connection, rows.SEEN, own)
        if database.kind == "sqlite":
            leased = _Leased(database, connection, queue, lease)
            if not database.run(connection, rows.LEASE, {**own, "lease": lease.seconds}):
                yield None
                return
            yield leased
            database.run(connection, rows.RELEASE, own)
            return
        database.begin(connection)
        try:
            locked = database.run(connection, rows.LOCK, own)
            yield _Locked(database, connection) if locked else None
        except StoreUnavailable:
            raise
        except Exception:
            database.commit(connection)  # what was sent is marked, whatever came after it
            raise
        database.commit(connection)
