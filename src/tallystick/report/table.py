"""Show journals as text for people, and as one summary object for programs.

The table has one row per section. Below it follows each case that did not pass: its full name, the
differences, and the command that repeats it. Cases that are unsupported or errored for the same
reason are grouped. The scoreboard has sections as rows and implementations as columns.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.journal import KNOWN, Journal, Record, count
from tallystick.core.verdict import Outcome
from tallystick.report.board import Board, Score

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tallystick.core.verdict import Difference

__all__ = [
    "BYTES",
    "align",
    "identical_bytes",
    "not_run",
    "one_line",
    "repeat_command",
    "score_sections",
    "scoreboard",
    "section_of",
    "show_journal",
    "succeeded",
    "summarize",
    "summarize_all",
]

BYTES: Final = "bytes"
"""The ending of the sections whose cases ask for exact bytes."""

_COUNTED: Final = (*(outcome.value for outcome in Outcome), KNOWN)
_LONGEST: Final = 400
_LAB: Final[Mapping[str, tuple[str, ...]]] = {
    "tier": ("run-tier", "{kind}", "--broker", "{broker}"),
    "fields": ("fields", "{kind}", "--broker", "{broker}"),
}
"""The verb of `tally lab` for cases whose names begin so; the next parts of the name fill it."""


_CLIENT_TIERS: Final = ("pairwise", "3way", "4way", "full")
"""The tiers of `tally lab run --tier`."""
_ALIKE: Final = 10
_BROKERS: Final = ("vm", "rabbitmq", "qpid")
_PERF: Final = ("Throughput", "Latency")
"""The tests of `tally lab perf`; the next part of the name has its options."""


def section_of(name: str) -> str:
    """Give the suite and section of a case: the first two parts of its name."""
    return "/".join(name.split("/")[:2])


def succeeded(journal: Journal) -> bool:
    """Say whether a run has nothing to complain about: no failure, no error, no alarm."""
    counts = count(journal.records)
    wrong = counts[Outcome.FAILED] + counts[Outcome.ERRORED]
    return journal.complete and not wrong and not any(r.alarm for r in journal.records)


def summarize(journals: Sequence[Journal]) -> dict[str, Any]:
    """Return one object: counts and names of cases that did not pass, by implementation."""
    return _summarize_one(journals[0]) if len(journals) == 1 else summarize_all(journals)


def summarize_all(journals: Sequence[Journal]) -> dict[str, Any]:
    """Return the totals, and the summary of each implementation under `subjects`."""
    every = [record for journal in journals for record in journal.records]
    subjects = {journal.head.subject: _summarize_one(journal) for journal in journals}
    return {**count(every), "subjects": subjects}


def _summarize_one(journal: Journal) -> dict[str, Any]:
    names: dict[str, list[str]] = {name: [] for name in _COUNTED if name != Outcome.PASSED}
    for record in journal.records:
        if record.counts_as != Outcome.PASSED:
            names[record.counts_as].append(record.verdict.case)
    return {
        "subject": journal.head.subject,
        "suite": journal.head.suite,
        **count(journal.records),
        "not_passed": names,
        **_measured(journal),
        "alarms": [record.verdict.case for record in journal.records if record.alarm],
        "complete": journal.complete,
    }


def _measured(journal: Journal) -> dict[str, Any]:
    measured = {r.verdict.case: dict(r.verdict.measured) for r in journal.records}
    held = {case: figures for case, figures in measured.items() if figures}
    return {"measured": held} if held else {}


def repeat_command(subject: str, name: str, options: Sequence[str] = ()) -> str:
    """Return the command that repeats a case, with the options of the run.

    The cases of a tier begin with its kind. Those of clients begin with the broker and end with the
    two clients. A broker that the lab cannot start was attached to.
    """
    head, kind, broker, *_ = (*name.split("/"), "", "")
    if head in _LAB:
        verb = [part.format(kind=kind, broker=broker) for part in _LAB[head]]
        return shlex.join(["tally", "lab", *verb, "--only", name])
    if head == subject:
        rest = name.removeprefix(f"{head}/")
        if rest.startswith("Circuit/"):
            words = [word for word in rest.removeprefix("Circuit/").split(",") if "=" in word]
            return shlex.join(["tally", "lab", "circuit", "--broker", head, *words])
        names = ",".join(dict.fromkeys(rest.split("/")[-2:]))
        ours = head in _BROKERS
        clients = ["--clients", names] if ours else ["-b", "HOST", "-p", "PORT", "--names", names]
        verb = ["run" if ours else "attach"]
        if kind in _CLIENT_TIERS:
            verb = ["run", "--tier", kind]
        if kind in _PERF:
            verb = ["perf", *(f"--{word}" for word in broker.split(","))]
        return shlex.join(["tally", "lab", *verb, "--broker", head, *clients, "--cases", rest])
    return shlex.join(["tally", "suite", "run", name, "--implementation", subject, *options])


def show_journal(journal: Journal, options: Sequence[str] = ()) -> str:
    """Return the table of one run and the cases that did not pass, ten errors per reason."""
    head = journal.head
    about = f"{head.versions.get('subject.name', '')} {head.versions.get('subject.version', '')}"
    lines = [f"{head.subject} ({about.strip() or 'not started'}), suite {head.suite}", ""]
    lines += align(_section_rows(journal))
    errors: Counter[str] = Counter()
    for record in filter(_needs_a_line, journal.records):
        errors[record.verdict.reason] += record.counts_as == Outcome.ERRORED
        if record.counts_as != Outcome.ERRORED or errors[record.verdict.reason] <= _ALIKE:
            lines += ["", *_show_record(record, head.subject, options)]
    for reason, number in errors.items():
        if number > _ALIKE:
            lines += ["", f"errored  {number - _ALIKE} more: {reason}"]
    lines += _show_reasons(journal, Outcome.UNSUPPORTED)
    if journal.foot:
        lines += [f"note: {note}" for note in journal.foot.notes]
    else:
        lines += ["", "this run was cut short: the journal has no last line"]
    return "\n".join(map(one_line, lines)) + "\n"


def _needs_a_line(record: Record) -> bool:
    return record.counts_as in {Outcome.FAILED, Outcome.ERRORED, KNOWN} or record.alarm


def _section_rows(journal: Journal) -> list[list[str]]:
    sections: dict[str, Counter[str]] = {}
    for record in journal.records:
        counted = sections.setdefault(section_of(record.verdict.case), Counter())
        counted[record.counts_as] += 1
    names = [name for name in _COUNTED if name != KNOWN or any(s[KNOWN] for s in sections.values())]
    rows = [["section", *names]]
    rows += [[section, *(str(c[name] or ".") for name in names)] for section, c in sections.items()]
    total = sum(sections.values(), Counter())
    return [*rows, ["all", *(str(total[name]) for name in names)]]


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Give rows of cells as lines: the first column to the left, all others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _show_record(record: Record, subject: str, options: Sequence[str]) -> list[str]:
    verdict = record.verdict
    if record.alarm:
        return [
            f"ALARM  {verdict.case}",
            f"  it passes now, but is listed as a known failure: {record.known}",
        ]
    lines = [f"{record.counts_as}  {verdict.case}"]
    if record.known:
        lines.append(f"  known: {record.known}")
    if verdict.reason:
        lines.append(f"  {verdict.reason}")
    for difference in verdict.differences:
        lines += _show_difference(difference)
    return [*lines, f"  repeat with: {repeat_command(subject, verdict.case, options)}"]


def _show_difference(difference: Difference) -> list[str]:
    return [
        f"  at {difference.pointer or 'the root'}",
        f"    expected {_value(difference.expected)}",
        f"    found    {_value(difference.found)}",
    ]


def _value(value: Any) -> str:
    text = "nothing" if value is ... else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def one_line(text: str) -> str:
    """Make control characters visible, so that no text can control the terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _show_reasons(journal: Journal, outcome: Outcome) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for record in journal.records:
        if record.verdict.outcome is outcome:
            reasons.setdefault(record.verdict.reason, []).append(record.verdict.case)
    lines = []
    for reason, names in reasons.items():
        lines += ["", f"{outcome} ({len(names)}): {reason}", *(f"  {n}" for n in names)]
    return lines


