"""Covering arrays over the 9216 sets: every pair, triple or quadruple of values is in some row.

The rows come from `covertable`; `count_tuples` checks the coverage by counting.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import combinations, product
from typing import Final

from tallystick.core.extras import importing
from tallystick.lab.combinations import VARIED, Parameters

__all__ = ["count_tuples", "cover"]

_SALT: Final = "3"
"""Picks the order covertable tries values in: with this one the pairs need 18 rows, the minimum."""


@cache
def cover(strength: int) -> tuple[Parameters, ...]:
    """Give rows in which every `strength` parameters show all their combinations of values."""
    with importing("lab"):
        import covertable  # type: ignore[import-untyped]  # noqa: PLC0415

    names = sorted(VARIED, key=lambda name: -len(VARIED[name]))  # the longest first: fewer rows
    rows = covertable.make([list(VARIED[name]) for name in names], strength=strength, salt=_SALT)
    return tuple(Parameters(**dict(zip(names, row, strict=True))) for row in rows)


def count_tuples(rows: Iterable[Parameters], strength: int) -> tuple[int, int]:
    """Count the tuples of values the rows cover, and all there are."""
    given = tuple(rows)
    covered = every = 0
    for names in combinations(VARIED, strength):
        every += len(list(product(*(VARIED[name] for name in names))))
        covered += len({tuple(getattr(row, name) for name in names) for row in given})
    return covered, every
