"""Write journals as one HTML page that opens from disk: no network, no build step.

The page holds the verdicts as JSON, and its script draws them: a matrix of senders and receivers
where case names hold pairs, sections by implementation, results by tier, then every case with its
differences, its messages and the command that repeats it. Measured latencies are shown as a chart
and a table. The content security policy allows only the page's own script and style, by their hash,
and the data cannot end its element, so no text of an implementation can become code.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tallystick.core.journal import KNOWN, Journal, Record
from tallystick.core.verdict import Outcome
from tallystick.report.shell import fill
from tallystick.report.table import repeat_command, section_of

__all__ = ["build_page", "pair_of"]

_OUTCOMES: Final = (*(outcome.value for outcome in Outcome), KNOWN)
_MARK: Final = "\0"


def pair_of(subject: str, case: str) -> tuple[str, str] | None:
    """Give sender and receiver of `<broker>/<test>/.../<sender>/<receiver>`, if it has them."""
    parts = case.split("/")
    return (parts[-2], parts[-1]) if parts[0] == subject and len(parts) >= 4 else None


def build_page(
    journals: Sequence[Journal],
    changes: Mapping[str, Sequence[str]] | None = None,
    coverage: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Return the page of runs, with the changes and the cases that cover each requirement."""
    texts: dict[str, int] = {}
    data = {
        "outcomes": _OUTCOMES,
        "runs": [_run(journal, texts) for journal in journals],
        "changes": changes or {},
        "coverage": coverage or {},
        "texts": list(texts),
    }
    written = json.dumps(data, separators=(",", ":"), default=str).replace("<", "\\u003c")
    return fill("page.html", data=written)


def _run(journal: Journal, texts: dict[str, int]) -> dict[str, Any]:
    head = journal.head
    return {
        "run": head.run,
        "time": head.time,
        "suite": head.suite,
        "subject": head.subject,
        "versions": dict(head.versions),
        "complete": journal.complete,
        "seconds": round(journal.foot.milliseconds / 1000, 3) if journal.foot else 0,
        "notes": list(journal.foot.notes) if journal.foot else [],
        "cases": [_case(head.subject, record, texts) for record in journal.records],
    }


def _case(subject: str, record: Record, texts: dict[str, int]) -> list[Any]:
    """Return one case as a row; repeated texts are stored once, in a list."""
    verdict = record.verdict
    row: list[Any] = [
        verdict.case,
        _OUTCOMES.index(record.counts_as),
        round(verdict.milliseconds, 1),
        _number(texts, section_of(verdict.case)),
        _number(texts, verdict.reason),
        _number(texts, f"{'ALARM: ' * record.alarm}{record.known}"),
        list(pair_of(subject, verdict.case) or ()),
        [_difference(one.pointer, one.expected, one.found) for one in verdict.differences],
        _number(texts, _command(subject, verdict.case)),
    ]
    if verdict.measured:
        row.append({name: one for name, one in verdict.measured.items() if name != "histogram"})
    return row


def _command(subject: str, case: str) -> str:
    """Return the command that repeats a case, with a placeholder for its unquoted name."""
    command = repeat_command(subject, case)
    return command.replace(case, _MARK) if shlex.quote(case) == case else command


def _number(texts: dict[str, int], text: str) -> int:
    return texts.setdefault(text, len(texts))


def _difference(pointer: str, expected: Any, found: Any) -> list[Any]:
    """Give a difference as texts; a side that is missing is null."""
    return [pointer, *(None if side is ... else _text(side) for side in (expected, found))]


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
