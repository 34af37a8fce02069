"""Settle a delivery that cannot be handled: version-gated, exhausted or poison. Pure tables.

Each table gives a move; the broker's row in its binding (`SettleRule`) decides the moves that
depend on the broker. Strategies are those for an unknown URN: `fail`, `delete`, `release`,
`dead_letter`; the default is `fail`.

    gated      (clause 4.1.3 of the facts; ADR-0037) the record is the incoming body, byte for byte,
               no retry, no handler; `release` acts as `fail`
    exhausted  (ADR-0036) counted = attempts + 1; `counted < max_attempts` retries
    poison     never handled; dead-lettered at once if possible, else bounded retries, else left
               to the broker where the broker has a dead-letter policy of its own
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tallystick.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "EXHAUSTED",
    "GATED",
    "KINDS",
    "MAX_ATTEMPTS",
    "STRATEGIES",
    "SettleRule",
    "Settlement",
    "exhaust",
    "settle_gated",
    "settle_poison",
]

MAX_ATTEMPTS: Final = 3
"""Maximum number of deliveries, including the first."""

STRATEGIES: Final = ("fail", "delete", "release", "dead_letter")
KINDS: Final = ("failed", "unknown_urn", "poison")


@dataclass(frozen=True, slots=True)
class SettleRule:
    """The moves of one broker where the tables leave the choice to the broker.

    `gated_off` ends a gated message with dead-lettering off (empty: the broker has no gate).
    `poison_delete` and `poison_off` are moves. `verbs` says how the broker performs an outcome.
    """

    gated_off: str
    poison_off: str
    verbs: Mapping[str, str]
    poison_delete: str = "drop"


@dataclass(frozen=True, slots=True)
class Settlement:
    """How a delivery ends: `retry`, `dlq`, `drop`, `release`, `native` or `unsettled`.

    `attempts` includes this delivery; `reason` is written in the dead-letter block.
    """

    outcome: str
    attempts: int
    reason: str | None = None


GATED: Final[Mapping[tuple[str, bool], str]] = {
    ("delete", True): "ack",
    ("delete", False): "ack",
    ("fail", True): "write",
    ("fail", False): "leave",
    ("release", True): "write",
    ("release", False): "leave",
    ("dead_letter", True): "write",
    ("dead_letter", False): "write_where_possible",
}
"""(strategy, dead-lettering on) -> move of a version-gated message."""

EXHAUSTED: Final[Mapping[tuple[str, str, bool], str]] = {
    ("failed", "fail", True): "bounded",
    ("failed", "fail", False): "bounded",
    ("failed", "delete", True): "bounded",
    ("failed", "delete", False): "bounded",
    ("failed", "release", True): "bounded",
    ("failed", "release", False): "bounded",
    ("failed", "dead_letter", True): "bounded",
    ("failed", "dead_letter", False): "bounded",
    ("unknown_urn", "fail", True): "bounded",
    ("unknown_urn", "fail", False): "bounded",
    ("unknown_urn", "delete", True): "drop",
    ("unknown_urn", "delete", False): "drop",
    ("unknown_urn", "release", True): "release",
    ("unknown_urn", "release", False): "release",
    ("unknown_urn", "dead_letter", True): "dead_letter",
    ("unknown_urn", "dead_letter", False): "dead_letter",
    ("poison", "fail", True): "dead_letter",
    ("poison", "fail", False): "poison_off",
    ("poison", "delete", True): "poison_delete",
    ("poison", "delete", False): "poison_delete",
    ("poison", "release", True): "dead_letter",
    ("poison", "release", False): "poison_off",
    ("poison", "dead_letter", True): "dead_letter",
    ("poison", "dead_letter", False): "dead_letter",
}
"""(kind, strategy, dead-lettering on) -> move. A failed handler is independent of the strategy."""


def settle_gated(
    rule: SettleRule,
    strategy: str | None,
    dead_letter: bool,
    *,
    dlq_write: str = "ok",
    writer: bool = True,
) -> str:
    """Give the settlement of a version-gated message: `ack`, `dlq_raw`, `unsettled` or `native`.

    `writer` is false in an implementation that cannot write a dead-letter record while
    dead-lettering is off.
    """
    if not rule.gated_off:
        raise UsageError("this broker has no version gate", code="no_gate")
    move = GATED[_known(strategy or "fail", STRATEGIES), dead_letter]
    if move == "ack":
        return "ack"
    if move == "leave" or (move == "write_where_possible" and not writer):
        return rule.gated_off
    return {"ok": "dlq_raw", "fails": "unsettled"}[_known(dlq_write, ("ok", "fails"))]


def exhaust(
    rule: SettleRule,
    kind: str,
    attempts: int,
    *,
    strategy: str | None = None,
    dead_letter: bool = False,
    max_attempts: int = MAX_ATTEMPTS,
    writer: bool = True,
    tiers: bool = True,
) -> Settlement:
    """Give the settlement of a failed delivery, from its reconciled attempts.

    `tiers` is false where a broker that retries through tier topics has none.
    """
    if max_attempts < 1:
        raise UsageError(f"`max_attempts` must be 1 or more, found {max_attempts}", code="max")
    key = (_known(kind, KINDS), _known(strategy or "fail", STRATEGIES), dead_letter)
    move = {"poison_off": rule.poison_off, "poison_delete": rule.poison_delete}.get(
        EXHAUSTED[key], EXHAUSTED[key]
    )
    counted = attempts + 1
    if move == "tiers":
        move = "bounded" if tiers else "drop"
    if move == "bounded":
        last = "dead_letter" if dead_letter else "drop"
        move = "retry" if counted < max_attempts else last
    if move == "dead_letter":
        written = writer or dead_letter
        return Settlement("dlq", counted, kind) if written else Settlement("drop", counted)
    return Settlement(move, attempts if move == "release" else counted)


def settle_poison(
    rule: SettleRule,
    attempts: int,
    *,
    strategy: str | None = None,
    dead_letter: bool = False,
    max_attempts: int = MAX_ATTEMPTS,
    dlq_write: str = "ok",
    writer: bool = True,
    tiers: bool = True,
) -> Settlement:
    """Give the settlement of a poison body; it stays unsettled if its record cannot be written."""
    settled = exhaust(
        rule,
        "poison",
        attempts,
        strategy=strategy,
        dead_letter=dead_letter,
        max_attempts=max_attempts,
        writer=writer,
        tiers=tiers,
    )
    if settled.outcome == "dlq" and _known(dlq_write, ("ok", "fails")) == "fails":
        return Settlement("unsettled", settled.attempts)
    return settled


def _known(value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise UsageError(
            f"unknown value {value!r}", code="unknown", hint=f"use one of: {', '.join(known)}"
        )
    return value
