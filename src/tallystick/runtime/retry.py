"""How long to wait before the next attempt (ADR-0034, clause 9). Kafka does not use this.

    d(n) = min(maximum, base * multiplier^(n-1)) seconds,   n = attempts + 1, maximum 0 = no cap

Full jitter chooses uniformly from [0, d(n)]; the caller passes a random number in [0, 1].
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import isfinite
from typing import Final

from tallystick.core.errors import UsageError

__all__ = ["JITTERS", "Backoff", "backoff", "backoff_range", "draw"]

JITTERS: Final = ("none", "full")


@dataclass(frozen=True, slots=True)
class Backoff:
    """The settings of a worker. The defaults retry at once."""

    base: float = 0
    multiplier: float = 1
    maximum: float = 0
    jitter: str = "none"

    def __post_init__(self) -> None:
        for name in ("base", "multiplier", "maximum"):
            value = getattr(self, name)
            if not isfinite(value) or value < 0:
                raise UsageError(
                    f"retry {name} must be a number, 0 or more, not {value}", code="backoff"
                )
        if self.jitter not in JITTERS:
            hint = f"use one of {', '.join(JITTERS)}"
            raise UsageError(f"unknown jitter {self.jitter!r}", code="backoff", hint=hint)


def backoff(settings: Backoff, n: int) -> float:
    """Return d(n), the longest wait before attempt n, at most the largest double."""
    if n < 1:
        raise UsageError(f"attempts are counted from 1, so {n} is not valid", code="backoff")
    if not settings.base:
        return 0
    try:
        grown = settings.base * float(settings.multiplier) ** (n - 1)
    except OverflowError:
        grown = sys.float_info.max
    return min(grown, settings.maximum or sys.float_info.max)


def backoff_range(settings: Backoff, n: int) -> tuple[float, float]:
    """Give the shortest and the longest wait; they are equal without jitter."""
    longest = backoff(settings, n)
    return (0 if settings.jitter == "full" else longest), longest


def draw(settings: Backoff, n: int, chance: float) -> float:
    """Return the wait, from a random number in [0, 1] that the caller passes."""
    shortest, longest = backoff_range(settings, n)
    return shortest + (longest - shortest) * chance