def identical_bytes(journal: Journal) -> tuple[int, int]:
    """Return how many byte vectors an implementation got right, and how many there are."""
    marks = [
        record.verdict.outcome is Outcome.PASSED
        for record in journal.records
        if section_of(record.verdict.case).endswith(BYTES)
    ]
    return sum(marks), len(marks)


def scoreboard(journals: Sequence[Journal], missing: Mapping[str, str]) -> str:
    """Return the table over several implementations: passed cases, and identical bytes."""
    board = score_sections(journals)
    lines = [*align(board.texts()), "", "passed/run; - = unsupported", *not_run(missing)]
    return "\n".join(map(one_line, lines)) + "\n"


def score_sections(journals: Sequence[Journal]) -> Board:
    """Score each section for each implementation."""
    sections = dict.fromkeys(
        section_of(record.verdict.case) for journal in journals for record in journal.records
    )
    rows = [(name, tuple(_score(one.records, name) for one in journals)) for name in sections]
    rows.append(("all", tuple(_score(one.records, "") for one in journals)))
    rows.append(("byte-identical", tuple(map(_identical, journals))))
    return Board(("section", *(one.head.subject for one in journals)), tuple(rows))


def not_run(missing: Mapping[str, str]) -> list[str]:
    """Return a line with the reason for each implementation that could not start."""
    return [f"{name}: not run: {reason}" for name, reason in missing.items()]


def _score(records: Iterable[Record], section: str) -> Score:
    verdicts = [r.verdict for r in records if not section or section_of(r.verdict.case) == section]
    asked = [v for v in verdicts if v.outcome is not Outcome.UNSUPPORTED]
    return Score.of(sum(verdict.outcome is Outcome.PASSED for verdict in asked), len(asked))


def _identical(journal: Journal) -> Score:
    right, every = identical_bytes(journal)
    if not every:
        return Score("-")
    return Score("yes", True) if right == every else Score(f"no ({every - right} differ)", False)
