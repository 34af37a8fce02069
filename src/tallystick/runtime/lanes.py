"""Keep the order of a group: one message of a group is handled at a time, the others wait.

Messages of different groups, and those without a group, are handled in parallel. A message that
must be handled again stops its group: no later message overtakes it. No I/O.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from tallystick.core.transport import Delivery

__all__ = ["Lanes"]


class Lanes:
    """The groups with a message in a handler, and the messages that wait behind it."""

    def __init__(self) -> None:
        self._lanes: Final[dict[str, deque[Delivery]]] = {}
        self._stopped: Final[set[str]] = set()

    @property
    def stuck(self) -> int:
        """The number of messages that wait behind one that must be handled again."""
        return sum(len(self._lanes[group]) for group in self._stopped)

    def __bool__(self) -> bool:
        return bool(self._lanes)

    def enter(self, delivery: Delivery) -> bool:
        """Return whether a delivery may be handled now; otherwise it waits."""
        if not delivery.group:
            return True
        lane = self._lanes.get(delivery.group)
        if lane is None:
            self._lanes[delivery.group] = deque()
            return True
        lane.append(delivery)
        return False

    def stop(self, delivery: Delivery) -> None:
        """Block the lane of a delivery that must be handled again."""
        self._stopped.add(delivery.group)

    def resume(self, delivery: Delivery) -> None:
        """Note that a handler runs the first delivery again."""
        self._stopped.discard(delivery.group)

    def leave(self, delivery: Delivery) -> Delivery | None:
        """Return the next message of the group when a handler has ended."""
        self._stopped.discard(delivery.group)
        lane = self._lanes.get(delivery.group)
        if lane:
            return lane.popleft()
        self._lanes.pop(delivery.group, None)
        return None

    def empty(self, delivery: Delivery) -> list[Delivery]:
        """Return all messages behind a delivery, in order, and remove the lane."""
        self._stopped.discard(delivery.group)
        return list(self._lanes.pop(delivery.group, ()))

    def clear(self) -> list[Delivery]:
        """Return all waiting messages, in order, and remove them."""
        waiting = [one for lane in self._lanes.values() for one in lane]
        for lane in self._lanes.values():
            lane.clear()
        return waiting
