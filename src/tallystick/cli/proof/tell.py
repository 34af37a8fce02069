"""A proof as text for a person and as one JSON object for a program.

The scoreboards come first; the steps, the parts that were not run, the verdict and the page last.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from tallystick.cli.outputs.colour import Tone, paint, paint_verdict
from tallystick.cli.proof.bench import Bench
from tallystick.cli.proof.pages import PAGE
from tallystick.core.journal import Journal
from tallystick.report.events_table import count_parts, event_scoreboard
from tallystick.report.matrix import show_matrix
from tallystick.report.proof.values import Conclusion, ProofReport, RegistryGate, StepResult
from tallystick.report.proof.verdict import say_verdict
from tallystick.report.table import identical_bytes, one_line, scoreboard, summarize, summarize_all
from tallystick.suites.find import CLOUDEVENTS, STANDARD
from tallystick.suites.subjects import OURS

__all__ = ["show_proof", "summarize_proof"]

_TONES: Final = {
    Conclusion.CONFORMS: Tone.GOOD,
    Conclusion.FAILS: Tone.BAD,
    Conclusion.INCOMPLETE: Tone.BAD,
    Conclusion.UNTRIED: Tone.DOUBTFUL,
}
_WHOLE: Final = "The proof"
_BOARDS: Final = {STANDARD: scoreboard, CLOUDEVENTS: event_scoreboard}


def show_proof(report: ProofReport, page: Path | None) -> str:
    """Give the whole text; the verdict and the page are its last lines."""
    parts = [_BOARDS[board.suite](board.journals, {}) for board in report.boards]
    if report.gate:
        parts.append(_show_gate(report.gate))
    parts += [f"lab over {run}\n{show_matrix(journal)}" for run, journal in report.lab.items()]
    if report.figures:
        shown = (f"{name:24} {value:>12,}" for name, value in report.figures.items() if value)
        parts.append("\n".join(["traffic", *shown]) + "\n")
    width = max((len(step.name) for step in report.steps), default=0)
    parts.append("".join(_show_step(step, width) for step in report.failures_first))
    lines = [one_line(part.line) for part in report.not_run]
    lines.append(paint(say_verdict(report, OURS), _TONES[report.conclusion]))
    lines += [report.official] if report.official else []
    lines += [f"page: {page} ({page.resolve().as_uri()})"] if page else []
    return "\n".join([*parts, *lines])


def _show_gate(gate: RegistryGate) -> str:
    lines = [f"registry gate: {gate.old} -> {gate.new}: {gate.verdict}"]
    lines += [
        f"  {change.effect:10} {change.pointer or '(root)'} {change.rule}: {change.message}"
        for change in gate.changes
    ]
    lines.append(f"  witness (valid before, refused now): {gate.witness}")
    return "\n".join(map(one_line, lines)) + "\n"


def _show_step(step: StepResult, width: int) -> str:
    word = paint_verdict(step.state) + " " * (8 - len(step.state))
    again = "" if step.state == "passed" else f"\n{'':{width + 11}}again: {step.command}"
    return f"{step.name:{width}}  {word} {one_line(step.text)}{again}\n"


def summarize_proof(report: ProofReport, bench: Bench) -> str:
    """Give one JSON object with everything."""
    summary: dict[str, Any] = {}
    for board in report.boards:
        about = summarize_all(board.journals)
        for journal in board.journals:
            about["subjects"][journal.head.subject] |= _ABOUT[board.suite](journal)
        about["missing"] = dict(bench.missing[board.suite])
        summary |= about if board.suite == STANDARD else {board.suite: about}
    verdict = {Conclusion.CONFORMS: True, Conclusion.FAILS: False}
    whole = {
        **summary,
        "official_cases": bench.official_cases,
        "conforms": verdict.get(report.conclusion),
        "verdict": say_verdict(report, OURS),
        "started": report.started,
        "seconds": round(report.seconds, 1),
        "versions": dict(report.versions),
        "steps": [asdict(step) for step in report.steps],
        "not_run": [asdict(part) for part in report.not_run],
        "gate": asdict(report.gate) if report.gate else None,
        "lab": {run: summarize([journal]) for run, journal in report.lab.items()},
        "traffic": report.figures,
        "pages": _name_pages(report, bench),
    }  # fmt: skip
    return json.dumps(whole)


def _name_pages(report: ProofReport, bench: Bench) -> dict[str, str]:
    if bench.folder is None:
        return {}
    return {title: str(bench.path(name)) for title, name in {_WHOLE: PAGE, **report.pages}.items()}


def _count_bytes(journal: Journal) -> dict[str, Any]:
    right, every = identical_bytes(journal)
    return {"byte_vectors": every, "identical": right}


def _count_parts(journal: Journal) -> dict[str, Any]:
    return {"parts": count_parts(journal)}


_ABOUT: Final[Mapping[str, Callable[[Journal], dict[str, Any]]]] = {
    STANDARD: _count_bytes,
    CLOUDEVENTS: _count_parts,
}
