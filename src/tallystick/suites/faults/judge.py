"""The judgement: what was sent against what took effect, as multisets of message ids.

    lost         confirmed to the publisher, and without effect
    unexpected   took effect or reached a handler, and nobody had sent it
    doubled      took effect more than once
    duplicated   deliveries beyond the first of each message; idempotency has to absorb them
    recovered    begun by a worker that was killed before it was done, and with effect all the same

A run conforms when nothing is lost, unexpected or doubled and every effect is there exactly once.
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
    """What a run left: ids as the publisher, the handlers and the effects noted them.

    `tried` may hold more than `sent`: the broker may have kept what it did not confirm.
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
    """Count."""
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
    """Give a verdict for each demand: the three counts, every effect, and that faults happened."""
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
            "" if due == is_there else f"{demand}: {is_there}, not {due}",
            () if due == is_there else (Difference("", due, is_there),),
        )
        for demand, (due, is_there) in expected.items()
    ]
