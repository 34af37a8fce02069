"""Read a list and follow it: the waiting elements, from its front or from its end.

The tap remembers the last element that it reported. When consumers have taken elements from the
front, it searches for that element; if the element is gone, every waiting element counts as new. It
misses elements that are taken between two polls, and it may report an element twice if the
same bytes are pushed again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from time import monotonic, sleep
from typing import Any, Final

from tallystick.core.frame import Frame

__all__ = ["RedisTap"]

_EVERY: Final = 0.1


class RedisTap:
    """One list, and the last reported element."""

    def __init__(
        self,
        client: Any,
        key: str,
        frame_of: Callable[[bytes], Frame],
        talking: Callable[[], AbstractContextManager[Any]],
        start: str,
    ) -> None:
        self._client: Final = client
        self._key: Final = key
        self._frame_of: Final = frame_of
        self._talking: Final = talking
        self._place = 0
        self._last: bytes | None = None
        if start == "latest":
            with talking(), client.pipeline(transaction=True) as both:
                both.llen(key)
                both.lindex(key, -1)
                self._place, self._last = both.execute()

    def read(self, limit: int, timeout: float) -> list[Frame]:
        """Look until there is something new, ten times a second."""
        end = monotonic() + timeout
        while True:
            with self._talking():
                elements = self._look(limit)
            left = end - monotonic()
            if elements or left <= 0:
                return [self._frame_of(one) for one in elements]
            sleep(min(_EVERY, left))

    def _look(self, limit: int) -> list[bytes]:
        while True:
            with self._client.pipeline(transaction=True) as both:
                both.lindex(self._key, max(self._place - 1, 0))
                both.lrange(self._key, self._place, self._place + limit - 1)
                before, elements = both.execute()
            if self._last is None or not self._place or before == self._last:
                break
            found = self._client.lpos(self._key, self._last)
            self._place = 0 if found is None else found + 1
        if elements:
            self._place += len(elements)
            self._last = elements[-1]
        return list(elements)

    def close(self) -> None:
        """Do nothing: the connection belongs to the transport."""
