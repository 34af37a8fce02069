"""Show a count on a terminal, on stderr, at most ten times a second; nothing without a terminal."""

from __future__ import annotations

import sys
from time import monotonic
from typing import Final, Self

__all__ = ["CountLine"]

_EVERY: Final = 0.1


class CountLine:
    """One line that shows how many there are, and goes away at the end."""

    def __init__(self, noun: str, total: int | None = None) -> None:
        self._noun: Final = noun
        self._total: Final = "" if total is None else f" of {total}"
        self._shown: Final = sys.stderr.isatty()
        self._drawn = float("-inf")

    def __call__(self, count: int) -> None:
        """Show a count."""
        if self._shown and monotonic() - self._drawn >= _EVERY:
            self._drawn = monotonic()
            text = f"{count}{self._total} {self._noun}"
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
