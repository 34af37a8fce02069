"""The CloudEvents scoreboard: groups of cases as rows, implementations as columns.

The parts are the formats: `json`, `protobuf` and `xml` are the official files, `own/json` and so on
are our own cases, with `own/modes` for the protocol bindings.

A cell is passed/run. A case that an implementation declares unsupported is not run; `-` means that
no case of the group was run. A crash is not a rejection: such a case counts as run and not passed,
and again in `n!`. The `total` rows count every case, so an implementation without batches cannot
look complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallystick.core.verdict import Outcome
from tallystick.report.board import Board, Score
from tallystick.report.table import align, not_run, one_line
from tallystick.suites.cloudevents import OWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tallystick.core.journal import Journal
    from tallystick.core.verdict import Verdict

__all__ = ["LEGEND", "count_parts", "event_scoreboard", "score_events"]

LEGEND = "passed/run; n! = n crashes, counted as failures; - = unsupported"


def event_scoreboard(journals: Sequence[Journal], missing: Mapping[str, str]) -> str:
    """Return the table over several implementations, by part and group."""
    lines = [*align(score_events(journals).texts()), "", LEGEND, *not_run(missing)]
    return "\n".join(map(one_line, lines)) + "\n"


def score_events(journals: Sequence[Journal]) -> Board:
    """Score each group of each part for each implementation."""
    rows: list[tuple[str, tuple[Score, ...]]] = []
    for part, groups in _parts(journals).items():
        for group in groups:
            name = f"{part}/{group}"
            rows.append((name, tuple(_score(_verdicts(one, f"{name}/")) for one in journals)))
        of_all = tuple(_passed(_verdicts(one, f"{part}/")) for one in journals)
        rows.append((f"{part}, total", of_all))
    return Board(("section", *(journal.head.subject for journal in journals)), tuple(rows))


def count_parts(journal: Journal) -> dict[str, dict[str, Any]]:
    """Give the counts of each part (`json`, `own/json` and so on) for programs."""
    return {
        part: {
            outcome.value: sum(v.outcome is outcome for v in _verdicts(journal, f"{part}/"))
            for outcome in Outcome
        }
        for part in _parts([journal])
    }


def _parts(journals: Iterable[Journal]) -> dict[str, list[str]]:
    """Give the parts of a suite in order, and the groups within each."""
    parts: dict[str, dict[str, None]] = {}
    for journal in journals:
        for record in journal.records:
            _, *names = record.verdict.case.split("/")
            depth = 2 if names[0] == OWN else 1
            parts.setdefault("/".join(names[:depth]), {})[names[depth]] = None
    return {part: list(groups) for part, groups in parts.items()}


def _verdicts(journal: Journal, within: str) -> list[Verdict]:
    return [
        record.verdict
        for record in journal.records
        if record.verdict.case.partition("/")[2].startswith(within)
    ]


def _score(verdicts: Sequence[Verdict]) -> Score:
    asked = [v.outcome for v in verdicts if v.outcome is not Outcome.UNSUPPORTED]
    crashed = asked.count(Outcome.ERRORED)
    mark = f" {crashed}!" if crashed else ""
    return Score.of(asked.count(Outcome.PASSED), len(asked), mark)


def _passed(verdicts: Sequence[Verdict]) -> Score:
    return Score.of(sum(v.outcome is Outcome.PASSED for v in verdicts), len(verdicts))
