"""Clock synchronisation behind one interface: an offset, and how far off it can be (Appendix E).

A `Clock` gives an `Estimate`: add `offset_at(t)` to the local time `t` and you have the reference's
time, wrong by at most `bound_at(t)`. A sample has four times (sent, come in there, sent there, come
back), so the reference's own work drops out; the true offset lies within half a round trip of what
the sample says, whichever way the time went. So the sample with the shortest round trip carries the
bound, and what is averaged as Appendix E has it carries its distance from that sample on top.

Appendix E put right (sheet, 1.1): latency is (received - sent) / 2, steps 2 to 4 are repeated, what
is discarded lies one standard deviation above the median latency, and nothing waits in between: a
pause lets the peer sleep and makes the two ways unequal, which no averaging mends (sheet, 8.2).

Clocks run at different rates: several bursts bound the rate, and the bound grows with the time from
the burst. One burst alone allows for any quartz. A latency is never clamped: below zero inside the
bound it is zero within the error, outside it the clocks are not synchronised, and it says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from statistics import fmean, median, pstdev
from typing import Final, Protocol

from tallystick.core.errors import Unavailable

__all__ = [
    "ZERO", "Clock", "Estimate", "Latency", "LocalClock", "Sample", "State", "average", "fit",
    "measure_latency",
]  # fmt: skip

_ROUNDING: Final = 1.0
"""Nanoseconds: times are whole ones, and an offset is half of a difference of them."""

WORST_RATE: Final = 200e-6
"""Two quartzes, each at most 100 parts in a million off."""


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
    def offset(self) -> float:
        """What must be added to the local time, were both ways equally long."""
        return ((self.there - self.sent) + (self.answered - self.back)) / 2

    @property
    def bound(self) -> float:
        """How far off that can be: half the way, and what the clocks drift meanwhile."""
        return self.round_trip / 2 + WORST_RATE * (self.back - self.sent) + _ROUNDING

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
        """Give what must be added to this local time."""
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


def average(burst: Sequence[Sample]) -> Estimate:
    """Give Appendix E's result of one burst, with the bound it does not have there."""
    nearest = min(burst, key=lambda one: one.round_trip)
    latencies = [one.round_trip / 2 for one in burst]
    limit = median(latencies) + pstdev(latencies)
    kept = [one for one in burst if one.round_trip / 2 <= limit]
    offset = fmean(one.offset for one in kept)
    bound = nearest.bound + abs(offset - nearest.offset)
    drift = max(abs(one.at - nearest.at) for one in burst) * WORST_RATE
    trip = float(nearest.round_trip)
    return Estimate(offset, bound + drift, nearest.at, 0.0, WORST_RATE, trip, len(burst))


def fit(bursts: Sequence[Sequence[Sample]]) -> Estimate:
    """Give offset and rate from the shortest round trip of each burst."""
    points = [min(burst, key=lambda one: one.round_trip) for burst in bursts]
    best = min(points, key=lambda one: one.round_trip)
    low, high = _rates(points)
    rate = (low + high) / 2
    count = sum(map(len, bursts))
    half = (high - low) / 2
    trip = float(best.round_trip)
    return Estimate(best.offset, best.bound, best.at, rate, half, trip, count)


def _rates(points: Sequence[Sample]) -> tuple[float, float]:
    """Give the slowest and the fastest rate that agrees with every pair of points."""
    low, high = -WORST_RATE, WORST_RATE
    for one, other in combinations(sorted(points, key=lambda point: point.at), 2):
        apart = other.at - one.at
        rise, slack = other.offset - one.offset, other.bound + one.bound
        if apart > 0:
            low, high = max(low, (rise - slack) / apart), min(high, (rise + slack) / apart)
    if low > high:
        raise Unavailable(
            "the clocks do not run at one rate: one of them was set in between",
            code="clock_stepped",
            hint="synchronise again",
        )
    return low, high


class State(StrEnum):
    """What a latency is worth."""

    MEASURED = "measured"
    ZERO_WITHIN_ERROR = "zero within error"
    NOT_SYNCHRONISED = "synchronisation failure"


@dataclass(frozen=True, slots=True)
class Latency:
    """Nanoseconds as they came out, how far off they can be, and what that makes of them."""

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
