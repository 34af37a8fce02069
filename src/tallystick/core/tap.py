"""A `Tap` reads the frames of a queue without consuming them: consumers still get every message.

A tap sees different frames by broker (table in docs/guides/capture.md): a log is read from its
beginning or its end, a queue shows the messages that wait in it at that moment.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Protocol

from tallystick.core.frame import Frame

__all__ = ["STARTS", "Looks", "Tap", "Watch"]

STARTS: Final = ("earliest", "latest")
_REMEMBERED: Final = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """The options of a tap: the queue, the starting point, and allowed side effects.

    `peek` allows a tap with side effects (RabbitMQ: take and put back); `exchange` and `key` name
    the source of a RabbitMQ queue, so that the tap's own queue gets a copy.
    """

    queue: str
    start: str = "earliest"
    peek: bool = False
    exchange: str = ""
    key: str = ""


class Tap(Protocol):
    """A reader of one queue that consumes nothing."""

    def read(self, limit: int, timeout: float) -> list[Frame]:
        """Give up to `limit` frames not given before; an empty list when none came in time."""

    def close(self) -> None:
        """Stop the tap and remove everything that it created."""


class Looks:
    """The messages of earlier polls, so that each message is reported once.

    Messages are compared by their bodies. Two equal messages are reported twice if both waited at
    the same poll; beyond a limit, the oldest are forgotten.
    """

    def __init__(self, most: int = _REMEMBERED) -> None:
        self._most: Final = most
        self._seen: Final[OrderedDict[bytes, int]] = OrderedDict()
        self._now: dict[bytes, int] = {}

    def begin(self) -> None:
        """Begin another poll of the queue, from its first message."""
        self._now = {}

    def unseen(self, frames: Iterable[Frame]) -> list[Frame]:
        """Return the frames of this poll that no earlier poll has seen."""
        new: list[Frame] = []
        for frame in frames:
            digest = blake2b(frame.body, digest_size=16).digest()
            number = self._now[digest] = self._now.get(digest, 0) + 1
            if number > self._seen.get(digest, 0):
                self._seen[digest] = number
                new.append(frame)
            self._seen.move_to_end(digest)
        while len(self._seen) > self._most:
            self._seen.popitem(last=False)
        return new
