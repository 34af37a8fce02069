"""The files of a fault run, safe against kills: a line is one write, an effect one transaction.

    effects.db        an effect and its mark, in one transaction (SQLite)
    worker-N.runs     `b ID` a handler began, `e ID` it ended, `s ID` a repetition was skipped
    publisher.runs    `a FROM TO` tried to send these numbers, `c FROM TO` the broker has them

The lines written before a SIGKILL are kept. The ids are computed from the
seed and the number, so both sides know them and a repeated send has the same id.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from threading import Lock
from typing import Final
from uuid import UUID, uuid5

__all__ = ["Ledger", "Runs", "id_of", "read_ranges", "read_runs"]

_SPACE: Final = UUID("6f0c3b1e-7b0a-4d39-9c0a-3a4f2f2f6d10")
_PATIENCE: Final = 60.0
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS marks (id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS effects (place INTEGER PRIMARY KEY, id TEXT NOT NULL, n INTEGER);
"""


def id_of(seed: int, number: int) -> str:
    """Give the id of a message of a run."""
    return str(uuid5(_SPACE, f"{seed}/{number}"))


class Runs:
    """A file of lines that several threads write to."""

    def __init__(self, path: Path) -> None:
        self._file: Final = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, line: str) -> None:
        """Write one line, whole."""
        os.write(self._file, line.encode() + b"\n")


def read_runs(paths: Iterable[Path]) -> dict[str, Counter[str]]:
    """Read what workers wrote: how often each id has each mark."""
    found: dict[str, Counter[str]] = {mark: Counter() for mark in "bes"}
    for path in paths:
        for line in _lines(path):
            mark, _, one = line.partition(" ")
            found[mark][one] += 1
    return found


def read_ranges(path: Path, mark: str) -> Counter[int]:
    """Read what a publisher wrote: how often each number has the mark."""
    found: Counter[int] = Counter()
    for line in _lines(path):
        kind, start, stop = line.split()
        if kind == mark:
            found.update(range(int(start), int(stop)))
    return found


def _lines(path: Path) -> list[str]:
    """Read whole lines; one that was cut off by a kill was not written."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return text[: text.rfind("\n") + 1].splitlines()


class Ledger:
    """The effects of a run, shared by processes; also an app's `Seen`."""

    def __init__(self, path: Path, runs: Runs | None = None) -> None:
        self._lock: Final = Lock()
        self._runs: Final = runs
        self._store: Final = sqlite3.connect(
            path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
        )
        self._store.execute("PRAGMA journal_mode=WAL")
        self._store.execute("PRAGMA synchronous=NORMAL")
        self._store.executescript(_TABLES)

    def seen(self, message_id: str) -> bool:
        """Tell whether the message took effect before, and note that it came again."""
        with self._lock:
            found = self._store.execute("SELECT 1 FROM marks WHERE id = ?", (message_id,))
            known = found.fetchone() is not None
        if known and self._runs is not None:
            self._runs.write(f"s {message_id}")
        return known

    def remember(self, message_id: str) -> None:
        """Do nothing: the mark was made with the effect."""

    def forget(self, message_id: str) -> None:
        """Remove the mark."""
        with self._lock:
            self._store.execute("DELETE FROM marks WHERE id = ?", (message_id,))

    def apply(self, message_id: str, number: int) -> bool:
        """Store an effect unless the message had one; effect and mark are one transaction."""
        with self._lock, self._store:
            self._store.execute("BEGIN IMMEDIATE")
            new = self._store.execute(
                "INSERT OR IGNORE INTO marks VALUES (?)", (message_id,)
            ).rowcount
            if new:
                self._add(message_id, number)
        return bool(new)

    def add(self, message_id: str, number: int) -> None:
        """Store an effect, also if the message had one before."""
        with self._lock:
            self._add(message_id, number)

    def _add(self, message_id: str, number: int) -> None:
        self._store.execute("INSERT INTO effects (id, n) VALUES (?, ?)", (message_id, number))

    def count(self) -> int:
        """Give the number of effects."""
        with self._lock:
            found = self._store.execute("SELECT coalesce(max(place), 0) FROM effects")
            return int(found.fetchone()[0])

    def count_messages(self) -> int:
        """Give the number of messages with an effect."""
        with self._lock:
            found = self._store.execute("SELECT count(DISTINCT id) FROM effects")
            return int(found.fetchone()[0])

    def effects(self) -> list[tuple[str, int]]:
        """Give every effect: the message's id and number."""
        with self._lock:
            return list(self._store.execute("SELECT id, n FROM effects ORDER BY place"))

    def close(self) -> None:
        """End the connection."""
        self._store.close()
