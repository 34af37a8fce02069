"""The CloudEvents scoreboard: official files and our own groups as rows, subjects as columns.

A cell is passed/asked. What a subject declares unsupported is not asked; `-` stands where nothing
was. A subject that ended a case with an error which is none of its own (a crash) did not reject:
such cases are asked, not passed, and counted again as `n!`. The `of all` rows count every case, so
that a subject without batches cannot look complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallystick.core.verdict import Outcome
from tallystick.report.table import align, not_run, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tallystick.core.journal import Journal
    from tallystick.core.verdict import Verdict

__all__ = ["count_parts", "event_scoreboard"]

_LEGEND = "passed/asked; n! of them ended in a crash, which is no rejection; - is unsupported"


def event_scoreboard(journals: Sequence[Journal], missing: Mapping[str, str]) -> str:
    """Give the table over several subjects, part by part and group by group."""
    rows = [["section", *(journal.head.subject for journal in journals)]]
    for part, groups in _parts(journals).items():
        for group in groups:
            name = f"{part}/{group}"
            rows.append([name, *(_score(_verdicts(one, f"{name}/")) for one in journals)])
        of_all = [_passed(_verdicts(one, f"{part}/")) for one in journals]
        rows.append([f"{part}, of all", *of_all])
    lines = [*align(rows), "", _LEGEND, *not_run(missing)]
    return "\n".join(map(one_line, lines)) + "\n"


def count_parts(journal: Journal) -> dict[str, dict[str, Any]]:
    """Give the counts of each part (json, protobuf, xml, own) for programs."""
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
            _, part, group, _ = record.verdict.case.split("/", maxsplit=3)
            parts.setdefault(part, {})[group] = None
    return {part: list(groups) for part, groups in parts.items()}


def _verdicts(journal: Journal, within: str) -> list[Verdict]:
    return [
        record.verdict
        for record in journal.records
        if record.verdict.case.partition("/")[2].startswith(within)
    ]


def _score(verdicts: Sequence[Verdict]) -> str:
    asked = [v.outcome for v in verdicts if v.outcome is not Outcome.UNSUPPORTED]
    if not asked:
        return "-"
    crashed = asked.count(Outcome.ERRORED)
    mark = f" {crashed}!" if crashed else ""
    return f"{asked.count(Outcome.PASSED)}/{len(asked)}{mark}"


def _passed(verdicts: Sequence[Verdict]) -> str:
    return f"{sum(v.outcome is Outcome.PASSED for v in verdicts)}/{len(verdicts)}"
