"""The dead letters that a redrive does not send back: it holds them until it ends.

They are unsettled at the broker and held in memory, so their number and bytes are limited. If a
broker delivers one again after its reservation ended, the new delivery replaces the old one. A
second letter with the same bytes is a different letter. No I/O; times are arguments.
"""

from __future__ import annotations

from itertools import count
from math import inf
from typing import Final

from tallystick.core.transport import Delivery

__all__ = ["Kept"]

_MOST: Final = 50_000
_MOST_BYTES: Final = 64 << 20


class Kept:
    """The letters of one redrive that stay."""

    def __init__(self) -> None:
        self._held: Final[dict[int, Delivery]] = {}
        self._same: Final[dict[bytes, list[tuple[float, int]]]] = {}
        self._order: Final = count()
        self._doubtful = 0
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._held)

    @property
    def room(self) -> int:
        """The number of letters that may still be added."""
        return max(_MOST - len(self._held), 0) if self._bytes < _MOST_BYTES else 0

    def add(self, delivery: Delivery, since: float, now: float) -> bool:
        """Hold a letter; return False if it is a redelivery after its reservation ended."""
        body, lease = delivery.frame.body, delivery.lease
        same = self._same.setdefault(body, [])
        until, number = same[0] if same else (inf, self._doubtful)
        if until <= now or number < self._doubtful:
            del self._held[number], same[0]
        else:
            self._bytes += len(body)
        self._held[number := next(self._order)] = delivery
        same.append((inf if lease is None else since + lease, number))
        return until > now

    def doubt(self) -> None:
        """Note that the connection may be lost: the broker may deliver all held letters again.

        This does not mean that every letter was examined.
        """
        self._doubtful = next(self._order)

    def all(self) -> list[Delivery]:
        """Return the letters in the order of receiving."""
        return list(self._held.values())
