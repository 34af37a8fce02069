"""Hold moves until their time, for brokers without delays: a heap, limited in number and bytes.

These messages are still unsettled at the broker. They take no handler slot, so many failures do not
stop the queue. They are in memory, so their number and bytes are limited. No I/O; the time is an
argument.
"""

from __future__ import annotations

from collections.abc import Collection
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Final

from tallystick.runtime.settlement import Plan

__all__ = ["Waiting"]

_MOST: Final = 10_000
_MOST_BYTES: Final = 64 << 20


class Waiting:
    """The plans of one worker that wait for their time."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Plan]] = []
        self._order: Final = count()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def room(self) -> int:
        """The number of plans that may still be added."""
        return _MOST - len(self._heap) if self._bytes < _MOST_BYTES else 0

    @property
    def next(self) -> float:
        """The time of the first plan."""
        return self._heap[0][0] if self._heap else inf

    def add(self, plan: Plan, due: float) -> None:
        """Add a plan that waits until the given time."""
        heappush(self._heap, (due, next(self._order), plan))
        self._bytes += len(plan.delivery.frame.body)

    def take(self, now: float) -> list[Plan]:
        """Take out the plans whose time has come, in order."""
        due: list[Plan] = []
        while self._heap and self._heap[0][0] <= now:
            due.append(heappop(self._heap)[2])
        self._bytes -= sum(len(plan.delivery.frame.body) for plan in due)
        return due

    def drop(self, numbers: Collection[int]) -> list[Plan]:
        """Take out the plans of deliveries, by their identities."""
        dropped = [one[2] for one in self._heap if id(one[2].delivery) in numbers]
        if dropped:
            self._heap = [one for one in self._heap if id(one[2].delivery) not in numbers]
            heapify(self._heap)
            self._bytes -= sum(len(plan.delivery.frame.body) for plan in dropped)
        return dropped
