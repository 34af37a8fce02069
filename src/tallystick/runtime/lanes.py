"""One after the other: of the messages of one group, one is with a handler and the others wait.

Messages of different groups, and those of none, are handled side by side. No I/O here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from tallystick.core.transport import Delivery

__all__ = ["Lanes"]


class Lanes:
    """The groups that have a message with a handler, and what waits behind it."""

    def __init__(self) -> None:
        self._lanes: Final[dict[str, deque[Delivery]]] = {}

    def __bool__(self) -> bool:
        return bool(self._lanes)

    def enter(self, delivery: Delivery) -> bool:
        """Say whether a delivery may be handled now; else it waits."""
        if not delivery.group:
            return True
        lane = self._lanes.get(delivery.group)
        if lane is None:
            self._lanes[delivery.group] = deque()
            return True
        lane.append(delivery)
        return False

    def leave(self, delivery: Delivery) -> Delivery | None:
        """Give the one that follows a delivery whose handler has ended."""
        lane = self._lanes.get(delivery.group)
        if lane:
            return lane.popleft()
        self._lanes.pop(delivery.group, None)
        return None

    def leave_all(self, deliveries: Iterable[Delivery]) -> list[Delivery]:
        """Give all that may be handled now that the handlers of these have ended."""
        return [one for each in deliveries if (one := self.leave(each)) is not None]

    def clear(self) -> list[Delivery]:
        """Give all that wait, in order; nothing waits any more."""
        waiting = [one for lane in self._lanes.values() for one in lane]
        for lane in self._lanes.values():
            lane.clear()
        return waiting
