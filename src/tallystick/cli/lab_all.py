"""`tally lab all`: run every tier, field, clock and client, on both brokers.

Each step is one command in its own process; a failing step does not stop the others. Before each
step the remaining time is shown. It is estimated from the last measured times of the steps and from
the speed of this machine so far. At the end there is one line per step. Exit 0 if every step
matches the profile, 1 if one does not, 2 if one could not be run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from time import monotonic
from typing import Any, Final

from tallystick.brokers.owner import tied
from tallystick.cli.progress import end_in_order
from tallystick.core.errors import UsageError

__all__ = ["register_all"]

_BOTH: Final = ("rabbitmq", "qpid")
_WORDS: Final = {0: "ok", 1: "FAILED", 2: "BROKEN"}
_SHOWN: Final = {
    **{name: f"{{}} {name}" for name in ("passed", "failed", "errored", "unsupported", "known")},
    "error_max_us": "error at most {} us",
    "bound_max_us": "bound {} us",
}
_PATIENCE: Final = 60.0
"""Seconds for a step to end its brokers and clients when it is called off."""


@dataclass(frozen=True, slots=True)
class Step:
    """One command; `seconds` is its last measured time on two cores."""

    name: str
    words: str
    seconds: int
    journal: bool = True


@dataclass(frozen=True, slots=True)
class Done:
    """How a step ended."""

    step: Step
    exit: int
    seconds: float
    figures: Mapping[str, Any] = field(default_factory=dict)


_TIERS: Final = {"full": 145, "4way": 18, "local": 23, "crash": 18, "restart": 32}
STEPS: Final = (
    *(
        Step(f"{broker}-{tier}", f"run-tier {tier} --broker {broker}", seconds)
        for broker in _BOTH
        for tier, seconds in _TIERS.items()
    ),
    *(Step(f"{one}-fields", f"fields 0-9-1 --broker {one}", 18) for one in _BOTH),
    *(Step(f"{one}-types", f"fields 1.0 --broker {one}", 19) for one in ("artemis", "qpid")),
    Step("clock-udp", "clock udp", 5, journal=False),
    *(Step(f"clock-{one}", f"clock broker --broker {one}", 9, journal=False) for one in _BOTH),
    *(Step(f"clients-{one}", f"run --broker {one}", 150) for one in _BOTH),
    *(Step(f"pairwise-{one}", f"run --tier pairwise --broker {one}", 25) for one in _BOTH),
    *(Step(f"perf-{one}", f"perf --broker {one}", 100) for one in _BOTH),
)


def register_all(verbs: Any) -> None:
    """Add the verb."""
    every = verbs.add_parser("all", help="run everything on both brokers, and write one page")
    every.add_argument("--out", type=Path, default=Path("build/lab"), metavar="DIR",
                       help="folder for the journals and the page (%(default)s)")  # fmt: skip
    every.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="GLOB",
        help="run only these steps, by name, such as 'qpid-*'; repeatable",
    )
    every.add_argument(
        "--coverage",
        type=Path,
        metavar="FILE",
        help="file that maps requirements to cases, for the page",
    )
    every.add_argument("--list", action="store_true", help="list the steps, and run nothing")
    every.add_argument("--json", action="store_true", help="print one JSON object")
    every.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    globs = args.only or ["*"]
    steps = [one for one in STEPS if any(fnmatchcase(one.name, glob) for glob in globs)]
    if not steps:
        raise UsageError(f"no step matches {' or '.join(globs)!r}", code="no_step",
                         hint="`tally lab all --list` lists the steps")  # fmt: skip
    if args.list:
        told = {step.name: f"tally lab {step.words}" for step in steps}
        lines = [f"{name:18} {words}" for name, words in told.items()]
        print(json.dumps(told, indent=1) if args.json else "\n".join(lines))
        return 0
    args.out.mkdir(parents=True, exist_ok=True)
    done: list[Done] = []
    with end_in_order():
        try:
            for number, step in enumerate(steps):
                _say(f"[{number + 1}/{len(steps)}] {step.name}, {_left(done, steps[number:])} left")
                done.append(_do(step, args.out))
        finally:
            _tell(args, steps, done)
    return max(one.exit for one in done)


def _do(step: Step, out: Path) -> Done:
    words = ["lab", *step.words.split(), "--json"]
    if step.journal:
        words += ["--journal", str(out / f"{step.name}.jsonl")]
        words += ["--junit", str(out / f"{step.name}.xml")]
    since = monotonic()
    code, text = _call(words)
    try:
        told = json.loads(text) if text.strip() else {}
    except ValueError:
        _say(f"{step.name} printed an incomplete summary")
        code, told = 2, {}
    return Done(step, min(code, 2) if code >= 0 else 2, monotonic() - since, _figures(told))


def _call(words: Sequence[str]) -> tuple[int, str]:
    """Run one command; when we are called off, it ends before us."""
    command = [sys.executable, "-m", "tallystick", *words]
    with subprocess.Popen(  # noqa: S603 (our own program)
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **tied()}
    ) as child:
        try:
            text, _ = child.communicate()
        except SystemExit:
            child.terminate()
            raise
        except KeyboardInterrupt:  # a terminal has told the child too
            try:
                child.wait(_PATIENCE)
            finally:
                child.terminate()
            raise
    return child.returncode, text


def _figures(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures for one line: counts above zero, and the errors of clocks."""
    return {name: told[name] for name in _SHOWN if told.get(name)}


def _left(done: Sequence[Done], ahead: Sequence[Step]) -> str:
    """Estimate the remaining time from earlier times and the speed of this machine."""
    planned = sum(one.step.seconds for one in done)
    pace = sum(one.seconds for one in done) / planned if planned else 1.0
    return f"about {_clock(pace * sum(one.seconds for one in ahead))}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


def _tell(args: argparse.Namespace, steps: Sequence[Step], done: Sequence[Done]) -> None:
    """Say how each step ended, also when not all of them ran."""
    page = _build_page(args, done)
    if args.json:
        rows = [
            {"step": one.step.name, "exit": one.exit, "seconds": round(one.seconds, 1),
             "figures": one.figures}
            for one in done
        ]  # fmt: skip
        print(
            json.dumps({"steps": rows, "not_run": len(steps) - len(done), "page": page}, indent=1)
        )
        return
    for one in done:
        figures = ", ".join(_SHOWN[name].format(value) for name, value in one.figures.items())
        print(f"{_WORDS[one.exit]:7} {one.step.name:18} {_clock(one.seconds):>6}  {figures}")
        if one.exit:
            print(f"        repeat with: tally lab {one.step.words}")
    good = sum(one.exit == 0 for one in done)
    spent = _clock(sum(one.seconds for one in done))
    print(f"{good} of {len(steps)} steps passed in {spent}; see {page or 'above'}")


def _build_page(args: argparse.Namespace, done: Sequence[Done]) -> str:
    """Build the page of all journals that are there; give its path."""
    found = [args.out / f"{one.step.name}.jsonl" for one in done if one.step.journal]
    journals = [str(path) for path in found if path.is_file() and path.stat().st_size]
    if not journals:
        return ""
    page = str(args.out / "report.html")
    coverage = ["--coverage", str(args.coverage)] if args.coverage else []
    code, _ = _call(["report", "build", *journals, "-o", page, *coverage])
    return page if code == 0 else ""


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
