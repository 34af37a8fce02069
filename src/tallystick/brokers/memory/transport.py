"""Messages inside this process: the reference behaviour, without a broker.

All users of `memory://NAME` in this process share one broker; `memory://` belongs to the one that
opened it. When a connection closes, its unsettled deliveries go back to the front of their queues.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import count
from threading import Condition
from time import monotonic, time
from typing import Final

from tallystick.core.errors import UsageError
from tallystick.core.frame import Frame
from tallystick.core.transport import Address, Capabilities, Delivery, check_options, lost

__all__ = ["MemoryTransport", "Space", "connect"]

_MILLISECOND: Final = 0.001


class Space:
    """The queues of one name. The time is a function argument."""

    def __init__(self, clock: Callable[[], float] = time) -> None:
        self.clock: Final = clock
        self.changed: Final = Condition()
        self._ready: Final[defaultdict[str, deque[Frame]]] = defaultdict(deque)
        self._later: Final[defaultdict[str, list[tuple[float, int, Frame]]]] = defaultdict(list)
        self._order: Final = count()

    def put(self, queue: str, frame: Frame, due: float) -> None:
        """Add a frame at the end, or later; the caller holds `changed`."""
        if due > self.clock():
            heappush(self._later[queue], (due, next(self._order), frame))
        else:
            self._ready[queue].append(frame)
        self.changed.notify_all()

    def put_back(self, queue: str, frame: Frame) -> None:
        """Add a frame at the front; the caller holds `changed`."""
        self._ready[queue].appendleft(frame)
        self.changed.notify_all()

    def take(self, queue: str, limit: int) -> list[Frame]:
        """Take the frames whose time has come; the caller holds `changed`."""
        later, ready, now = self._later[queue], self._ready[queue], self.clock()
        while later and later[0][0] <= now:
            ready.append(heappop(later)[2])
        return [ready.popleft() for _ in range(min(limit, len(ready)))]

    def waiting(self, queue: str) -> int:
        """Count the waiting frames; the caller holds `changed`."""
        return len(self._ready[queue]) + len(self._later[queue])

    def next_due(self, queue: str) -> float | None:
        """Return the seconds until the next delayed frame."""
        later = self._later[queue]
        return max(later[0][0] - self.clock(), 0.0) if later else None


class MemoryTransport:
    """One connection to a space."""

    capabilities = Capabilities(
        delays=True,
        waits=True,
        headers=True,
        ordered=True,
        returns="connection",
        counts=False,
        buffered=True,
    )

    def __init__(self, space: Space) -> None:
        self._space: Final = space
        self._taken: dict[int, Delivery] = {}
        self._number: Final = count()

    def ensure(self, queues: Sequence[str]) -> None:
        """Do nothing: a queue exists when it is named."""

    def send(self, queue: str, frames: Sequence[Frame]) -> None:
        """Send frames in order."""
        with self._space.changed:
            for frame in frames:
                self._put(queue, frame)

    def receive(self, queue: str, limit: int, timeout: float) -> list[Delivery]:
        """Take the available frames, or wait for one."""
        end = monotonic() + timeout
        space = self._space
        with space.changed:
            frames = space.take(queue, limit)
            while not frames and (left := end - monotonic()) > 0:
                due = space.next_due(queue)
                space.changed.wait(left if due is None else min(left, due + _MILLISECOND))
                frames = space.take(queue, limit)
            deliveries = [Delivery(frame, queue, next(self._number)) for frame in frames]
            self._taken.update((one.handle, one) for one in deliveries)
        return deliveries

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Remove the deliveries."""
        for delivery in deliveries:
            self._settle(delivery)

    def release(self, delivery: Delivery, delay: float = 0.0) -> None:
        """Put it back at the front, or at the end after a delay."""
        space = self._space
        with space.changed:
            self._settle(delivery)
            if delay > 0:
                space.put(delivery.queue, delivery.frame, space.clock() + delay)
            else:
                space.put_back(delivery.queue, delivery.frame)

    def replace(self, delivery: Delivery, queue: str, frame: Frame) -> None:
        """Add the frame and remove the delivery, in one step."""
        with self._space.changed:
            self._settle(delivery)
            self._put(queue, frame)

    def leave(self, delivery: Delivery) -> None:
        """Put it back."""
        self.release(delivery)

    def give_up(self, delivery: Delivery, reason: str) -> None:  # noqa: ARG002
        """Put it back: there is no dead-letter policy here."""
        self.release(delivery)

    def backlog(self, queue: str) -> int:
        """Count all frames, delayed or not."""
        with self._space.changed:
            return self._space.waiting(queue)

    def renew(self, deliveries: Sequence[Delivery]) -> list[Delivery]:  # noqa: ARG002
        """Do nothing: a delivery stays valid until its connection closes."""
        return []

    def close(self) -> None:
        """Put unsettled frames back, oldest first."""
        with self._space.changed:
            for delivery in reversed(self._taken.values()):
                self._space.put_back(delivery.queue, delivery.frame)
            self._taken = {}

    def _put(self, queue: str, frame: Frame) -> None:
        due = frame.get("message", "due")
        sections = {name: held for name, held in frame.sections.items() if name != "message"}
        self._space.put(queue, Frame(frame.body, sections), (due or 0) * _MILLISECOND)

    def _settle(self, delivery: Delivery) -> None:
        if self._taken.pop(delivery.handle, None) is None:
            raise lost()


_SPACES: Final[dict[str, Space]] = {}


def connect(address: Address) -> Callable[[], MemoryTransport]:
    """Give a way to open connections to the space that the address names."""
    check_options(address, ())
    if address.port or address.path or address.user:
        raise UsageError(f"{address}: a memory URL has only a name", code="url")
    space = _SPACES.setdefault(address.host, Space()) if address.host else Space()
    return lambda: MemoryTransport(space)
