"""Run a suite (our own standard, the events) on every available implementation.

An implementation whose toolchain is missing is listed with the reason. Tallystick conforms if its
own run has no failure and no error; the scoreboard shows the results of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tallystick.core.errors import Unavailable
from tallystick.core.journal import Journal, Record, count
from tallystick.core.verdict import Outcome
from tallystick.suites.session import Plan, run_plan
from tallystick.suites.subjects import OURS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Proof", "prove"]


@dataclass(frozen=True, slots=True)
class Proof:
    """The result: a journal for each implementation that ran, a reason for each that did not."""

    journals: tuple[Journal, ...]
    missing: Mapping[str, str]

    @property
    def conforms(self) -> bool:
        """Say whether Tallystick itself ran, and without a failure or an error."""
        ours = [journal for journal in self.journals if journal.head.subject == OURS]
        counts = [count(journal.records) for journal in ours]
        return bool(ours) and not any(c[Outcome.FAILED] + c[Outcome.ERRORED] for c in counts)


def prove(
    plan: Plan,
    subjects: Sequence[str],
    *,
    begin: Callable[[str], object] = id,
    write: Callable[[str], object] = len,
    advance: Callable[[Record], object] = id,
    talk: Callable[[bytes], None] = lambda _: None,
) -> Proof:
    """Run a plan on every implementation; `begin` gets the name of the next one."""
    journals: list[Journal] = []
    missing: dict[str, str] = {}
    for subject in subjects:
        begin(subject)
        try:
            journals.append(run_plan(plan, subject, write=write, advance=advance, talk=talk))
        except Unavailable as reason:
            missing[subject] = reason.message
    return Proof(tuple(journals), missing)
