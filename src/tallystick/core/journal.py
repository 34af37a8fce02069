"""A `Journal` holds the verdicts of one run as JSON lines (docs/reference/journal.md).

The first line is the head (run, time, suite, implementation, versions), then comes
one line for each verdict, and the last line is the foot with the counts. A journal without a foot
was cut short: `complete` is false, and the existing lines are returned. A file may hold
several journals, one after the other; every report is made from journals alone.

In a `Difference`, `...` means "missing"; such a member is not written.
Clocks and ids are arguments (law 8); these functions go from values to lines and back.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from tallystick.core.errors import Rejected
from tallystick.core.verdict import Difference, Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = [
    "FORMAT", "KNOWN", "Foot", "Head", "Journal", "Record", "count", "read", "write_foot",
    "write_head", "write_record",
]  # fmt: skip

FORMAT: Final = 1
KNOWN: Final = "known"
"""The name of the count of known failures; they do not count as failed or errored."""

_TROUBLE: Final = frozenset({Outcome.FAILED, Outcome.ERRORED})


@dataclass(frozen=True, slots=True)
class Head:
    """The run: an id, RFC 3339 time, the suite, the implementation, and versions by name."""

    run: str
    time: str
    suite: str
    subject: str
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Record:
    """One verdict, and the reason if its failure is a known one."""

    verdict: Verdict
    known: str = ""

    @property
    def counts_as(self) -> str:
        """Name the count this record belongs to: an outcome, or `known`."""
        return KNOWN if self.known and self.verdict.outcome in _TROUBLE else self.verdict.outcome

    @property
    def alarm(self) -> bool:
        """Tell whether a known failure has passed."""
        return bool(self.known) and self.verdict.outcome is Outcome.PASSED


@dataclass(frozen=True, slots=True)
class Foot:
    """The end of a run: counts by outcome, the duration, and notes about the implementation."""

    counts: Mapping[str, int]
    milliseconds: float = 0.0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Journal:
    """One run, read back. Without a foot the run was cut short."""

    head: Head
    records: tuple[Record, ...] = ()
    foot: Foot | None = None

    @property
    def complete(self) -> bool:
        """Tell whether the run was finished."""
        return self.foot is not None


class _HeadLine(msgspec.Struct, forbid_unknown_fields=True):
    kind: Literal["head"]
    format: Literal[1]
    run: str
    time: str
    suite: str
    subject: str
    versions: dict[str, str]


class _DifferenceLine(msgspec.Struct, forbid_unknown_fields=True):
    pointer: str
    expected: Any = ...
    found: Any = ...


class _VerdictLine(msgspec.Struct, forbid_unknown_fields=True):
    kind: Literal["verdict"]
    case: str
    outcome: Outcome
    milliseconds: float
    reason: str = ""
    known: str = ""
    differences: list[_DifferenceLine] = []
    measured: dict[str, Any] = {}


class _FootLine(msgspec.Struct, forbid_unknown_fields=True):
    kind: Literal["foot"]
    counts: dict[str, int]
    milliseconds: float
    notes: list[str]


_LINES: Final[dict[str, type[_HeadLine | _VerdictLine | _FootLine]]] = {
    "head": _HeadLine,
    "verdict": _VerdictLine,
    "foot": _FootLine,
}


def _as_text(value: object) -> str:
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"a journal can hold only JSON values, found {type(value).__name__}")


def _line(members: dict[str, Any]) -> str:
    return json.dumps(members, separators=(",", ":"), default=_as_text, allow_nan=False) + "\n"


def write_head(head: Head) -> str:
    """Give the first line of a journal."""
    return _line(
        {
            "kind": "head",
            "format": FORMAT,
            "run": head.run,
            "time": head.time,
            "suite": head.suite,
            "subject": head.subject,
            "versions": dict(head.versions),
        }
    )


def write_record(record: Record) -> str:
    """Give the line of one verdict; empty members are left out."""
    verdict = record.verdict
    members: dict[str, Any] = {
        "kind": "verdict",
        "case": verdict.case,
        "outcome": verdict.outcome.value,
        "milliseconds": round(verdict.milliseconds, 3),
    }
    if verdict.reason:
        members["reason"] = verdict.reason
    if record.known:
        members["known"] = record.known
    if verdict.differences:
        members["differences"] = [_write_difference(one) for one in verdict.differences]
    if verdict.measured:
        members["measured"] = dict(verdict.measured)
    return _line(members)


def _write_difference(difference: Difference) -> dict[str, Any]:
    sides = {"expected": difference.expected, "found": difference.found}
    present = {side: value for side, value in sides.items() if value is not ...}
    return {"pointer": difference.pointer, **present}


def write_foot(foot: Foot) -> str:
    """Give the last line of a journal."""
    return _line(
        {
            "kind": "foot",
            "counts": dict(foot.counts),
            "milliseconds": round(foot.milliseconds, 3),
            "notes": list(foot.notes),
        }
    )


def count(records: Iterable[Record]) -> dict[str, int]:
    """Count records by outcome; known failures count as `known`."""
    counted = Counter(record.counts_as for record in records)
    return {name: counted[name] for name in (*(o.value for o in Outcome), KNOWN)}


def read(lines: Iterable[str]) -> tuple[Journal, ...]:
    """Read every journal in a file; an incomplete last line is ignored."""
    journals: list[Journal] = []
    head: Head | None = None
    records: list[Record] = []
    for number, parsed in _parse(lines):
        match parsed:
            case _HeadLine():
                if head is not None:
                    journals.append(Journal(head, tuple(records)))
                head, records = _read_head(parsed), []
            case _ if head is None:
                raise _rejected(number, "a journal must begin with a `head` line")
            case _VerdictLine():
                records.append(_read_record(parsed))
            case _FootLine():
                journals.append(_close(head, records, parsed, number))
                head = None
    if head is not None:
        journals.append(Journal(head, tuple(records)))
    if not journals:
        raise Rejected("the file contains no journal", code="journal_empty")
    return tuple(journals)


def _parse(lines: Iterable[str]) -> Iterator[tuple[int, _HeadLine | _VerdictLine | _FootLine]]:
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        cut = not text.endswith("\n")
        try:
            members = json.loads(text)
            yield number, msgspec.convert(members, _LINES[members["kind"]])
        except (ValueError, TypeError, KeyError, RecursionError, msgspec.ValidationError) as error:
            if cut:
                return
            raise _rejected(number, str(error) or "not a journal line") from error


def _close(head: Head, records: list[Record], line: _FootLine, number: int) -> Journal:
    if line.counts != count(records):
        raise _rejected(number, "the counts in the foot differ from the counts of the lines above")
    return Journal(head, tuple(records), Foot(line.counts, line.milliseconds, tuple(line.notes)))


def _read_head(line: _HeadLine) -> Head:
    return Head(line.run, line.time, line.suite, line.subject, line.versions)


def _read_record(line: _VerdictLine) -> Record:
    differences = tuple(Difference(d.pointer, d.expected, d.found) for d in line.differences)
    verdict = Verdict(
        line.case, line.outcome, line.reason, differences, line.milliseconds, line.measured
    )
    return Record(verdict, line.known)


def _rejected(number: int, why: str) -> Rejected:
    return Rejected(f"journal, line {number}: {why}", code="journal_line")
