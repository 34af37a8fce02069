"""The workbench of a proof: what the steps share, and what they have found so far."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from tallystick.cli.proof.needs import Need
from tallystick.core.errors import TallystickError
from tallystick.core.journal import Journal
from tallystick.report.proof.values import (
    NotRun,
    RegistryGate,
    StepResult,
    StepState,
    SuiteBoard,
)
from tallystick.report.table import one_line

__all__ = ["Bench", "Found", "Step", "run_steps", "say"]


@dataclass(slots=True)
class Bench:
    """What the steps share: the folder of the proof, the implementations, and their findings."""

    folder: Path | None
    implementations: Sequence[str]
    cases: Path | None = None
    write: Callable[[str], object] = len
    official: str = ""
    official_cases: int = 0
    boards: list[SuiteBoard] = field(default_factory=list)
    missing: dict[str, Mapping[str, str]] = field(default_factory=dict)
    gate: RegistryGate | None = None
    clients: list[str] = field(default_factory=list)
    lab: dict[str, Journal] = field(default_factory=dict)
    captures: list[Path] = field(default_factory=list)
    figures: Mapping[str, int] | None = None
    pages: dict[str, str] = field(default_factory=dict)
    not_run: list[NotRun] = field(default_factory=list)

    def path(self, name: str) -> Path:
        """Name a file of the proof's folder."""
        assert self.folder is not None  # only a whole proof has steps that write files
        return self.folder / name


@dataclass(frozen=True, slots=True)
class Found:
    """What a step found, and the command that repeats it where it is not that of the step."""

    state: StepState
    text: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One row of the proof: its name, what it needs, the command that repeats it, its work."""

    name: str
    needs: tuple[Need, ...]
    command: str
    run: Callable[[Bench], Found | NotRun]


def run_steps(steps: Sequence[Step], bench: Bench) -> tuple[StepResult, ...]:
    """Run the steps in order; one that lacks something is listed, and the others go on."""
    results = []
    for number, step in enumerate(steps, 1):
        place = f"[{number}/{len(steps)}] {step.name}"
        say(f"{place} ...")
        began = monotonic()
        found = _lacking(step) or _run(step, bench)
        seconds = monotonic() - began
        if isinstance(found, NotRun):
            bench.not_run.append(found)
            say(f"{place}: not run, {found.reason}")
        else:
            command = found.command or step.command
            results.append(StepResult(step.name, found.state, found.text, command, seconds))
            say(f"{place}: {found.state} in {seconds:.1f} s")
    return tuple(results)


def _lacking(step: Step) -> NotRun | None:
    """Say what a step needs and does not find here."""
    absent = [need for need in step.needs if not need.is_here()]
    if not absent:
        return None
    names = " and ".join(need.name for need in absent)
    return NotRun(step.name, f"needs {names}", "; ".join(need.get for need in absent))


def _run(step: Step, bench: Bench) -> Found | NotRun:
    try:
        return step.run(bench)
    except TallystickError as error:
        hint = f" ({error.hint})" if error.hint else ""
        return Found(StepState.ERRORED, f"{error}{hint}")


def say(text: str) -> None:
    """Tell the person who watches what is going on."""
    print(one_line(text), file=sys.stderr, flush=True)
