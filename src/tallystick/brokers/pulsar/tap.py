"""Read a topic without affecting its subscriptions: from its beginning or from now on.

A reader has a temporary subscription of its own and acknowledges nothing for others. Messages that
all subscriptions have acknowledged may already be deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final

from tallystick.core.frame import Frame

__all__ = ["PulsarTap"]


class PulsarTap:
    """A reader of one topic."""

    def __init__(
        self,
        reader: Any,
        frame_of: Callable[[Any], Frame],
        talking: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        self._reader: Final = reader
        self._frame_of: Final = frame_of
        self._talking: Final = talking

    def read(self, limit: int, timeout: float) -> list[Frame]:
        """Wait for the first message, then take those already received."""
        frames: list[Frame] = []
        wait = max(int(timeout * 1000), 1)
        with self._talking() as pulsar:
            while len(frames) < limit:
                try:
                    frames.append(self._frame_of(self._reader.read_next(wait)))
                except pulsar.Timeout:
                    break
                wait = 1
        return frames

    def close(self) -> None:
        """End the reader."""
        with self._talking():
            self._reader.close()
