"""Inhabitants of plain constraints on a number or a string.

Numbers are rational and exact. With `multipleOf`, the multiples are tried in order; without it,
there is always another number between two numbers. Strings without patterns are enumerated. All
patterns together are one regular language. For formats, the validator decides; samples and an
enclosing language help.
"""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import count as numbers
from math import ceil, floor, lcm
from typing import Any

from tallystick.schemas.containment.language import find_words
from tallystick.schemas.containment.nodes import Sample, Space, exact
from tallystick.schemas.containment.pattern import NotRegular, approximate, pattern_language
from tallystick.schemas.containment.predicates import HOLDS, SAMPLES, enclosing, matches, predicate
from tallystick.schemas.containment.regex import (
    ANY,
    Term,
    both,
    complement,
    derive,
    literal,
    nullable,
    repeat,
)

__all__ = ["solve_number", "solve_string"]

Atoms = list[tuple[Any, ...]]
_EMPTY = Sample((), complete=True)
_MAX_CHARACTERS = 1_000_000
_NEAR = 12


def solve_number(space: Space, atoms: Atoms, want: int) -> Sample:
    """Return numbers between the bounds that are, or are not, the given multiples."""
    low = max(((atom[1], atom[2]) for atom in atoms if atom[0] == "low"), default=None)
    high = min(((atom[1], not atom[2]) for atom in atoms if atom[0] == "high"), default=None)
    steps = [atom[1] for atom in atoms if atom[0] == "step"]
    off = [atom[1] for atom in atoms if atom[0] == "off"]
    out = {exact(value) for atom in atoms if atom[0] == "out" for value in atom[1]}
    if low and high and (low[0] > high[0] or (low[0] == high[0] and (low[1] or not high[1]))):
        return _EMPTY
    if any(value < 0 for value in (*steps, *off)) or 0 in (*steps, *off):
        return Sample((), complete=False)
    if steps:
        return _on_grid(space, _common(steps), low, high, (off, out, want))
    if low and high and low[0] == high[0]:
        point = low[0]
        good = point not in out and not any(point % one == 0 for one in off)
        return Sample((_written(point),) if good else (), complete=True)
    return _between(low, high, off, out, want)


def _common(steps: list[Fraction]) -> Fraction:
    """Give the smallest step that is a whole multiple of each."""
    bottom = lcm(*(step.denominator for step in steps))
    return Fraction(lcm(*(int(step * bottom) for step in steps)), bottom)


def _on_grid(space: Space, step: Fraction, low: Any, high: Any, rest: Any) -> Sample:
    off, out, want = rest
    if any(step % one == 0 for one in off):
        return _EMPTY
    first = ceil(low[0] / step) if low else None
    last = floor(high[0] / step) if high else None
    if first is not None and low[1] and first * step == low[0]:
        first += 1
    if last is not None and not high[1] and last * step == high[0]:
        last -= 1
    if first is not None and last is not None:
        places: Any = range(first, last + 1)
        if first <= 0 <= last:
            places = (
                [*range(last + 1), *range(-1, first - 1, -1)] if last - first < 2000 else places
            )
        bounded = True
    else:
        start = first if first is not None else last if last is not None else 0
        way = -1 if first is None and last is not None else 1
        if first is not None and first < 0 and last is None:
            start = 0
        places = numbers(start, way)
        bounded = False
    values: list[Any] = []
    for tried, place in enumerate(places):
        space.spend(1)
        if tried > 5000:
            return Sample(tuple(values), complete=False)
        point = place * step
        if point not in out and not any(point % one == 0 for one in off):
            values.append(_written(point))
            if len(values) >= want:
                break
    else:
        return Sample(tuple(values), complete=bounded)
    return Sample(tuple(values), complete=False)


def _between(low: Any, high: Any, off: list[Fraction], out: set[Fraction], want: int) -> Sample:
    """Take simple decimals first, then ever finer ones; there is always another."""
    values: list[Any] = []
    for point in _decimals(low, high):
        if (low and (point < low[0] or (low[1] and point == low[0]))) or (
            high and (point > high[0] or (not high[1] and point == high[0]))
        ):
            continue
        try:
            written = _written(point)
        except OverflowError:
            continue
        if exact(written) != point or point in out or any(point % one == 0 for one in off):
            continue
        if written not in values:
            values.append(written)
        if len(values) >= want:
            break
    return Sample(tuple(values), complete=False)


def _decimals(low: Any, high: Any) -> Any:
    base = low[0] if low else high[0] if high else Fraction(0)
    away = -1 if high and not low else 1
    if not low or not high:
        for step in (Fraction(0), Fraction(1), Fraction(1, 2), Fraction(3, 10), Fraction(7, 100)):
            yield floor(base) + away * step
            yield base + away * step
        for number in range(2, 1200):
            yield floor(base) + away * number
            yield base + away * (number + Fraction(137, 1000))
        return
    width = high[0] - low[0]
    yield base
    yield high[0]
    if width <= 2000:
        for number in range(ceil(low[0]), floor(high[0]) + 1):
            yield Fraction(number)
    for parts in (2, 10, 100, 1000, 7, 1024):
        scale = 1
        while width * scale < 1:
            scale *= 10
        for number in range(1, parts):
            point = low[0] + width * number / parts
            yield Fraction(floor(point * scale * 1000), scale * 1000)
            yield point


