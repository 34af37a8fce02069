"""The page of a proof: one file that opens from disk, offline.

The verdict stands first, then what did not pass and what was not run, then the evidence: the steps,
the scoreboards, the registry gate with its witness, the matrix of the lab, and the traffic. The
detail pages stand beside it in the same folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tallystick.core.journal import Journal, count
from tallystick.core.verdict import Outcome
from tallystick.report.board import Board, Score
from tallystick.report.events_table import LEGEND, score_events
from tallystick.report.markup import Markup, join, tag
from tallystick.report.matrix import score_pairs
from tallystick.report.proof.values import (
    Conclusion,
    ProofReport,
    RegistryGate,
    StepResult,
    StepState,
)
from tallystick.report.proof.verdict import say_verdict
from tallystick.report.sheet import code, figure, table
from tallystick.report.shell import fill
from tallystick.report.table import score_sections, section_of
from tallystick.report.units import count as in_thousands

__all__ = ["build_proof_page"]

_TONES: Final = {
    Conclusion.CONFORMS: "good",
    Conclusion.FAILS: "bad",
    Conclusion.INCOMPLETE: "bad",
    Conclusion.UNTRIED: "warn",
}
_BADGES: Final = {StepState.PASSED: "good", StepState.FAILED: "bad", StepState.ERRORED: "bad"}
_BOARDS: Final[Mapping[str, tuple[str, Callable[[Sequence[Journal]], Board], str]]] = {
    "standard": ("The contract: implementations by section", score_sections,
                 "passed/run; - = unsupported"),
    "cloudevents": ("CloudEvents: SDKs by format", score_events, LEGEND),
}  # fmt: skip
"""The suites: the title of their scoreboard, how they are scored, and what a cell says."""
_FIGURES: Final = (
    ("messages", "captured", ""),
    ("delivered", "delivered", ""),
    ("refused", "bad", "bad"),
    ("lost", "lost", "bad"),
    ("duplicated", "duplicated", "warn"),
    ("altered", "altered", "bad"),
)
"""The figures of the traffic: which, their name, and their tone when above zero."""
_WORST: Final = 3


def build_proof_page(report: ProofReport, name: str) -> str:
    """Give the page of a proof about the implementation with this name."""
    sections = [
        _links(report),
        _failed(report),
        _not_passed(report),
        _not_run(report),
        _steps(report),
        *_boards(report),
        _gate(report.gate) if report.gate else Markup(),
        _lab(report.lab),
        _traffic(report.figures) if report.figures is not None else Markup(),
    ]
    return fill(
        "proof/page.html", "traffic.css", "proof/page.css",
        headline=_headline(report, name), body=join(sections),
    )  # fmt: skip


def _section(name: str, title: str, *inside: Markup, tone: str | None = None) -> Markup:
    return tag("section", tag("h2", title, id=f"{name}-title"), *inside, id=name, class_=tone,
               aria_labelledby=f"{name}-title")  # fmt: skip


def _headline(report: ProofReport, name: str) -> Markup:
    about = ", ".join(f"{what} {version}" for what, version in report.versions.items())
    lines = [
        tag("p", say_verdict(report, name), class_=f"verdict {_TONES[report.conclusion]}"),
        tag("p", f"{report.started}, {report.seconds:.0f} s; {about}", class_="soft about"),
    ]
    if report.official:
        lines.append(tag("p", report.official, class_="soft about"))
    return join(lines)


def _links(report: ProofReport) -> Markup:
    links = [tag("a", title, href=file) for title, file in report.pages.items()]
    return tag("nav", *links, class_="links", aria_label="Detail pages") if links else Markup()


def _failed(report: ProofReport) -> Markup:
    bad = [step for step in report.failures_first if step.state is not StepState.PASSED]
    if not bad:
        return Markup()
    parts = [
        tag("div", tag("h3", f"{step.name}: {step.state}"), tag("p", step.text),
            tag("pre", step.command, tabindex=0), class_="failed")
        for step in bad
    ]  # fmt: skip
    return _section("failed", "What did not pass", *parts, tone="bad-edge")


def _not_passed(report: ProofReport) -> Markup:
    """List every implementation with cases that it did not pass, the worst first."""
    rows = []
    for board in report.boards:
        for journal in board.journals:
            counts = count(journal.records)
            wrong = counts[Outcome.FAILED] + counts[Outcome.ERRORED]
            if wrong:
                rows.append((wrong, journal, board.suite, counts))
    if not rows:
        return Markup()
    cells = [
        (code(journal.head.subject), suite, wrong, counts[Outcome.ERRORED],
         _worst_sections(journal))
        for wrong, journal, suite, counts in sorted(rows, key=lambda row: -row[0])
    ]  # fmt: skip
    head = ("implementation", "suite", "not passed", "of these crashed", "most in")
    return _section(
        "implementations", "Implementations with cases that did not pass",
        table("Cases that did not pass", head, cells),
    )  # fmt: skip


def _worst_sections(journal: Journal) -> str:
    wrong: dict[str, int] = {}
    for record in journal.records:
        if record.verdict.outcome in (Outcome.FAILED, Outcome.ERRORED):
            section = section_of(record.verdict.case)
            wrong[section] = wrong.get(section, 0) + 1
    worst = sorted(wrong.items(), key=lambda item: -item[1])[:_WORST]
    return ", ".join(f"{section} ({number})" for section, number in worst)


def _not_run(report: ProofReport) -> Markup:
    if not report.not_run:
        return Markup()
    rows = [(part.name, part.reason, code(part.get) if part.get else "") for part in report.not_run]
    return _section(
        "not-run", "Not run", table("Parts that were not run", ("part", "why", "get it"), rows)
    )


def _steps(report: ProofReport) -> Markup:
    rows = [_step_row(step) for step in report.failures_first]
    shown = table("Results of the steps", ("step", "result", "found", "time"), rows)
    return _section("steps", "Steps", shown)


def _step_row(step: StepResult) -> tuple[str, Markup, str, Markup]:
    badge = tag("span", step.state, class_=f"badge {_BADGES[step.state]}")
    return step.name, badge, step.text, figure(f"{step.seconds:.1f} s")


def _boards(report: ProofReport) -> list[Markup]:
    parts = []
    for board in report.boards:
        title, score, legend = _BOARDS[board.suite]
        shown = _table(title, score(board.journals))
        parts.append(_section(board.suite, title, shown, tag("p", legend, class_="soft")))
    return parts


def _table(title: str, board: Board) -> Markup:
    rows = [(name, *map(_score, scores)) for name, scores in board.rows]
    if not rows:
        return tag("p", "nothing was run", class_="soft")
    return table(f"Scores: {title}", board.head, rows)


def _score(score: Score) -> Markup:
    whole = None if score.whole is None else "yes" if score.whole else "no"
    return tag("td", score.text, data_whole=whole)


def _gate(gate: RegistryGate) -> Markup:
    rows = [
        (code(change.pointer or "(root)"), change.effect, code(change.rule), change.message)
        for change in gate.changes
    ]
    head = ("place", "effect", "rule", "change")
    return _section(
        "gate", "The registry gate",
        tag("p", code(gate.old), " → ", code(gate.new), f": {gate.verdict}. The change is "
            "breaking on purpose; the gate must refuse it and prove why."),
        table("Differences of the two schemas", head, rows) if rows else Markup(),
        tag("h3", "The witness: a message that was valid before and is refused now"),
        tag("pre", gate.witness or "none", tabindex=0),
    )  # fmt: skip


def _lab(lab: Mapping[str, Journal]) -> Markup:
    """Show the matrix of each run: sender down, receiver across."""
    if not lab:
        return Markup()
    parts = [
        tag("div", tag("h3", f"over {run}"), _table(f"pairs over {run}", score_pairs(journal)))
        for run, journal in lab.items()
    ]
    legend = "cases passed; F failed, E errored, U unsupported, K known failure"
    return _section(
        "lab", "The lab: from sender to receiver", tag("div", *parts, class_="beside"),
        tag("p", legend, class_="soft"),
    )  # fmt: skip


def _traffic(figures: Mapping[str, int]) -> Markup:
    tiles = [
        tag("div", tag("b", in_thousands(figures[name])), tag("span", label),
            class_=f"tile {(tone or 'calm') if figures[name] else 'calm'}", data_figure=name)
        for name, label, tone in _FIGURES
    ]  # fmt: skip
    return _section(
        "traffic", "The traffic of the lab",
        tag("p", "Every message that the lab sent and received, checked by the pipeline."),
        tag("div", *tiles, class_="tiles"),
    )  # fmt: skip
