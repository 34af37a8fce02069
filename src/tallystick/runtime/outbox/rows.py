"""The tables of the outbox: one row per message, in the order of adding, and one row per queue.

The state of a message is waiting (0), sent (1) or failed (2). The row of a queue names the relay
that works on it: locked while its transaction is open (PostgreSQL), or leased until a time
(SQLite).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

__all__ = [
    "COUNT", "CREATE", "FAULTS", "FAULTY", "INSERT", "LEASE", "LOCK", "NEXT", "OLDEST",
    "PARK", "PENDING", "PUT_OFF", "QUEUES", "RELEASE", "RENEW", "RETRY", "SEEN", "SENT", "SWEEP",
    "TABLE", "Fault", "Options", "Row", "mark_sent",
]  # fmt: skip

PENDING: Final = 0
SENT: Final = 1
FAULTY: Final = 2


class Options(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields that a publish adds to the message."""

    headers: dict[str, str] = {}
    key: str | None = None
    group: str = ""
    delay: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One message that waits."""

    position: int
    id: str
    body: bytes = field(repr=False)
    options: str = field(repr=False)
    created: float
    tries: int
    wait: float


@dataclass(frozen=True, slots=True)
class Fault:
    """One message that cannot be sent, and why."""

    position: int
    id: str
    queue: str
    error: str


TABLE: Final = "tallystick_outbox"
CREATE: Final = (
    """CREATE TABLE IF NOT EXISTS tallystick_outbox (
    position {serial} PRIMARY KEY, id text NOT NULL, queue text NOT NULL, body {bytes} NOT NULL,
    options text NOT NULL, created double precision NOT NULL,
    state smallint NOT NULL DEFAULT 0, since double precision NOT NULL DEFAULT 0,
    tries integer NOT NULL DEFAULT 0, due double precision NOT NULL DEFAULT 0,
    error text NOT NULL DEFAULT '')""",
    """CREATE INDEX IF NOT EXISTS tallystick_outbox_pending
    ON tallystick_outbox (queue, position) WHERE state = 0""",
    """CREATE INDEX IF NOT EXISTS tallystick_outbox_sent
    ON tallystick_outbox (since) WHERE state = 1""",
    """CREATE TABLE IF NOT EXISTS tallystick_outbox_queues (
    queue text PRIMARY KEY, token text NOT NULL, until double precision NOT NULL)""",
)
INSERT: Final = """
INSERT INTO tallystick_outbox (id, queue, body, options, created)
VALUES (:id, :queue, :body, :options, :created)"""

QUEUES: Final = "SELECT DISTINCT queue FROM tallystick_outbox WHERE state = 0 ORDER BY queue"
SEEN: Final = """
INSERT INTO tallystick_outbox_queues (queue, token, until) VALUES (:queue, '', 0)
ON CONFLICT (queue) DO NOTHING"""
LOCK: Final = "SELECT queue FROM tallystick_outbox_queues WHERE queue = :queue {skip}"
LEASE: Final = """
UPDATE tallystick_outbox_queues SET token = :token, until = {now} + :lease
WHERE queue = :queue AND (until <= {now} OR token = :token) RETURNING queue"""
RENEW: Final = """
UPDATE tallystick_outbox_queues SET until = {now} + :lease
WHERE queue = :queue AND token = :token RETURNING queue"""
RELEASE: Final = """
UPDATE tallystick_outbox_queues SET until = 0 WHERE queue = :queue AND token = :token"""
NEXT: Final = """
SELECT position, id, body, options, created, tries, due - {now}
FROM tallystick_outbox WHERE queue = :queue AND state = 0 ORDER BY position LIMIT :most"""
PARK: Final = """
UPDATE tallystick_outbox SET state = 2, since = {now}, error = :error WHERE position = :position"""
PUT_OFF: Final = """
UPDATE tallystick_outbox SET tries = tries + 1, due = {now} + :wait, error = :error
WHERE position = :position"""
SWEEP: Final = """
DELETE FROM tallystick_outbox WHERE position IN (
    SELECT position FROM tallystick_outbox WHERE state = 1 AND since <= {now} - :keep
    ORDER BY since LIMIT :most {skip})"""

COUNT: Final = "SELECT state, count(*) FROM tallystick_outbox GROUP BY state"
OLDEST: Final = "SELECT {now} - min(created) FROM tallystick_outbox WHERE state = 0"
FAULTS: Final = """
SELECT position, id, queue, error FROM tallystick_outbox WHERE state = 2
ORDER BY position LIMIT :most"""
RETRY: Final = """
UPDATE tallystick_outbox SET state = 0, tries = 0, due = 0 WHERE state = 2 RETURNING position"""


def mark_sent(positions: Sequence[int]) -> str:
    """Write the one statement that marks rows as sent."""
    numbers = ", ".join(str(int(one)) for one in positions)
    return (
        "UPDATE tallystick_outbox SET state = 1, since = {now}, error = '' "  # noqa: S608 (numbers)
        f"WHERE position IN ({numbers})"
    )