def _written(point: Fraction) -> Any:
    """Write a rational as a JSON number: an integer where it is one."""
    return int(point) if point.denominator == 1 else float(point)


def solve_string(space: Space, atoms: Atoms, want: int) -> Sample:
    """Give strings within the lengths that match, and do not match, as asked."""
    low = max((atom[1] for atom in atoms if atom[0] == "length"), default=0)
    highs = [atom[2] for atom in atoms if atom[0] == "length" and atom[2] is not None]
    high = min(highs, default=None)
    out = {value for atom in atoms if atom[0] == "out" for value in atom[1]}
    patterns = {(atom[1], atom[2]) for atom in atoms if atom[0] == "pattern"}
    asked = {(atom[1], atom[2]) for atom in atoms if atom[0] == "predicate"}
    if (high is not None and low > high) or any((p, not s) in patterns for p, s in patterns):
        return _EMPTY
    if not patterns and not asked and not out:
        return _free(low, high, want)
    terms: list[Term] = [repeat(ANY, low, high)] if low or high is not None else []
    for pattern, sign in sorted(patterns):
        try:
            term = pattern_language(pattern)
        except NotRegular:
            asked.add((predicate({"pattern": pattern}, "draft-07"), sign))
        else:
            terms.append(term if sign else complement(term))
    if len(out) <= 60:
        terms.extend(complement(literal(word)) for word in sorted(out))
        out = set()
    if not asked:
        words, complete, steps = find_words(both(*terms), want + len(out), lambda: space.spend(0))
        space.spend(steps // 4)
        kept = [word for word in words if word not in out]
        return Sample(tuple(kept[:want]), complete and len(kept) <= want)
    return _ask(space, both(*terms), asked, out, want)


def _free(low: int, high: int | None, want: int) -> Sample:
    if high == 0:
        return Sample(("",), complete=True)
    letters = "abcdefghijklmnopqrstuvwxyz"
    if low > _MAX_CHARACTERS:
        return Sample((), complete=False)
    length = max(low, 1)
    if want <= 26:
        return Sample(tuple("a" * (length - 1) + one for one in letters[:want]), complete=False)
    words, complete, _ = find_words(repeat(ANY, low, high), want)
    return Sample(tuple(words), complete)


def _ask(
    space: Space, term: Term, asked: set[tuple[str, bool]], out: set[str], want: int
) -> Sample:
    """Search strings that the validator judges as asked; only contradictions are proofs."""
    if _is_contradiction(asked):
        return _EMPTY
    term = both(term, *(enclosing(question) for question, sign in asked if sign))
    words, complete, steps = find_words(term, max(want, 40), lambda: space.spend(0))
    space.spend(steps // 4)
    samples = [one for values in SAMPLES.values() for one in values]
    guesses = ["", "a", "!", "1", "a b", "-1", "e30=", "{}", "@", "null", "aa", "ab", "a1", "foo"]
    kept: dict[str, None] = {}
    for word in [*samples, *words, *_near(space, asked), *guesses]:
        space.spend(1)
        if word in out or not _member(term, word):
            continue
        if all(matches(question, word) is sign for question, sign in asked):
            kept[word] = None
            if len(kept) >= want:
                return Sample(tuple(kept), complete=False)
    return Sample(tuple(kept), complete)


def _near(space: Space, asked: set[tuple[str, bool]]) -> list[str]:
    """Give texts near to what patterns beyond regular languages match, and do not match."""
    terms = []
    for question, sign in sorted(asked):
        pattern = json.loads(question).get("pattern")
        if pattern is not None:
            try:
                term = pattern_language(approximate(pattern))
            except NotRegular:
                continue
            terms.append((term, sign))
    both_ways = both(*(term if sign else complement(term) for term, sign in terms))
    found: list[str] = []
    for term in (both_ways, *(term for term, _ in terms)):
        words, _, steps = find_words(term, _NEAR, lambda: space.spend(0))
        space.spend(steps // 4)
        found.extend(one for word in words for one in (word, f"{word}a", f"{word} a", f"a {word}"))
    return [*found, "é"]


def _is_contradiction(asked: set[tuple[str, bool]]) -> bool:
    formats = [(json.loads(one).get("format"), one, sign) for one, sign in asked]
    for narrow, question, sign in formats:
        if not sign:
            continue
        if (question, False) in asked:
            return True
        for wide, _, wide_sign in formats:
            if not wide_sign and wide is not None and narrow in HOLDS.get(wide, ()):
                return True
    return False


def _member(term: Term, word: str) -> bool:
    for char in word:
        term = derive(term, ord(char))
    return nullable(term)
