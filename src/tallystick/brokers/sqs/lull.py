"""Back-off after an empty poll: from 20 ms, doubling, up to a second.

No I/O; the time is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["Lull"]

_FIRST: Final = 0.02
_LONGEST: Final = 1.0


@dataclass(slots=True)
class Lull:
    """The pause after short polls of one queue that found nothing."""

    until: float = 0.0
    seconds: float = 0.0

    def left(self, now: float) -> float:
        """Return the seconds until the next poll is allowed."""
        return self.until - now

    def note(self, found: int, now: float) -> None:
        """Begin a longer pause when nothing was found; end it when something was."""
        self.seconds = 0.0 if found else min(max(self.seconds * 2, _FIRST), _LONGEST)
        self.until = now + self.seconds
