"""How a run is going: what became of messages, how many are out, how many wait, what went wrong.

The backlog is asked over a connection of its own, because a worker's belongs to its thread. What a
broker does not tell, or not now, is None. `last_error` says what the log says: which queue, what
became of the message and the kind of error, and nothing of what an exception says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tallystick.core.errors import TallystickError
from tallystick.core.transport import Countable, Transport
from tallystick.runtime.address import Link

__all__ = ["Backlog", "Status"]


@dataclass(frozen=True, slots=True)
class Status:
    """One moment of a run."""

    counts: Counter[str]
    in_flight: int
    last_error: str


class Backlog:
    """Asks a broker how many messages wait; one thread at a time."""

    def __init__(self, link: Link) -> None:
        self._link: Final = link
        self._transport: Transport | None = None
        self._told = True

    def ask(self, queues: Iterable[str]) -> int | None:
        """Give how many messages wait in these queues, or None when the broker does not tell."""
        if not self._told:
            return None
        try:
            if self._transport is None:
                self._transport = self._link.open()
            if not isinstance(self._transport, Countable):
                self._told = False
                self.close()
                return None
            return sum(self._transport.backlog(queue) for queue in queues)
        except TallystickError:
            self.close()  # it is asked again, over another connection
            return None

    def close(self) -> None:
        """End the connection."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()
