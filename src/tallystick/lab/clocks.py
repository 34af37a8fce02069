"""Clock synchronisation behind one interface: an offset and its maximum error (Appendix E).

A `Clock` gives an `Estimate`: local time `t` plus `offset_at(t)` is the time of the reference, with
an error of at most `bound_at(t)`. An exchange has four times: question sent, question received
there, answer sent there, answer received. The question needs some time, so the offset at `sent` is
at most `there - sent`; for the same reason the offset at `back` is at least `answered - back`.
Every exchange of a burst is one such interval, moved to a common time by `WORST_RATE`. The true
offset is in all intervals: the middle of their intersection is the offset, half of its width is the
bound. The fastest question and the fastest answer decide, even if they belong to two exchanges. If
the intersection is empty, the clocks were not synchronised: that is a failure, never an average.

This corrects Appendix E (sheet, 1.1), which averages the values near the median and has no bound.
There is no pause between two questions: a pause lets the peer sleep and makes the two directions
unequal (sheet, 8.2). On a loaded machine fast exchanges are rare, so it continues to ask while the
bound is wide (`wants_more`).

Clocks run at different rates: several bursts bound the rate, and the bound grows with the time
since the burst. A single burst allows for any quartz. A latency is never clamped: if it is below
zero but within the bound, it is zero within the error; outside the bound, the clocks are not
synchronised, and the result says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations
from typing import Final, Protocol

from tallystick.core.errors import Unavailable

__all__ = [
    "ZERO", "Clock", "Estimate", "Latency", "LocalClock", "Sample", "State", "fit", "intersect",
    "measure_latency", "wants_more",
]  # fmt: skip

_ROUNDING: Final = 1.0
"""Nanoseconds: times are whole ones, and an offset is half of a difference of them."""

WORST_RATE: Final = 200e-6
"""Two quartzes, each at most 100 parts in a million off."""

_ROUND: Final = 25
_MOST: Final = 400
_NARROW: Final = 500_000.0
"""Exchanges come in rounds of 25, up to 400, until the bound is half a millisecond or less."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One question and answer, in nanoseconds: `sent` and `back` by the local clock."""

    sent: int
    there: int
    answered: int
    back: int

    @property
    def round_trip(self) -> int:
        """The time on the way, both ways."""
        return (self.back - self.sent) - (self.answered - self.there)

    @property
    def at(self) -> float:
        """The local time it speaks of."""
        return (self.sent + self.back) / 2


@dataclass(frozen=True, slots=True)
class Estimate:
    """The offset at local time `at` with its bound, and the rate (ns per ns) with its own."""

    offset: float
    bound: float
    at: float = 0.0
    rate: float = 0.0
    rate_bound: float = 0.0
    round_trip: float = 0.0
    samples: int = 0

    def offset_at(self, time: float) -> float:
        """Return the offset to add to this local time."""
        return self.offset + self.rate * (time - self.at)

    def bound_at(self, time: float) -> float:
        """Give how far off that can be."""
        return self.bound + self.rate_bound * abs(time - self.at)


ZERO: Final = Estimate(0.0, 0.0)


class Clock(Protocol):
    """A way to a reference clock."""

    def estimate(self) -> Estimate:
        """Ask the reference, and give offset and bound."""


class LocalClock:
    """The reference is in this process: nothing is between us (Appendix E, in vm)."""

    def estimate(self) -> Estimate:
        """Give zero, with no error."""
        return ZERO


def wants_more(burst: Sequence[Sample]) -> bool:
    """Say whether to ask again: to the end of a round, and on while the bound is wide."""
    if not burst or len(burst) % _ROUND:
        return True
    return len(burst) < _MOST and intersect(burst).bound > _NARROW


def intersect(burst: Sequence[Sample]) -> Estimate:
    """Give the offsets that every exchange of a burst allows."""
    nearest = min(burst, key=lambda one: one.round_trip)
    at = nearest.at
    low = max(one.answered - one.back - WORST_RATE * abs(one.back - at) for one in burst)
    high = min(one.there - one.sent + WORST_RATE * abs(one.sent - at) for one in burst)
    trip = float(nearest.round_trip)
    whole = Estimate(0.0, 0.0, at, 0.0, WORST_RATE, trip, len(burst))
    return _within(low - _ROUNDING, high + _ROUNDING, whole)


def fit(bursts: Sequence[Sequence[Sample]]) -> Estimate:
    """Give the offsets that every burst allows, and the rates."""
    found = [intersect(burst) for burst in bursts]
    best = min(found, key=lambda one: one.bound)
    slow, fast = _rates(found)
    carried = [(one, (slow * (best.at - one.at), fast * (best.at - one.at))) for one in found]
    low = max(one.offset - one.bound + min(drifts) for one, drifts in carried)
    high = min(one.offset + one.bound + max(drifts) for one, drifts in carried)
    rate, rate_bound = (slow + fast) / 2, (fast - slow) / 2
    samples = sum(one.samples for one in found)
    return _within(low, high, replace(best, rate=rate, rate_bound=rate_bound, samples=samples))


def _within(low: float, high: float, about: Estimate) -> Estimate:
    """Give the middle of an interval; an empty one is a failure."""
    if low > high:
        raise _failure(f"the clock samples contradict each other by {round(low - high)} ns")
    return replace(about, offset=(low + high) / 2, bound=(high - low) / 2)


def _failure(why: str) -> Unavailable:
    return Unavailable(
        f"{State.NOT_SYNCHRONISED}: {why}",
        code="clock_stepped",
        hint="a clock was changed in between or is wrong; synchronise again",
    )


def _rates(found: Sequence[Estimate]) -> tuple[float, float]:
    """Give the slowest and the fastest rate that agrees with every pair of bursts."""
    slow, fast = -WORST_RATE, WORST_RATE
    for one, other in combinations(sorted(found, key=lambda each: each.at), 2):
        apart = other.at - one.at
        rise, slack = other.offset - one.offset, other.bound + one.bound
        if apart > 0:
            slow, fast = max(slow, (rise - slack) / apart), min(fast, (rise + slack) / apart)
    if slow > fast:
        raise _failure("the clocks run at different rates")
    return slow, fast


class State(StrEnum):
    """The validity of a latency."""

    MEASURED = "measured"
    ZERO_WITHIN_ERROR = "zero within error"
    NOT_SYNCHRONISED = "synchronisation failure"


@dataclass(frozen=True, slots=True)
class Latency:
    """A latency in nanoseconds, its maximum error, and its validity."""

    value: float
    bound: float

    @property
    def state(self) -> State:
        """Judge it: a message is never received before it was sent."""
        if self.value >= 0:
            return State.MEASURED
        return State.ZERO_WITHIN_ERROR if -self.value <= self.bound else State.NOT_SYNCHRONISED


def measure_latency(sent: int, sender: Estimate, received: int, receiver: Estimate) -> Latency:
    """Give the time between two clocks' readings, both carried over to the reference."""
    start = sent + sender.offset_at(sent)
    end = received + receiver.offset_at(received)
    return Latency(end - start, sender.bound_at(sent) + receiver.bound_at(received))
