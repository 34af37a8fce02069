"""Report the state of a run: outcomes, messages in flight, lag, last error.

Lag is asked over a separate connection, because the connection of a worker belongs to its thread.
It is None if the broker does not report it. `last_error` holds the same as the log: the queue, the
outcome and the kind of the error, never the text of an exception.
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
    """Asks a broker for the number of waiting messages; for one thread at a time."""

    def __init__(self, link: Link) -> None:
        self._link: Final = link
        self._transport: Transport | None = None
        self._told = True

    def ask(self, queues: Iterable[str]) -> int | None:
        """Return the number of waiting messages, or None if the broker does not report it."""
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
