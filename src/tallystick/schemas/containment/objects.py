"""Inhabitants of plain constraints on an object.

Names belong to a finite number of regions: each mentioned name is one region, and the other names
have one region for each set of matching patterns. All names of a region have the same constraints.
So a required member is searched in every region, and members are added from regions that allow it
until the size is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice, product
from typing import Any

from tallystick.schemas.containment.evaluate import conforms, in_class
from tallystick.schemas.containment.nodes import (
    Key,
    Literal,
    Sample,
    Source,
    Space,
    distinct,
    freeze,
)

__all__ = ["solve_object"]

Atoms = list[tuple[Any, ...]]
_MAX_REGIONS = 64
_MAX_NAMES = 2000
_EXHAUST = 256
_MOST_SHARED = 4
_FEW = 16
_SOURCE = Source(True, "draft-07", formats=False)


@dataclass(frozen=True, slots=True)
class _Region:
    """Names that nobody speaks of, alike in all that matters: what holds of them."""

    names: Key
    values: Key
    signs: dict[str, bool]


class _Object:
    """The atoms of one object, sorted by what they say."""

    def __init__(self, space: Space, atoms: Atoms) -> None:
        self.space = space
        highs = [atom[2] for atom in atoms if atom[0] == "length" and atom[2] is not None]
        self.low = max((atom[1] for atom in atoms if atom[0] == "length"), default=0)
        self.high: int | None = min(highs, default=None)
        self.has = list(dict.fromkeys(atom[1] for atom in atoms if atom[0] == "has"))
        self.lacks = {atom[1] for atom in atoms if atom[0] == "lacks"}
        self.each = [atom[1:] for atom in atoms if atom[0] == "each"]
        self.some = [atom[1:] for atom in atoms if atom[0] == "some"]
        self.odd = [atom[1] for atom in atoms if atom[0] == "odd"]
        self.names = frozenset(atom[1] for atom in atoms if atom[0] == "names")
        self.out = {freeze(value) for atom in atoms if atom[0] == "out" for value in atom[1]}
        self.assumed: set[Key] = set()
        self.certain = True
        self.dropped = False
        self.by_name: dict[str, list[Literal]] = {}
        self.by_class = [(names, literal) for names, literal in self.each if names[0] != "name"]
        spoken: dict[str, None] = dict.fromkeys((*self.has, *sorted(self.lacks)))
        patterns: dict[str, None] = {}
        for names, *_ in (*self.each, *self.some):
            if names[0] == "name":
                spoken[names[1]] = None
            elif names[0] == "pattern":
                patterns[names[1]] = None
            else:
                spoken.update(dict.fromkeys(sorted(names[1])))
                patterns.update(dict.fromkeys(sorted(names[2])))
        for names, literal in self.each:
            if names[0] == "name":
                self.by_name.setdefault(names[1], []).append(literal)
        self.spoken = list(spoken)
        self.patterns = list(patterns)

    def demands(self, name: str) -> frozenset[Literal]:
        """Give what holds of the value under a name."""
        classed = (literal for names, literal in self.by_class if in_class(names, name))
        return frozenset((*self.by_name.get(name, ()), *classed))

    def ask(self, key: Key, want: int) -> Sample:
        """Ask for inhabitants and note what the answer rests on."""
        sample = self.space.inhabit(key, want)
        if not sample.values:
            self.assumed |= sample.assumed
            self.certain = self.certain and sample.complete
        return sample

    def some_names(self, key: Key, want: int) -> tuple[Any, ...]:
        """Ask for names; fewer than wanted settle nothing unless there are no others."""
        sample = self.ask(key, want)
        if len(sample.values) < want:
            self.certain = self.certain and sample.complete
            self.assumed |= sample.assumed
        return sample.values

    def admits(self, name: str) -> bool:
        """Tell whether a name may occur, its value aside."""
        return name not in self.lacks and all(
            conforms(self.space, literal, name) for literal in self.names
        )

    def regions(self) -> list[_Region]:
        """Give the regions of names that nobody speaks of, as far as they can be inhabited."""
        spoken = self.space.node({"enum": self.spoken or [None]}, _SOURCE)
        text = self.space.node({"type": "string"}, _SOURCE)
        start = self.names | {(spoken, False), (text, True)}
        regions: list[tuple[Key, dict[str, bool]]] = [(start, {})]
        for pattern in self.patterns:
            node = self.space.node({"pattern": pattern}, _SOURCE)
            regions = [
                (names | {(node, sign)}, {**signs, pattern: sign})
                for names, signs in regions
                for sign in (False, True)
                if self.may_name(names | {(node, sign)})
            ]
            if len(regions) > _MAX_REGIONS:
                self.certain = False
                regions = regions[:_MAX_REGIONS]
        return [
            _Region(
                names,
                frozenset(literal for kind, literal in self.each if _covers(kind, signs)),
                signs,
            )
            for names, signs in regions
        ]

    def may_name(self, key: Key) -> bool:
        """Tell whether a region may hold a name."""
        sample = self.space.inhabit(key, 1)
        return bool(sample.values) or not sample.complete or bool(sample.assumed)


def _covers(names: tuple[Any, ...], signs: dict[str, bool]) -> bool:
    """Tell whether a class holds the names of a region."""
    if names[0] == "name":
        return False
    if names[0] == "pattern":
        return signs.get(names[1], False)
    return not any(signs.get(pattern, False) for pattern in names[2])


Wanted = list[tuple[frozenset[str] | None, tuple[Any, ...] | None, Literal]]


def solve_object(space: Space, atoms: Atoms, want: int) -> Sample:
    """Give objects, smallest first."""
    rules = _Object(space, atoms)
    if rules.high is not None and max(rules.low, len(rules.has)) > rules.high:
        return Sample((), complete=True)
    if rules.low > _MAX_NAMES:
        return Sample((), complete=False)
    if any(not rules.admits(name) for name in rules.has):
        return Sample((), complete=True)
    base = {name: rules.demands(name) for name in rules.has}
    for key in base.values():
        if key and not rules.ask(key, 1).values:
            return Sample((), rules.certain, frozenset(rules.assumed))
    wanted = [*rules.some, *((None, literal) for literal in rules.odd)]
    regions = rules.regions()
    found: list[Any] = []
    for picked in _place(rules, regions, wanted, base):
        space.spend(1)
        for one in _complete(rules, regions, picked, want):
            if freeze(one) in rules.out:
                rules.dropped = True
            else:
                found.append(one)
        if len(found) >= want:
            break
    found = distinct(found)
    done = not found and rules.certain and not rules.dropped
    if not done and len(found) < want and not wanted:
        every = _exhaust(rules, regions)
        if every is not None:
            return Sample(tuple(every[:want]), complete=len(every) <= want)
    return Sample(tuple(found[:want]), done, frozenset(rules.assumed))


def _place(
    rules: _Object, regions: list[_Region], wanted: list[Any], picked: dict[str, Key]
) -> Iterator[dict[str, Key]]:
    """Give each way to find a name for everything that must exist."""
    if not wanted:
        yield picked
        return
    (names, literal), rest = wanted[0], wanted[1:]
    extra = frozenset((literal,)) if names is not None else frozenset[Literal]()
    known = list(dict.fromkeys((*picked, *rules.spoken)))
    for name in known:
        if names is not None and not in_class(names, name):
            continue
        if names is None and not conforms(rules.space, literal, name):
            continue
        if not rules.admits(name):
            continue
        key = picked.get(name, rules.demands(name)) | extra
        if rules.ask(key, 1).values:
            yield from _place(rules, regions, rest, {**picked, name: key})
    for region in regions:
        if names is not None and not _covers(names, region.signs):
            continue
        label = region.names if names is not None else region.names | {literal}
        key = region.values | extra
        if not rules.ask(key, 1).values:
            continue
        for shared in _shared(rules, rest):
            names_left = rules.some_names(label | shared, len(picked) + 1)
            for name in [name for name in names_left if name not in picked][:1]:
                yield from _place(rules, regions, rest, {**picked, name: key})


def _shared(rules: _Object, rest: list[Any]) -> Iterator[frozenset[Literal]]:
    """Give what else a new name may be asked to be, so that one name serves several demands.

    That matters only where the number of members is limited.
    """
    odd = [literal for names, literal in rest if names is None] if rules.high is not None else []
    if len(odd) > _MOST_SHARED:
        rules.certain = False
    for count in range(min(len(odd), _MOST_SHARED) + 1):
        for chosen in combinations(odd[:_MOST_SHARED], count):
            yield frozenset(chosen)


def _complete(
    rules: _Object, regions: list[_Region], picked: dict[str, Key], want: int
) -> Iterator[dict[str, Any]]:
    """Make up the size, then give objects with these names and values under them."""
    if rules.high is not None and len(picked) > rules.high:
        return
    names = {**picked, **dict(_spare(rules, regions, picked, rules.low - len(picked)))}
    if len(names) < rules.low:
        return
    several = want > 1 or bool(rules.out)
    need = want + len(rules.out) if several else 1
    choices = [rules.ask(key, need).values for key in names.values()]
    if not all(choices):
        return
    for row in islice(product(*choices), need):
        yield dict(zip(names, row, strict=True))
    room = rules.high is None or len(names) < rules.high
    if several and room:
        first = {name: values[0] for name, values in zip(names, choices, strict=True)}
        for name, key in _spare(rules, regions, names, need):
            for value in rules.ask(key, need).values:
                yield {**first, name: value}


def _spare(
    rules: _Object, regions: list[_Region], picked: dict[str, Key], count: int
) -> Iterator[tuple[str, Key]]:
    """Give names that may be added, with what holds of them."""
    if count <= 0:
        return
    given = 0
    for name in rules.spoken:
        if name in picked or not rules.admits(name):
            continue
        key = rules.demands(name)
        if rules.ask(key, 1).values:
            yield name, key
            given += 1
            if given == count:
                return
    for region in regions:
        if not rules.ask(region.values, 1).values:
            continue
        for name in rules.some_names(region.names, count + len(picked)):
            if name not in picked:
                yield name, region.values
                given += 1
                if given == count:
                    return


def _exhaust(rules: _Object, regions: list[_Region]) -> list[Any] | None:
    """Give every object there is, when names and values are few; None when that is not known."""
    for region in regions:
        allowed = rules.ask(region.values, 1)
        if not allowed.values and allowed.complete and not allowed.assumed:
            continue
        named = rules.ask(region.names, 1)
        if named.values or not named.complete or named.assumed:
            return None
    total = 1
    options: list[list[tuple[Any, ...]]] = []
    for name in rules.spoken:
        if not rules.admits(name):
            continue
        sample = rules.space.inhabit(rules.demands(name), _FEW)
        if not sample.complete or sample.assumed:
            return None
        present = [(name, value) for value in sample.values]
        options.append(present if name in rules.has else [(), *present])
        total *= len(options[-1])
        if total > _EXHAUST:
            return None
    out = []
    for row in product(*options):
        value = dict(pair for pair in row if pair)
        fits = len(value) >= rules.low and (rules.high is None or len(value) <= rules.high)
        if fits and freeze(value) not in rules.out:
            out.append(value)
    return out
