"""A `Tap` reads the frames of a queue and takes none: its consumers still get every message.

What a tap can see differs by broker (docs/guides/capture.md has the table): a log is read from its
beginning or its end, a queue shows what waits in it at the moment of looking.
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
    """What to look at: a queue, from where on, and how far one may go.

    `peek` allows what is not harmless (RabbitMQ: take and put back); `exchange` and `key` name what
    feeds a RabbitMQ queue, so that a queue of our own gets a copy.
    """

    queue: str
    start: str = "earliest"
    peek: bool = False
    exchange: str = ""
    key: str = ""


class Tap(Protocol):
    """One look at one queue."""

    def read(self, limit: int, timeout: float) -> list[Frame]:
        """Give up to `limit` frames not given before; an empty list when none came in time."""

    def close(self) -> None:
        """Stop looking; nothing of ours stays behind."""


class Looks:
    """What was seen at earlier looks, so that each message is told once.

    Messages are told apart by their bodies. Two that are equal are told twice when both waited at
    the same look; the oldest are forgotten beyond a bound.
    """

    def __init__(self, most: int = _REMEMBERED) -> None:
        self._most: Final = most
        self._seen: Final[OrderedDict[bytes, int]] = OrderedDict()
        self._now: dict[bytes, int] = {}

    def begin(self) -> None:
        """Begin another look at the queue, from its front."""
        self._now = {}

    def unseen(self, frames: Iterable[Frame]) -> list[Frame]:
        """Give those of the next frames of this look that no earlier look has seen."""
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
