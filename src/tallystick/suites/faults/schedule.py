"""The schedule of faults, drawn from a seed, so that a run can be repeated.

A fault is injected after a number of effects, not at a time: a slow machine gets the same run. The
faults are spread evenly over the run, none at the very beginning or end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

__all__ = ["KINDS", "Fault", "draw"]

KINDS: Final = ("kill_broker", "kill_worker", "stop_broker", "cut", "hang")
"""kill -9 and restart; kill -9 in mid-handler; SIGSTOP for a while; reset; forward nothing."""

_FIRST: Final = 0.08
_LAST: Final = 0.92


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: what kind, and after how many effects."""

    kind: str
    after: int


def draw(counts: Mapping[str, int], messages: int, seed: int) -> tuple[Fault, ...]:
    """Give the requested number of faults of each kind, in the order of injection."""
    chance = Random(seed)  # noqa: S311 (a schedule, not a secret)
    kinds = [kind for kind in KINDS for _ in range(counts.get(kind, 0))]
    chance.shuffle(kinds)
    stretch = (_LAST - _FIRST) / max(len(kinds), 1)
    places = (_FIRST + stretch * (n + chance.random() / 2) for n in range(len(kinds)))
    return tuple(
        Fault(kind, int(messages * place)) for kind, place in zip(kinds, places, strict=True)
    )
