"""Find removed fields: every field that the old schema names must stay in the new schema.

What matters is the place in a document, not the place in a schema. For one place, all subschemas
that may speak of it are taken together, on both sides: through references, `allOf`, `anyOf`,
`oneOf`, `then`, `else` and dependencies. So a field may move from a branch to another, or behind a
reference; but whoever drops the branch, the reference or the items that named it, has removed it.

An alternative or a condition speaks of some documents only (`tallystick.schemas.cases`). What the
old schema says of a case is asked of those new subschemas that may speak of the same documents: a
field of the paid ones is not kept by an alternative for the sent ones.

Places below are reached by name, by pattern, as any other member, by position and as `contains`. A
pattern of the new schema names what it matches. What only tests (`if`, `not`, `propertyNames`) or
means nothing in its dialect or without its neighbour (`then` without `if`) names nothing. A place
that the new schema refuses (`false`) has lost nothing by itself: whether it was used before is for
the proof to say.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final
from urllib.parse import unquote

from tallystick.schemas.cases import ANY, Case, Cases, are_apart, meet
from tallystick.schemas.containment.evaluate import in_class
from tallystick.schemas.refs import children, dialect_of, find_pointer, walk
from tallystick.schemas.values import escape

__all__ = ["Removals", "find_removals", "is_patterned", "patterned"]

_IN_PLACE: Final = frozenset({"allOf", "anyOf", "oneOf", "then", "else", "dependencies"})
_REFERENCES: Final = {
    "draft-07": ("$ref",),
    "2019-09": ("$ref", "$recursiveRef"),
    "2020-12": ("$ref", "$dynamicRef"),
}
_STEPS: Final = 100_000
"""What the question may cost; sets of subschemas can be very many where all is recursive."""
_AT_A_GLANCE: Final = 16
"""How many cases are told apart for the price of a step."""

Spot = tuple[str, Any]
"""A subschema and the pointer by which it was reached, references passed in silence."""


@dataclass(frozen=True, slots=True)
class Removals:
    """Pointers of the fields that are gone; `complete`: all that was named has been looked at."""

    pointers: tuple[str, ...]
    complete: bool


def find_removals(old: Any, new: Any) -> Removals:
    """Give the fields that one self-contained schema names and the other does not."""
    before, after = _Reading(old), _Reading(new)
    gone: set[str] = set()
    seen: set[tuple[frozenset[int], frozenset[int]]] = set()
    waiting: list[tuple[list[Spot], list[Spot]]] = [([("", old)], [("", new)])]
    left = _STEPS
    while waiting and left >= 0:
        olds, news = waiting.pop()
        if news and all(schema is False for _, schema in news):
            continue
        was = list(islice(before.speakers(olds), left + 1))
        now = list(islice(after.speakers(news), left + 1)) if was else []
        left -= len(was) + len(now)
        for mine, theirs in _by_case(was, now):
            state = (
                frozenset(id(part) for _, part in mine),
                frozenset(id(part) for _, part in theirs),
            )
            left -= len(now) // _AT_A_GLANCE
            if state in seen:
                continue
            seen.add(state)
            left -= _cost((before, mine), (after, theirs))
            if left < 0:
                break
            missing = _missing(mine, theirs)
            gone.update(pointer for spots in missing.values() for pointer, _ in spots)
            waiting += _below((before, mine), (after, theirs), missing)
    return Removals(tuple(sorted(gone)), complete=left >= 0)


def _by_case(
    was: list[tuple[Spot, Case]], now: list[tuple[Spot, Case]]
) -> Iterator[tuple[list[Spot], list[Spot]]]:
    """Give what the old schema says of each case, and what the new one may say of it.

    An alternative that meets none of the new ones, or not even itself, is refused now or never was
    used; the proof tells which, and its fields are asked of all.
    """
    old, new = _grouped(was), _grouped(now)
    for case, mine in old.items():
        met = [other for other in new if not are_apart(case, other)]
        is_lost = not case.held | case.failed and all(other == ANY for other in met)
        found = new if is_lost or are_apart(case, case) else met
        theirs = {id(spot[1]): spot for other in found for spot in new[other]}
        yield mine, list(theirs.values())


def _grouped(found: list[tuple[Spot, Case]]) -> dict[Case, list[Spot]]:
    groups: dict[Case, list[Spot]] = {}
    for spot, case in found:
        groups.setdefault(case, []).append(spot)
    return groups


def _cost(old: tuple[_Reading, list[Spot]], new: tuple[_Reading, list[Spot]]) -> int:
    """Say about how often something is looked at to compare two sets of subschemas."""
    (before, was), (after, now) = old, new
    names, patterns, named, matched = (
        sum(len(part.get(key, ())) for _, part in spots)
        for spots, key in (
            (was, "properties"),
            (was, "patternProperties"),
            (now, "properties"),
            (now, "patternProperties"),
        )
    )
    wide, apart = len(after.wide(now)), patterns + len(before.wide(was))
    tuples = (part.get(key) for _, part in (*was, *now) for key in ("items", "prefixItems"))
    longest = max((len(held) for held in tuples if isinstance(held, list)), default=0)
    members = names * (1 + wide) + named * (1 + patterns) + matched * apart
    return (len(was) + len(now)) * (1 + longest) + members


class _Reading:
    """One document, and how its dialect reads references and tuples."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.dialect = dialect_of(root)
        self.tuple_key = "prefixItems" if self.dialect == "2020-12" else "items"
        self.after_tuple = "items" if self.dialect == "2020-12" else "additionalItems"
        is_first = self.dialect == "draft-07"
        self.in_place = _IN_PLACE if is_first else _IN_PLACE | {"dependentSchemas"}
        self.rest = ("additionalProperties", *(() if is_first else ("unevaluatedProperties",)))
        self.cases = Cases(root)
        self.anchors: dict[str, list[Any]] = {}
        for _, node in walk(root):
            if isinstance(node.get("$dynamicAnchor"), str):
                self.anchors.setdefault(f"#{node['$dynamicAnchor']}", []).append(node)

    def targets(self, schema: dict[str, Any]) -> Iterator[Any]:
        """Give where references lead; one that moves, to wherever it may."""
        for keyword in _REFERENCES[self.dialect]:
            reference = schema.get(keyword)
            if not isinstance(reference, str):
                continue
            if reference == "#" or reference.startswith("#/"):
                with suppress(KeyError):  # it leads nowhere, so it names nothing
                    yield find_pointer(self.root, unquote(reference[1:]))
            yield from self.anchors.get(reference, ())

    def speakers(self, starts: Iterable[Spot]) -> Iterator[tuple[Spot, Case]]:
        """Give all subschemas that may speak of the value that these speak of, once for a case."""
        seen: set[tuple[int, Case]] = set()
        waiting = [(pointer, part, ANY) for pointer, part in starts][::-1]
        while waiting:
            pointer, part, case = waiting.pop()
            if not isinstance(part, dict) or (id(part), case) in seen:
                continue
            seen.add((id(part), case))
            waiting += [(pointer, target, case) for target in self.targets(part)]
            if self.dialect == "draft-07" and "$ref" in part:
                continue
            yield (pointer, part), case
            waiting += [
                (pointer + place, item, meet(case, narrower))
                for place, item, narrower in self.branches(part)
            ]

    def branches(self, part: dict[str, Any]) -> Iterator[tuple[str, Any, Case]]:
        """Give the subschemas that speak of the same value, each with the case it speaks of."""
        test = json.dumps(part["if"], sort_keys=True) if "if" in part else ""
        for place, item in children(part):
            keyword = place.split("/", 2)[1]
            if keyword not in self.in_place:
                continue
            if keyword in ("anyOf", "oneOf"):
                yield place, item, self.cases.of(item)
            elif keyword not in ("then", "else"):
                yield place, item, ANY
            elif test:
                yield place, item, (
                    replace(self.cases.of(part["if"]), held=frozenset({test}))
                    if keyword == "then"
                    else Case(failed=frozenset({test}))
                )  # fmt: skip

    def wide(self, spots: list[Spot]) -> list[Spot]:
        """Give the subschemas that speak of members without naming them."""
        keys = {"patternProperties", *self.rest}
        return [spot for spot in spots if keys & spot[1].keys()]

    def others(self, spot: Spot) -> list[Spot]:
        """Give what a subschema says of all items, or of those after the first ones."""
        pointer, part = spot
        keys = ["items" if isinstance(part.get("items"), dict | bool) else ""]
        if self.first(part):
            keys = [self.after_tuple]
        return _held(pointer, part, keys if self.dialect == "draft-07"
                     else [*keys, "unevaluatedItems"])  # fmt: skip

    def first(self, part: dict[str, Any]) -> list[Any]:
        """Give the subschemas of the first items, one by one."""
        held = part.get(self.tuple_key)
        return held if isinstance(held, list) else []

    def item(self, spots: list[Spot], at: int) -> list[Spot]:
        """Give what is said of the item at a position."""
        found: list[Spot] = []
        for pointer, part in spots:
            first = self.first(part)
            if at < len(first):
                found.append((f"{pointer}/{self.tuple_key}/{at}", first[at]))
            else:
                found += self.others((pointer, part))
        return found


