"""A `Board`: a table with a `Score` in each cell, for the terminal and for pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Board", "Score"]


@dataclass(frozen=True, slots=True)
class Score:
    """One cell: its text, and whether everything passed (None: nothing to judge)."""

    text: str
    whole: bool | None = None

    @staticmethod
    def of(passed: int, asked: int, note: str = "") -> Score:
        """Give passed/run, or a dash if no case was run."""
        if not asked:
            return Score("-")
        return Score(f"{passed}/{asked}{note}", passed == asked)


@dataclass(frozen=True, slots=True)
class Board:
    """A table of scores; `head` names the columns, the first one being that of the row names."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Score, ...]], ...]

    def texts(self) -> list[Sequence[str]]:
        """Give the rows as texts, the head first."""
        return [self.head, *((name, *(one.text for one in scores)) for name, scores in self.rows)]
