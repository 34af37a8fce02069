"""Claims in a database: one row per id, taken by one statement that only one worker can win.

`transaction` writes the row as done and passes the connection to the handler. A second transaction
for the same id waits for a short time for the first to end; otherwise it gets `held`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final

from tallystick.runtime.claims import Claim, Terms
from tallystick.runtime.database import Busy, Database, open_database
from tallystick.runtime.ids import new_uuid
from tallystick.runtime.store_url import StoreUnavailable, StoreUrl

__all__ = ["SqlClaims", "open_store"]

_TABLE: Final = "tallystick_claims"
_CREATE: Final = (
    """CREATE TABLE IF NOT EXISTS tallystick_claims (
    scope text NOT NULL, id text NOT NULL, token text NOT NULL, done smallint NOT NULL,
    expires double precision NOT NULL, PRIMARY KEY (scope, id))""",
    "CREATE INDEX IF NOT EXISTS tallystick_claims_expires ON tallystick_claims (expires)",
)
_PUT: Final = """
INSERT INTO tallystick_claims AS held (scope, id, token, done, expires)
VALUES (:scope, :id, :token, :done, {now} + :seconds)
ON CONFLICT (scope, id) DO UPDATE
SET token = excluded.token, done = excluded.done, expires = excluded.expires
WHERE held.expires <= {now}"""
_CLAIM: Final = f"{_PUT} RETURNING id"
_COMPLETE: Final = f"{_PUT} OR (held.token = excluded.token AND held.done = 0) RETURNING id"
_LOOK: Final = """
SELECT done FROM tallystick_claims WHERE scope = :scope AND id = :id AND expires > {now}"""
_RELEASE: Final = """
DELETE FROM tallystick_claims WHERE scope = :scope AND id = :id AND token = :token AND done = 0"""
_FORGET: Final = "DELETE FROM tallystick_claims WHERE scope = :scope AND id = :id"
_PURGE: Final = """
DELETE FROM tallystick_claims WHERE (scope, id) IN (
    SELECT scope, id FROM tallystick_claims WHERE expires <= {now} LIMIT :most {skip})"""
_BOUND: Final = {"most": 1000}
_PURGE_EVERY: Final = 500
_MOMENT: Final = 1.0
_VERDICTS: Final = {0: "held", 1: "done"}


class SqlClaims:
    """The rows of one scope, in SQLite or PostgreSQL."""

    def __init__(self, database: Database, terms: Terms) -> None:
        self._database: Final = database
        self._terms: Final = terms
        self._lock: Final = Lock()
        self._created = False
        self._taken = 0

    def claim(self, message_id: str) -> Claim:
        """Claim an id."""
        token = new_uuid()
        values = {"token": token, "done": 0, "seconds": self._terms.lease}
        with self._borrow() as connection:
            verdict = self._take(connection, message_id, values)
            self._purge_now_and_then(connection)
        return Claim(verdict, token if verdict == "run" else "")

    def complete(self, message_id: str, token: str) -> bool:
        """Mark it as done."""
        values = {"token": token, "done": 1, "seconds": self._terms.keep}
        with self._borrow() as connection:
            return bool(self._run(connection, _COMPLETE, message_id, values))

    def release(self, message_id: str, token: str) -> None:
        """Give a claim back."""
        with self._borrow() as connection:
            self._run(connection, _RELEASE, message_id, {"token": token})

    def forget(self, message_id: str) -> None:
        """Let the message run again."""
        with self._borrow() as connection:
            self._run(connection, _FORGET, message_id, {})

    @contextmanager
    def transaction(self, message_id: str | None) -> Iterator[Claim]:
        """Lend a transaction in which the id is marked as done."""
        database = self._database
        with self._borrow() as connection:
            verdict = self._open(connection, message_id)
            if verdict != "run":
                database.rollback(connection)
                yield Claim(verdict)
                return
            yield Claim("run", connection=connection)
            database.commit(connection)
            self._purge_now_and_then(connection)

    def purge(self) -> int:
        """Delete expired rows, a limited number; return how many."""
        with self._borrow() as connection:
            return len(self._database.run(connection, f"{_PURGE} RETURNING id", _BOUND))

    def close(self) -> None:
        """End all connections."""
        self._database.close()

    def _open(self, connection: Any, message_id: str | None) -> str:
        values = {"token": "", "done": 1, "seconds": self._terms.keep}
        try:
            self._database.begin(connection, _MOMENT)
            verdict = self._take(connection, message_id, values) if message_id else "run"
            if verdict == "run":
                self._database.wait_as_usual(connection)
        except Busy:
            return "held"
        return verdict

    def _take(self, connection: Any, message_id: str, values: dict[str, Any]) -> str:
        """Take the id, or return its state; if the other row disappears, try once more."""
        for _ in range(2):
            if self._run(connection, _CLAIM, message_id, values):
                return "run"
            if rows := self._run(connection, _LOOK, message_id, {}):
                return _VERDICTS[rows[0][0]]
        return "held"

    def _run(
        self, connection: Any, statement: str, message_id: str, values: dict[str, Any]
    ) -> list[Any]:
        values = {"scope": self._terms.scope, "id": message_id, **values}
        return self._database.run(connection, statement, values)

    def _purge_now_and_then(self, connection: Any) -> None:
        with self._lock:
            self._taken += 1
            due = self._taken % _PURGE_EVERY == 0
        if due:
            self._database.run(connection, _PURGE, _BOUND)

    @contextmanager
    def _borrow(self) -> Iterator[Any]:
        """Lend a connection to a database that has the table."""
        try:
            with self._database.borrow() as connection:
                if not self._created:
                    self._database.create(connection, _TABLE, _CREATE)
                    self._created = True
                yield connection
        except Busy as error:
            raise StoreUnavailable(f"the store is busy: {error}", code="store_busy") from error


def open_store(url: StoreUrl, terms: Terms, clock: Callable[[], float]) -> SqlClaims:
    """Connect when the first claim is made."""
    return SqlClaims(open_database(url, clock), terms)
