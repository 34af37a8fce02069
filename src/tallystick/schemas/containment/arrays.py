"""Inhabitants of plain constraints on an array.

An array that satisfies them still does so when it is shortened to the longest prefix that a
constraint mentions, plus one item for each item that must exist. So it is enough to try a finite
number of lengths, and for each length a finite number of places for the required items.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice, product
from typing import Any

from tallystick.schemas.containment.nodes import Key, Literal, Sample, Space, distinct, freeze

__all__ = ["solve_array"]

Atoms = list[tuple[Any, ...]]
_MAX_LENGTH = 20_000
_MAX_WAYS = 400


class _Array:
    """The atoms of one array, sorted by what they say."""

    def __init__(self, atoms: Atoms) -> None:
        highs = [atom[2] for atom in atoms if atom[0] == "length" and atom[2] is not None]
        self.low = max((atom[1] for atom in atoms if atom[0] == "length"), default=0)
        self.high: int | None = min(highs, default=None)
        self.each = [atom[1:] for atom in atoms if atom[0] == "each"]
        self.some = [atom[1:] for atom in atoms if atom[0] == "some"]
        self.counts = _merged([atom[1:] for atom in atoms if atom[0] == "count"])
        self.unique = {atom[1] for atom in atoms if atom[0] == "unique"}
        self.out = {freeze(value) for atom in atoms if atom[0] == "out" for value in atom[1]}
        self.edge = max(
            (start if stop is None else stop for start, stop, _ in (*self.each, *self.some)),
            default=0,
        )

    def demanded(self) -> int:
        """Count the items that must exist."""
        return len(self.some) + sum(low for _, low, _ in self.counts) + 2 * (False in self.unique)

    def base(self, at: int) -> frozenset[Literal]:
        """Give what holds of the item at a place."""
        return frozenset(
            literal
            for start, stop, literal in self.each
            if start <= at and (stop is None or at < stop)
        )


def _merged(counts: list[Any]) -> list[tuple[Any, int, int | None]]:
    """Join the counts of the same node."""
    joined: dict[Any, tuple[int, int | None]] = {}
    for node, low, high in counts:
        old_low, old_high = joined.get(node, (0, None))
        highs = [one for one in (high, old_high) if one is not None]
        joined[node] = (max(low, old_low), min(highs, default=None))
    return [(node, low, high) for node, (low, high) in joined.items()]


def solve_array(space: Space, atoms: Atoms, want: int) -> Sample:
    """Give arrays, shortest first."""
    rules = _Array(atoms)
    if rules.unique == {True, False}:
        return Sample((), complete=True)
    if any(high is not None and low > high for _, low, high in rules.counts):
        return Sample((), complete=True)
    top = max(rules.low, rules.edge + rules.demanded())
    if rules.high is not None:
        top = min(top, rules.high)
    if rules.low > top:
        return Sample((), complete=True)
    if top > _MAX_LENGTH:
        return Sample((), complete=False)
    if want > 1 or rules.out:
        top = top + 2 if rules.high is None else min(top + 2, rules.high)
    found: list[Any] = []
    complete, dropped = True, False
    assumed: set[Key] = set()
    exhaustive = rules.high is not None and top == rules.high and not rules.demanded()
    exhaustive = exhaustive and not rules.counts
    for length in range(rules.low, top + 1):
        for slots in _ways(space, rules, length):
            if slots is None:
                complete = False
                break
            values, whole, every = _fill(space, rules, slots, want, assumed)
            complete = complete and whole
            exhaustive = exhaustive and every
            kept = [value for value in values if freeze(value) not in rules.out]
            dropped = dropped or len(kept) < len(values)
            found.extend(kept)
            if len(found) >= want * 2:
                break
        found = distinct(found)
        if len(found) >= want:
            return Sample(tuple(found[:want]), complete=False)
    done = exhaustive or (not found and not dropped)
    return Sample(tuple(found), done and complete, frozenset(assumed))


def _ways(space: Space, rules: _Array, length: int) -> Iterator[list[set[Literal]] | None]:
    """Give each way to place what must exist; None when there are too many to try."""
    choices: list[list[Any]] = []
    for node, low, high in rules.counts:
        top = low if high is None else min(high, length)
        sets = (
            (node, high is not None, chosen)
            for size in range(low, top + 1)
            for chosen in combinations(_tellable(rules, length, low), min(size, length))
            if size <= length
        )
        choices.append(list(islice(sets, _MAX_WAYS + 1)))
    for start, stop, literal in rules.some:
        places = [
            at
            for at in _tellable(rules, length, rules.demanded())
            if start <= at and (stop is None or at < stop)
        ]
        choices.append([(literal, None, (at,)) for at in places])
    if False in rules.unique:
        pairs = combinations(range(min(length, rules.edge + 2)), 2)
        choices.append([("twin", None, pair) for pair in pairs])
    space.spend(length // 10)
    bases = [rules.base(at) for at in range(min(length, rules.edge + 1))]
    if any(len(one) > _MAX_WAYS for one in choices):
        yield None
        return
    for tried, way in enumerate(product(*choices)):
        space.spend(1)
        if tried >= _MAX_WAYS:
            yield None
            return
        slots: list[set[Literal]] = [set(bases[min(at, len(bases) - 1)]) for at in range(length)]
        for what, capped, places in way:
            if what == "twin":
                shared = slots[places[0]] | slots[places[1]]
                slots[places[0]] = slots[places[1]] = shared
            elif capped is None:
                slots[places[0]].add(what)
            else:
                for at in range(length):
                    if at in places:
                        slots[at].add((what, True))
                    elif capped:
                        slots[at].add((what, False))
        yield slots


def _tellable(rules: _Array, length: int, needed: int) -> range:
    """Give the places worth trying: beyond the prefix, items are alike."""
    capped = any(high is not None for _, _, high in rules.counts)
    extra = length if capped else max(needed, rules.demanded())
    return range(min(length, rules.edge + extra))


def _fill(
    space: Space, rules: _Array, slots: list[set[Literal]], want: int, assumed: set[Key]
) -> tuple[list[Any], bool, bool]:
    """Give arrays for one way, whether a lack of them is certain, and whether they are all."""
    need = 1 if want == 1 and not rules.out else want + len(rules.out)
    if True in rules.unique:
        need = max(need, len(slots))
    samples: list[Sample] = []
    for slot in slots:
        sample = space.inhabit(frozenset(slot), need)
        assumed |= sample.assumed
        if not sample.values:
            return [], sample.complete, sample.complete
        samples.append(sample)
    every = all(sample.complete for sample in samples)
    if True in rules.unique:
        return _matched(samples, slots, every, want)
    size = 1
    for sample in samples:
        size *= len(sample.values)
    if False in rules.unique:
        return _twinned(slots, samples)
    rows = [list(row) for row in islice(product(*(one.values for one in samples)), want * 4 + 4)]
    return rows, True, every and size <= len(rows)


def _twinned(slots: list[set[Literal]], samples: list[Sample]) -> tuple[list[Any], bool, bool]:
    """Give arrays in which the two places that share their demands hold the same value."""
    row = [sample.values[0] for sample in samples]
    for first, second in combinations(range(len(slots)), 2):
        if slots[first] is slots[second]:
            row[second] = row[first]
    return [row], True, False


def _matched(
    samples: list[Sample], slots: list[set[Literal]], every: bool, want: int
) -> tuple[list[Any], bool, bool]:
    """Give each place its own value, by augmenting paths."""
    owner: dict[Any, int] = {}
    chosen: dict[int, Any] = {}
    frozen = {id(one): [(freeze(value), value) for value in one.values] for one in samples}

    def place(at: int, tried: set[Any]) -> bool:
        marks = frozen[id(samples[at])]
        for mark, value in marks:
            if mark not in owner:
                owner[mark], chosen[at] = at, value
                return True
        for mark, value in marks:
            if mark not in tried:
                tried.add(mark)
                if place(owner[mark], tried):
                    owner[mark], chosen[at] = at, value
                    return True
        return False

    for at in range(len(slots)):
        if not place(at, set()):
            certain = all(one.complete or len(one.values) >= len(slots) for one in samples)
            return [], certain, certain
    rows = [[chosen[at] for at in range(len(slots))]]
    if want > 1 and len(slots) == 1:
        rows = [[value] for value in samples[0].values]
        return rows, True, every
    if every and len(slots) == 0:
        return rows, True, True
    return rows, True, False
