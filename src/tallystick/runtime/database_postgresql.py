"""PostgreSQL over psycopg 3, for `database`.

It connects when it is first used. A lost network connection is noticed within half a minute.
Waiting for a lock has a time limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tallystick.core.extras import importing
from tallystick.runtime.database import Busy, Idle, ended, write_for
from tallystick.runtime.store_url import StoreUrl, store_fault

__all__ = ["PostgresDatabase"]

_LOCK: Final = 0x7461_6C6C_79  # 'tally'
_DIALING: Final[dict[str, Any]] = {
    "connect_timeout": 10,
    "tcp_user_timeout": 30_000,
    "keepalives_idle": 30,
}


class PostgresDatabase:
    """One database on one server."""

    kind = "postgresql"

    def __init__(self, url: StoreUrl) -> None:
        with importing("postgresql"):
            import psycopg  # noqa: PLC0415 (loads only when it is used)
        self._driver: Final = psycopg
        self._url: Final = url
        self._idle: Final = Idle(self._connect)
        self.borrow: Final = self._idle.borrow
        self.close: Final = self._idle.close

    def run(
        self, connection: Any, statement: str, values: Mapping[str, Any] | None = None
    ) -> list[Any]:
        """Run one statement and give its rows."""
        try:
            cursor = connection.execute(write_for("postgresql", statement), values or {})
            return cursor.fetchall() if cursor.description else []
        except self._driver.errors.LockNotAvailable as error:
            raise Busy(str(error)) from error
        except self._driver.Error as error:
            raise store_fault(self._url, error) from error

    def create(self, connection: Any, table: str, statements: Sequence[str]) -> None:
        """Create a table and its indexes; a lock keeps two processes from doing so at once.

        An existing table is not changed, because its indexes cannot be created while others write.
        """
        if self.run(connection, "SELECT to_regclass(:name)", {"name": table})[0][0] is not None:
            return
        self.begin(connection)
        self.run(connection, f"SELECT pg_advisory_xact_lock({_LOCK})")
        for statement in statements:
            self.run(connection, statement)
        self.commit(connection)

    def begin(self, connection: Any, wait: float = 10.0) -> None:
        """Open a transaction."""
        self.run(connection, "BEGIN")
        self.run(connection, f"SET LOCAL lock_timeout = {int(wait * 1000)}")

    def wait_as_usual(self, connection: Any) -> None:
        """Wait for locks with the time limit of the server again."""
        self.run(connection, "SET LOCAL lock_timeout TO DEFAULT")

    def commit(self, connection: Any) -> None:
        """Commit the transaction; one in error would be rolled back without a message."""
        if connection.info.transaction_status != self._driver.pq.TransactionStatus.INTRANS:
            raise ended()
        try:
            connection.execute("COMMIT")
        except (self._driver.OperationalError, self._driver.InterfaceError) as error:
            raise store_fault(self._url, error) from error

    def rollback(self, connection: Any) -> None:
        """Roll the transaction back."""
        self.run(connection, "ROLLBACK")

    def _connect(self) -> Any:
        try:
            return self._driver.connect(self._url.target, autocommit=True, **_DIALING)
        except self._driver.Error as error:
            raise store_fault(self._url, error) from error
