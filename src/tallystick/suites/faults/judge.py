"""Compare the sent messages with their effects, as multisets of message ids.

    lost         the broker confirmed the message, but it had no effect
    unexpected   it had an effect or reached a handler, but nobody sent it
    doubled      it had its effect more than once
    duplicated   repeated deliveries of a message; idempotency must absorb them
    recovered    its worker was killed in the middle, and it still had its effect

A run conforms if nothing is lost, unexpected or doubled, and every effect happened exactly once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tallystick.core.verdict import Difference, Outcome, Verdict

__all__ = ["Account", "Evidence", "account", "judge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The evidence of a run: message ids noted by the publisher, the handlers and the effects.

    `tried` may hold more than `sent`: the broker may have stored a message without a confirmation.
    """

    sent: Counter[str]
    tried: frozenset[str]
    effects: Counter[str]
    begun: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The figures of a run."""

    sent: int
    effects: int
    lost: int
    unexpected: int
    doubled: int
    duplicated: int
    absorbed: int
    recovered: int

    def figures(self) -> dict[str, int]:
        """Give the figures by name."""
        return asdict(self)


def account(evidence: Evidence) -> Account:
    """Count the messages of each kind."""
    effects, tried = evidence.effects, evidence.tried
    deliveries = evidence.begun + evidence.skipped
    strangers = (effects | deliveries).keys() - tried
    doubled = sum(count - 1 for one, count in effects.items() if one in tried)
    duplicated = deliveries.total() - len(deliveries)
    cut_down = evidence.begun - evidence.ended
    return Account(
        sent=evidence.sent.total(),
        effects=effects.total(),
        lost=(evidence.sent - effects).total(),
        unexpected=sum(max(effects[one], deliveries[one]) for one in strangers),
        doubled=doubled,
        duplicated=duplicated,
        absorbed=max(duplicated - doubled, 0),
        recovered=sum(1 for one in cut_down if effects[one]),
    )


_DEMANDS = ("lost", "unexpected", "doubled")


def judge(
    name: str,
    found: Account,
    *,
    messages: int,
    injected: Mapping[str, int],
    wanted: Mapping[str, int],
) -> list[Verdict]:
    """Give a verdict for each demand: the three counts, every effect, and the injected faults."""
    expected: dict[str, tuple[Any, Any]] = {
        demand: (0, getattr(found, demand)) for demand in _DEMANDS
    }
    expected["effects"] = (messages, found.effects)
    expected["faults"] = (
        {kind: count for kind, count in wanted.items() if count},
        {kind: count for kind, count in injected.items() if count},
    )
    return [
        Verdict(
            f"faults/{name}/{demand}",
            Outcome.PASSED if due == is_there else Outcome.FAILED,
            "" if due == is_there else f"{demand}: expected {due}, found {is_there}",
            () if due == is_there else (Difference("", due, is_there),),
        )
        for demand, (due, is_there) in expected.items()
    ]
