"""The lab's journal as a matrix: senders down, receivers across, one cell for each pair.

A cell counts passed of all, and then what is not passed: `23`, `22/23 1F`. F failed, E errored,
U unsupported, K known. Cases that are not between two clients have no place in it.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from tallystick.core.journal import KNOWN, Journal
from tallystick.core.verdict import Outcome
from tallystick.report.table import align

__all__ = ["cells", "show_matrix"]

_LETTERS: Final = {
    Outcome.FAILED.value: "F",
    Outcome.ERRORED.value: "E",
    Outcome.UNSUPPORTED.value: "U",
    KNOWN: "K",
}


def cells(journal: Journal) -> dict[tuple[str, str], Counter[str]]:
    """Count outcomes by (sender, receiver): the last two parts of the name of a pair's case."""
    counted: dict[tuple[str, str], Counter[str]] = {}
    for record in journal.records:
        parts = record.verdict.case.split("/")
        if len(parts) >= 4:
            counted.setdefault((parts[-2], parts[-1]), Counter())[record.counts_as] += 1
    return counted


def show_matrix(journal: Journal) -> str:
    """Give the matrix as text, or nothing when there are no pairs."""
    counted = cells(journal)
    if not counted:
        return ""
    senders = list(dict.fromkeys(sender for sender, _ in counted))
    across = dict.fromkeys(receiver for _, receiver in counted)
    receivers = [name for name in dict.fromkeys([*senders, *across]) if name in across]
    rows = [["from \\ to", *receivers]]
    rows += [
        [sender, *(_cell(counted.get((sender, receiver), Counter())) for receiver in receivers)]
        for sender in senders
    ]
    return "\n".join(align(rows)) + "\n"


def _cell(counts: Counter[str]) -> str:
    total = counts.total()
    passed = counts[Outcome.PASSED]
    if passed == total:
        return str(total) if total else "."
    rest = " ".join(f"{counts[name]}{letter}" for name, letter in _LETTERS.items() if counts[name])
    return f"{passed}/{total} {rest}"
