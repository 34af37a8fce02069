"""Peek at a queue: the service shows messages by their sequence numbers and locks none.

It shows the messages in the queue at that moment: active, locked, deferred or scheduled. It does
not see messages that are completed between two polls.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from time import monotonic, sleep
from typing import Any, Final

from tallystick.core.frame import Frame

__all__ = ["ServiceBusTap"]

_EVERY: Final = 0.25
_MOST: Final = 250


class ServiceBusTap:
    """One receiver that only peeks, and its last sequence number."""

    def __init__(
        self,
        receiver: Any,
        frame_of: Callable[[Any], Frame],
        talking: Callable[[], AbstractContextManager[Any]],
        start: str,
    ) -> None:
        self._receiver: Final = receiver
        self._frame_of: Final = frame_of
        self._talking: Final = talking
        self._next = 1
        if start == "latest":
            while self._peek(_MOST):
                pass

    def read(self, limit: int, timeout: float) -> list[Frame]:
        """Peek until there is something new, four times a second."""
        end = monotonic() + timeout
        while True:
            frames = self._peek(min(limit, _MOST))
            left = end - monotonic()
            if frames or left <= 0:
                return frames
            sleep(min(_EVERY, left))

    def _peek(self, limit: int) -> list[Frame]:
        with self._talking():
            messages = self._receiver.peek_messages(limit, sequence_number=self._next)
        if messages:
            self._next = max(one.sequence_number for one in messages) + 1
        return [self._frame_of(one) for one in messages]

    def close(self) -> None:
        """End the receiver."""
        with self._talking():
            self._receiver.close()
