"""Regular languages as terms, closed under intersection, complement and derivative.

Terms are plain tuples in a normal form, so that equal terms are equal tuples. The derivative of a
term by a character is the language of the remaining strings after that character (Brzozowski,
1964). Intersection and complement are cheap in this form.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

__all__ = [
    "ANY",
    "EMPTY",
    "EVERYTHING",
    "NOTHING",
    "Ranges",
    "Term",
    "alt",
    "both",
    "cat",
    "chars",
    "complement",
    "derive",
    "literal",
    "normal",
    "nullable",
    "outside",
    "repeat",
]

Term = tuple[Any, ...]
Ranges = tuple[tuple[int, int], ...]

_TOP: Final = 0x10FFFF


def normal(ranges: Any) -> Ranges:
    """Sort ranges and join those that touch."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return tuple(out)


def outside(ranges: Ranges) -> Ranges:
    """Give every other code point."""
    out, start = [], 0
    for low, high in ranges:
        if start < low:
            out.append((start, low - 1))
        start = high + 1
    if start <= _TOP:
        out.append((start, _TOP))
    return tuple(out)


NOTHING: Final[Term] = ("none",)
EMPTY: Final[Term] = ("empty",)
_ALL_RANGES: Final = ((0, 0xD7FF), (0xE000, _TOP))
ANY: Final[Term] = ("chars", _ALL_RANGES)
EVERYTHING: Final[Term] = ("repeat", ANY, 0, None)


def chars(ranges: Any) -> Term:
    """Make the language of one character from ranges; surrogates are not characters."""
    kept = []
    for low, high in normal(ranges):
        for floor, ceiling in _ALL_RANGES:
            if max(low, floor) <= min(high, ceiling):
                kept.append((max(low, floor), min(high, ceiling)))
    return ("chars", normal(kept)) if kept else NOTHING


def cat(left: Term, right: Term) -> Term:
    """Make the language of a word of `left` followed by one of `right`."""
    if left is NOTHING or right is NOTHING or NOTHING in (left, right):
        return NOTHING
    if left == EMPTY:
        return right
    if right == EMPTY:
        return left
    if left[0] == "cat":
        return ("cat", left[1], cat(left[2], right))
    if left == EVERYTHING and (right == EVERYTHING or (right[0] == "cat" and right[1] == left)):
        return right
    return ("cat", left, right)


def alt(*terms: Term) -> Term:
    """Make the union."""
    flat: set[Term] = set()
    single: list[tuple[int, int]] = []
    for term in terms:
        for one in term[1] if term[0] == "alt" else (term,):
            if one[0] == "chars":
                single.extend(one[1])
            elif one != NOTHING:
                flat.add(one)
    if EVERYTHING in flat:
        return EVERYTHING
    if single:
        flat.add(chars(single))
    if EMPTY in flat and any(one != EMPTY and nullable(one) for one in flat):
        flat.discard(EMPTY)
    if not flat:
        return NOTHING
    return flat.pop() if len(flat) == 1 else ("alt", frozenset(flat))


def both(*terms: Term) -> Term:
    """Make the intersection."""
    flat: set[Term] = set()
    for term in terms:
        flat.update(term[1] if term[0] == "both" else (term,))
    flat.discard(EVERYTHING)
    if NOTHING in flat or any(("not", one) in flat for one in flat):
        return NOTHING
    if EMPTY in flat:
        return EMPTY if all(nullable(one) for one in flat) else NOTHING
    if not flat:
        return EVERYTHING
    return flat.pop() if len(flat) == 1 else ("both", frozenset(flat))


def complement(term: Term) -> Term:
    """Make the language of every other string."""
    if term[0] == "not":
        return term[1]  # type: ignore[no-any-return]
    if term == NOTHING:
        return EVERYTHING
    return NOTHING if term == EVERYTHING else ("not", term)


def repeat(term: Term, low: int, high: int | None) -> Term:
    """Make the language of `low` to `high` words of `term` in a row."""
    if high == 0 or term == EMPTY:
        return EMPTY
    if term == NOTHING:
        return EMPTY if low == 0 else NOTHING
    if low == 1 and high == 1:
        return term
    if term[0] == "repeat" and term[2:] == (0, None):
        return term
    return ("repeat", term, low, high)


def literal(word: str) -> Term:
    """Make the language of exactly one string."""
    out = EMPTY
    for char in reversed(word):
        out = cat(chars([(ord(char), ord(char))]), out)
    return out


@lru_cache(maxsize=50_000)
def nullable(term: Term) -> bool:
    """Tell whether the empty string belongs."""
    kind = term[0]
    if kind in ("none", "chars"):
        return False
    if kind == "empty":
        return True
    if kind == "cat":
        return nullable(term[1]) and nullable(term[2])
    if kind == "alt":
        return any(map(nullable, term[1]))
    if kind == "both":
        return all(map(nullable, term[1]))
    if kind == "not":
        return not nullable(term[1])
    return term[2] == 0 or nullable(term[1])


@lru_cache(maxsize=200_000)
def derive(term: Term, point: int) -> Term:
    """Make the derivative: the language of the remaining strings after the character `point`."""
    kind = term[0]
    if kind in ("none", "empty"):
        return NOTHING
    if kind == "chars":
        return EMPTY if any(low <= point <= high for low, high in term[1]) else NOTHING
    if kind == "cat":
        first = cat(derive(term[1], point), term[2])
        return alt(first, derive(term[2], point)) if nullable(term[1]) else first
    if kind == "alt":
        return alt(*(derive(one, point) for one in term[1]))
    if kind == "both":
        return both(*(derive(one, point) for one in term[1]))
    if kind == "not":
        return complement(derive(term[1], point))
    inner, low, high = term[1:]
    if nullable(inner):
        low = 0
    rest = repeat(inner, max(low - 1, 0), None if high is None else high - 1)
    return cat(derive(inner, point), rest)