def _held(pointer: str, part: dict[str, Any], keys: Iterable[str]) -> list[Spot]:
    """Give the one subschema that each of these keywords holds; `true` says nothing."""
    held = ((key, part.get(key)) for key in keys)
    return [(f"{pointer}/{key}", one) for key, one in held if isinstance(one, dict) or one is False]


def _members(spots: list[Spot], keyword: str) -> dict[str, list[Spot]]:
    """Give by name what a keyword that maps names holds."""
    found: dict[str, list[Spot]] = {}
    for pointer, part in spots:
        for name, held in part.get(keyword, {}).items():
            found.setdefault(name, []).append((f"{pointer}/{keyword}/{escape(name)}", held))
    return found


def _missing(was: list[Spot], now: list[Spot]) -> dict[str, list[Spot]]:
    """Give the fields of one object that are not named any more; `false` named none."""
    named = _members(now, "properties")
    wide = [part for _, part in now if "patternProperties" in part]
    return {
        name: [spot for spot in spots if spot[1] is not False]
        for name, spots in _members(was, "properties").items()
        if name not in named and not any(is_patterned(part, name) for part in wide)
    }


def _below(
    old: tuple[_Reading, list[Spot]], new: tuple[_Reading, list[Spot]], missing: Container[str]
) -> Iterator[tuple[list[Spot], list[Spot]]]:
    """Give each place below that the old schema speaks of, with what both say of it.

    Below a field that is gone there is nothing more to lose.
    """
    (before, was), (after, now) = old, new
    patterns, named = _members(now, "patternProperties"), _members(now, "properties")
    wide = after.wide(now)
    for name, spots in _members(was, "properties").items():
        if name not in missing:
            more = [spot for one in wide for spot in _unnamed(one, name, after.rest)]
            yield spots, named.get(name, []) + more
    rest = [spot for pointer, part in wide for spot in _held(pointer, part, after.rest)]
    matched = [spot for held in patterns.values() for spot in held]
    for pattern, spots in _members(was, "patternProperties").items():
        fitting = [spot for name, held in named.items()
                   if in_class(("pattern", pattern), name)
                   for spot in held]  # fmt: skip
        yield spots, patterns.get(pattern) or rest + matched + fitting
    for pointer, part in before.wide(was):
        own = part.get("patternProperties", {})  # of what these match, the rest says nothing
        others = [spot for pattern, held in patterns.items() if pattern not in own for spot in held]
        yield _held(pointer, part, before.rest), rest + others
    longest = max(len(side.first(part)) for side, spots in (old, new) for _, part in spots)
    for at in range(longest + 1):
        yield before.item(was, at), after.item(now, at)
    some = [spot for pointer, part in was for spot in _held(pointer, part, ("contains",))]
    if some:
        found = [spot for pointer, part in now for spot in _held(pointer, part, ("contains",))]
        yield some, found + [spot for one in now for spot in after.others(one)]


def _unnamed(spot: Spot, name: str, rest: Iterable[str]) -> list[Spot]:
    """Give what one subschema of an object says of a member without naming it."""
    pointer, part = spot
    found = [("", held) for held in patterned(part, name)]
    is_named = found or name in part.get("properties", {})
    return found if is_named else _held(pointer, part, rest)


def patterned(schema: dict[str, Any], name: str) -> Iterator[Any]:
    """Give the schemas that patterns give to a member of this name."""
    for pattern, held in schema.get("patternProperties", {}).items():
        if in_class(("pattern", pattern), name):
            yield held


def is_patterned(schema: dict[str, Any], name: str) -> bool:
    """Tell whether a pattern speaks of a member of this name."""
    return next(patterned(schema, name), None) is not None
