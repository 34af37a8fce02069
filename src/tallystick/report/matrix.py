"""Show a lab journal as a matrix: senders as rows, receivers as columns, one cell per pair.

A cell counts the passed cases, and then those that did not pass: `23`, `22/23 1F`. F = failed, E =
errored, U = unsupported, K = known failure. Cases that are not between two clients are left out.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from tallystick.core.journal import KNOWN, Journal
from tallystick.core.verdict import Outcome
from tallystick.report.board import Board, Score
from tallystick.report.table import align

__all__ = ["cells", "score_pairs", "show_matrix"]

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
    board = score_pairs(journal)
    return "\n".join(align(board.texts())) + "\n" if board.rows else ""


def score_pairs(journal: Journal) -> Board:
    """Score each pair of clients; without pairs the board has no rows."""
    counted = cells(journal)
    senders = list(dict.fromkeys(sender for sender, _ in counted))
    across = dict.fromkeys(receiver for _, receiver in counted)
    receivers = [name for name in dict.fromkeys([*senders, *across]) if name in across]
    rows = [
        (sender, tuple(_cell(counted.get((sender, receiver), Counter())) for receiver in receivers))
        for sender in senders
    ]
    return Board(("from \\ to", *receivers), tuple(rows))


def _cell(counts: Counter[str]) -> Score:
    total = counts.total()
    passed = counts[Outcome.PASSED]
    if passed == total:
        return Score(str(total), True) if total else Score(".")
    rest = " ".join(f"{counts[name]}{letter}" for name, letter in _LETTERS.items() if counts[name])
    wrong = counts[Outcome.FAILED] + counts[Outcome.ERRORED]
    return Score(f"{passed}/{total} {rest}", False if wrong else None)
