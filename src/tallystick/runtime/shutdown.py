"""Handle the signals that stop a worker: the first asks it to finish, the second ends it at once.

After a forced end, the broker delivers unsettled messages again.
"""

from __future__ import annotations

import signal
from threading import Event, current_thread, main_thread
from types import FrameType
from typing import Any, Final

__all__ = ["Signals"]

_THOSE: Final = (signal.SIGINT, signal.SIGTERM)


class Signals:
    """A context in which signals set an event; at its end the earlier handlers are restored."""

    def __init__(self, stopping: Event, *, enabled: bool) -> None:
        self._stopping: Final = stopping
        self._enabled: Final = enabled and current_thread() is main_thread()
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> None:
        if self._enabled:
            self._before = {number: signal.signal(number, self._caught) for number in _THOSE}

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _caught(self, number: int, _frame: FrameType | None) -> None:
        if self._stopping.is_set():
            raise SystemExit(128 + number)
        self._stopping.set()
