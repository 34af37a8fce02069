"""What a proof found, as values: one result for each step, and the data that its page shows.

A step passes, fails (a finding) or errors (it could not do its work). A part that needs a tool, an
extra or a file that is not here is a `NotRun`: it never fails the proof, and it is always listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from tallystick.core.journal import Journal

__all__ = [
    "Change", "Conclusion", "NotRun", "ProofReport", "RegistryGate", "StepResult", "StepState",
    "SuiteBoard", "conclude",
]  # fmt: skip


class StepState(StrEnum):
    """How a step ended."""

    PASSED = "passed"
    FAILED = "failed"
    ERRORED = "errored"


class Conclusion(StrEnum):
    """What the proof says about Tallystick."""

    CONFORMS = "conforms"
    FAILS = "does NOT conform"
    INCOMPLETE = "could not be proved"
    UNTRIED = "was not run"


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step that was run: what it proved or why it did not, and the command that repeats it."""

    name: str
    state: StepState
    text: str
    command: str
    seconds: float


@dataclass(frozen=True, slots=True)
class NotRun:
    """A part that was not run: what it needs, and how to get that."""

    name: str
    reason: str
    get: str = ""

    @property
    def line(self) -> str:
        """Give the line of the list at the end."""
        return f"not run: {self.name} ({self.reason}{f': {self.get}' if self.get else ''})"


@dataclass(frozen=True, slots=True)
class SuiteBoard:
    """A suite, and its journal for each implementation that ran it."""

    suite: str
    journals: tuple[Journal, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two schemas, and whether it breaks a reader."""

    pointer: str
    rule: str
    effect: str
    message: str


@dataclass(frozen=True, slots=True)
class RegistryGate:
    """What the gate says about a breaking change: its differences, and a message that proves it."""

    old: str
    new: str
    verdict: str
    changes: tuple[Change, ...]
    witness: str


_ORDER: Final = (StepState.FAILED, StepState.ERRORED, StepState.PASSED)


@dataclass(frozen=True, slots=True)
class ProofReport:
    """A whole proof: `lab` has the journals by run, `pages` the files of its folder by title."""

    conclusion: Conclusion
    started: str
    seconds: float
    versions: Mapping[str, str]
    official: str
    steps: tuple[StepResult, ...]
    not_run: tuple[NotRun, ...]
    boards: tuple[SuiteBoard, ...] = ()
    gate: RegistryGate | None = None
    lab: Mapping[str, Journal] = field(default_factory=dict)
    figures: Mapping[str, int] | None = None
    pages: Mapping[str, str] = field(default_factory=dict)

    @property
    def failures_first(self) -> list[StepResult]:
        """Give the steps with those that did not pass first."""
        return sorted(self.steps, key=lambda step: _ORDER.index(step.state))


def conclude(steps: Sequence[StepResult], *, ours: bool) -> Conclusion:
    """Draw the conclusion: a finding weighs more than a step that could not do its work."""
    states = {step.state for step in steps}
    if not ours:
        return Conclusion.UNTRIED
    if StepState.FAILED in states:
        return Conclusion.FAILS
    return Conclusion.INCOMPLETE if StepState.ERRORED in states else Conclusion.CONFORMS
