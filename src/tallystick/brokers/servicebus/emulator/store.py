"""Entities and messages of the emulator in a SQLite file, so that they survive a restart.

Changes are collected and written by `flush` in one transaction. The listener flushes before its
answers are sent, so confirmed messages survive kill -9 (but not a power loss). Locks, held sessions
and their states are lost: after a restart every message is active.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tallystick.brokers.servicebus.emulator.entity import Held
from tallystick.brokers.servicebus.emulator.sections import read_message, write_message

__all__ = ["Store"]

_TABLES: Final = """
PRAGMA journal_mode=WAL;
PRAGMA synchronous=NORMAL;
CREATE TABLE IF NOT EXISTS entities (path TEXT PRIMARY KEY, last INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS messages (
  path TEXT, sequence INTEGER, message BLOB, enqueued REAL, count INTEGER, state TEXT, source TEXT,
  PRIMARY KEY (path, sequence)
) WITHOUT ROWID;
"""
_NAME: Final = "INSERT INTO entities VALUES (?, ?) ON CONFLICT DO UPDATE SET last = max(last, ?2)"
_KEEP: Final = "INSERT OR REPLACE INTO messages VALUES (?, ?, ?, ?, ?, ?, ?)"
_DROP: Final = "DELETE FROM messages WHERE path = ? AND sequence = ?"
_LOAD: Final = (
    "SELECT sequence, message, enqueued, count, state, source FROM messages WHERE path = ?"
)


class Store:
    """One file."""

    def __init__(self, path: Path) -> None:
        self._store: Final = sqlite3.connect(path, isolation_level=None)
        self._store.executescript(_TABLES)
        self._changes: dict[tuple[str, int], Held | None] = {}
        self._last: dict[str, int] = {}

    def name(self, path: str) -> None:
        """Record a new entity."""
        self._last.setdefault(path, 0)

    def keep(self, path: str, held: Held) -> None:
        """Record the current state of a message."""
        self._changes[path, held.sequence] = held
        self._last[path] = max(self._last.get(path, 0), held.sequence)

    def drop(self, path: str, sequence: int) -> None:
        """Record that a message is removed."""
        self._changes[path, sequence] = None

    def flush(self) -> None:
        """Write all changes since the last flush."""
        if not self._changes and not self._last:
            return
        kept = [(*key, *_row(held)) for key, held in self._changes.items() if held is not None]
        gone = [key for key, held in self._changes.items() if held is None]
        with self._store:
            self._store.execute("BEGIN")
            self._store.executemany(_NAME, self._last.items())
            self._store.executemany(_KEEP, kept)
            self._store.executemany(_DROP, gone)
        self._changes, self._last = {}, {}

    def load(self) -> Iterator[tuple[str, int, list[Held]]]:
        """Give each entity: its path, its last number, and its messages in order."""
        for path, last in self._store.execute("SELECT path, last FROM entities").fetchall():
            rows = self._store.execute(_LOAD, (path,)).fetchall()
            yield (
                path,
                last,
                [
                    Held(read_message(message), sequence, enqueued, count, state, source)
                    for sequence, message, enqueued, count, state, source in rows
                ],
            )

    def close(self) -> None:
        """Write the recorded changes, and close the file."""
        self.flush()
        self._store.close()


def _row(held: Held) -> tuple[bytes, float, int, str, str]:
    data = write_message(held.message, held.count, {})
    return data, held.enqueued, held.count, held.state, held.source
