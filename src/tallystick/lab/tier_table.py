"""The tiers of the thorough procedure as data: the parameter sets of each, and the case names.

`full` is all 9216 sets, `pairwise`, `3way` and `4way` are covering arrays of them, `local` puts
both ends on one connection, `crash` cuts receivers and `restart` stops and starts the broker.
Nothing here talks to a broker; `lab/tiers.py` runs the cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from tallystick.core.errors import UsageError
from tallystick.lab.combinations import (
    BODY_SIZES,
    Parameters,
    all_combinations,
    local_combinations,
    name_of,
)
from tallystick.lab.covering import cover
from tallystick.lab.expected import Expectation, Observation, crash_cuts
from tallystick.lab.profiles import Kind

__all__ = ["DEPARTS", "LANES", "TIERS", "VM", "TierCase", "summarize_result", "tier_cases"]

LANES: Final = 8
VM: Final = "vm"
DEPARTS: Final = "departs from AMQP: "
"""Stands in the reason of a verdict before the reason of its profile."""
_BOTH: Final = (False, True)


@dataclass(frozen=True, slots=True)
class TierCase:
    """One circuit of a tier; `name` is `tier/<tier>/<broker>/<set>`. `cut` is for crashes only."""

    name: str
    tier: str
    parameters: Parameters
    cut: str = ""


TIERS: Final[Mapping[str, Callable[[], Sequence[Parameters]]]] = {
    "full": all_combinations,
    "pairwise": partial(cover, 2),
    "3way": partial(cover, 3),
    "4way": partial(cover, 4),
    "local": local_combinations,
    "crash": lambda: [Parameters(durable=d, persistent=p) for d in _BOTH for p in _BOTH],
    "restart": lambda: [
        Parameters(durable=d, persistent=p, transactional=t, message_size=size)
        for d in _BOTH
        for p in _BOTH
        for t in _BOTH
        for size in BODY_SIZES
    ],
}
"""Every tier, and the parameter sets it runs."""


def tier_cases(tier: str, broker: str, only: str = "") -> tuple[TierCase, ...]:
    """Give the circuits of a tier; `only` is a name, or a part of several."""
    if tier not in TIERS:
        raise UsageError(
            f"there is no tier {tier!r}", code="tier", hint=f"use one of {', '.join(TIERS)}"
        )
    every = tuple(_cases(tier, broker))
    chosen = tuple(one for one in every if only == one.name) or tuple(
        one for one in every if only in one.name
    )
    if not chosen:
        raise UsageError(
            f"no circuit of {tier} has {only!r} in its name",
            code="no_case",
            hint=f"`tally lab combinations {tier}` lists the names",
        )
    return chosen


def _cases(tier: str, broker: str) -> Iterator[TierCase]:
    for parameters in TIERS[tier]():
        if tier == "crash":
            for cut in crash_cuts():
                about = replace(parameters, ack_mode=cut.partition("/")[0])
                yield TierCase(f"tier/crash/{broker}/{cut}/{_safety(about)}", tier, about, cut)
        else:
            yield TierCase(f"tier/{tier}/{broker}/{name_of(parameters)}", tier, parameters)


def _safety(parameters: Parameters) -> str:
    on = [flag for flag in ("persistent", "durable") if getattr(parameters, flag)]
    return "+".join(on) or "none"


def summarize_result(expected: Expectation, found: Observation) -> str:
    """Describe the expected result, or the outcome of a race."""
    result = expected.result
    if result.kind is Kind.NONDETERMINISTIC:
        return f"a race: {len(found.received)} received, {len(found.returned)} returned"
    return " ".join(filter(None, (result.kind, result.level, str(result.code or ""))))
