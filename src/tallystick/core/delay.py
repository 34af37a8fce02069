"""Delays by broker: delayed publishing, retry tiers, visibility. No delay is shortened silently.

A requested delay is a positive, finite number of seconds. It is refused on a broker without a rule,
outside the range of the rule, and on an SQS FIFO queue (clause 3.4: 901 s fails).

Kafka delays in tier topics, by two separate rules (clauses 6.4 and 6.5):

    requested delay   the shortest tier that is long enough; `bq-delay` is the requested delay
    retry             tier min(attempts before, N-1) + 1; `bq-delay` is the tier's own delay
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, isfinite, isnan
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.errors import Refused, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tallystick.core.slot import Slot

__all__ = [
    "DEFAULT_RETRY_TIERS_MS",
    "LONGEST",
    "TIER_RULES",
    "DelayRule",
    "RetryRule",
    "Tier",
    "VisibilityRule",
    "delay_facts",
    "due_at",
    "milliseconds",
    "requested_tier",
    "retry_facts",
    "retry_tier",
    "score",
    "visibility",
]

DEFAULT_RETRY_TIERS_MS: Final = (5000, 30000, 300000, 1800000)
LONGEST: Final = 2**31 - 1
"""Maximum delay in seconds that every broker can add to the current time."""


@dataclass(frozen=True, slots=True)
class DelayRule:
    """The native fields of a delayed publish, and what the broker allows.

    `maximum` is in seconds; `fifo` tells whether a FIFO queue may delay single
    messages; `needs` names the option without which the broker cannot delay; `tier` names the
    rule that picks a tier topic.
    """

    slots: tuple[Slot, ...]
    maximum: int = LONGEST
    fifo: bool = True
    needs: str = ""
    tier: str = ""


@dataclass(frozen=True, slots=True)
class RetryRule:
    """The native fields that a retry changes, and the rule that picks its tier topic."""

    slots: tuple[Slot, ...]
    tier: str


@dataclass(frozen=True, slots=True)
class VisibilityRule:
    """The range, in seconds, for which a broker can hide a released message."""

    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True)
class Tier:
    """One retry topic: its 1-based index and how long a message waits in it."""

    n: int
    milliseconds: int


def milliseconds(seconds: float) -> int:
    """Give whole milliseconds, rounded up, without binary rounding errors (1.1 s is 1100)."""
    return ceil(round(seconds * 1000, 3))


def score(now: float, delay: float) -> int:
    """Give the epoch second after which Redis may deliver the message (clause 1.6)."""
    return floor(now) + ceil(delay)


def due_at(timestamp_ms: int | None, tier_ms: int, now_ms: int) -> int:
    """Give the time when a tier record returns: timestamp + tier, within [now, now + tier]."""
    latest = now_ms + tier_ms
    return latest if timestamp_ms is None else min(max(timestamp_ms + tier_ms, now_ms), latest)


def visibility(rule: VisibilityRule | None, delay: float) -> int:
    """Give the visibility timeout of a release: fractions cut, NaN is 0, clamped to the rule."""
    if rule is None:
        raise Refused("this broker has no visibility timeout", code="no_visibility")
    if isnan(delay):
        return rule.minimum
    return int(min(max(delay, rule.minimum), rule.maximum))


def requested_tier(tiers_ms: Sequence[int], wanted_ms: int) -> Tier:
    """Pick the shortest tier that is at least as long as the requested delay (clause 6.4)."""
    fits = [(tier, index + 1) for index, tier in enumerate(tiers_ms) if tier >= wanted_ms]
    if not fits:
        longest = (
            f"the longest tier is {max(tiers_ms)} ms" if tiers_ms else "no tiers are configured"
        )
        raise Refused(
            f"no retry tier can hold a delay of {wanted_ms} ms: {longest}",
            code="no_tier",
            hint="add to `tiers_ms` a retry tier at least as long as the delay",
        )
    tier, index = min(fits)
    return Tier(index, tier)


def retry_tier(tiers_ms: Sequence[int], attempts_before: int) -> Tier:
    """Pick the tier of a retry by its number of attempts; the last tier repeats (clause 6.5)."""
    if not tiers_ms:
        raise Refused("no retry tiers are configured", code="no_tier", hint="set `tiers_ms`")
    index = min(max(attempts_before, 0), len(tiers_ms) - 1)
    return Tier(index + 1, tiers_ms[index])


TIER_RULES: Final[Mapping[str, Callable[[Sequence[int], int], Tier]]] = {
    "requested": requested_tier,
    "retry": retry_tier,
}


def delay_facts(
    rule: DelayRule | None,
    seconds: float,
    *,
    now: float | None = None,
    fifo: bool = False,
    tiers_ms: Sequence[int] = (),
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Give the values that the slots of a delayed publish carry, or raise `Refused`."""
    if rule is None:
        raise Refused("this broker cannot delay a message", code="delay_unsupported")
    if fifo and not rule.fifo:
        raise Refused(
            "an ordered queue cannot delay a single message",
            code="delay_on_fifo",
            hint="set the delay on the queue itself, or use a standard queue",
        )
    if rule.needs and not (options or {}).get(rule.needs):
        raise Refused(
            f"this broker can delay a message only with `{rule.needs}`", code="delay_unsupported"
        )
    if not isfinite(seconds) or not 0 < ceil(seconds) <= rule.maximum:
        raise Refused(
            f"the delay must be from 1 to {rule.maximum} seconds, found {seconds}",
            code="delay_range",
            hint="a delay is never shortened: choose one that the broker supports",
        )
    if now is None and {"delay.due", "delay.score"} & {slot.source for slot in rule.slots}:
        raise UsageError("this broker needs the time of the publish", code="now", hint="pass `now`")
    wanted = max(milliseconds(seconds), 1)
    return {
        "delay.seconds": ceil(seconds),
        "delay.milliseconds": wanted,
        "delay.due": None if now is None else floor(round(now * 1000, 3)) + wanted,
        "delay.score": None if now is None else score(now, seconds),
        "tier": TIER_RULES[rule.tier](tiers_ms, wanted) if rule.tier else None,
    }


def retry_facts(
    rule: RetryRule | None, attempts_before: int, *, tiers_ms: Sequence[int] = ()
) -> dict[str, Any]:
    """Give the values of a retry; most brokers have no rule and republish without changes."""
    tier = TIER_RULES[rule.tier](tiers_ms, attempts_before) if rule else None
    return {"retry.attempts": attempts_before + 1, "tier": tier}
