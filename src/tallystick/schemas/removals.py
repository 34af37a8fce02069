"""A field may not be removed: what the old schema names must be named where it was.

What matters is the place in a document, not the place in a schema. For one place, all subschemas
that may speak of it are taken together, on both sides: through references, `allOf`, `anyOf`,
`oneOf`, `then`, `else` and dependencies. So a field may move from a branch to another, or behind a
reference; but whoever drops the branch, the reference or the items that named it, has removed it.

Places below are reached by name, by pattern, as any other member, by position and as `contains`. A
pattern of the new schema names what it matches. What only tests (`if`, `not`, `propertyNames`)
names nothing. A place that the new schema refuses (`false`) has lost nothing by itself: whether it
was used before is for the proof to say.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from tallystick.schemas.containment.evaluate import in_class
from tallystick.schemas.refs import children, dialect_of, find_pointer
from tallystick.schemas.values import escape

__all__ = ["Removals", "find_removals", "is_patterned", "patterned"]

_IN_PLACE: Final = frozenset({
    "allOf", "anyOf", "oneOf", "then", "else", "dependentSchemas", "dependencies",
})  # fmt: skip
_REFERENCES: Final = {
    "draft-07": ("$ref",),
    "2019-09": ("$ref", "$recursiveRef"),
    "2020-12": ("$ref", "$dynamicRef"),
}
_REST: Final = ("additionalProperties", "unevaluatedProperties")
_WIDE: Final = frozenset({"patternProperties", *_REST})
_ITEMS: Final = ("items", "additionalItems", "unevaluatedItems")
_STEPS: Final = 100_000
"""What the question may cost; sets of subschemas can be very many where all is recursive."""

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
    while waiting:
        olds, news = waiting.pop()
        is_refused = news and all(schema is False for _, schema in news)
        was = [] if is_refused else before.speakers(olds)
        now = after.speakers(news) if was else []
        state = (frozenset(id(part) for _, part in was), frozenset(id(part) for _, part in now))
        if not was or state in seen:
            continue
        seen.add(state)
        left -= _cost(was, now)
        if left < 0:
            return Removals(tuple(sorted(gone)), complete=False)
        missing = _missing(was, now)
        gone.update(pointer for spots in missing.values() for pointer, _ in spots)
        waiting += _below((before, was), (after, now), missing)
    return Removals(tuple(sorted(gone)), complete=True)


def _cost(was: list[Spot], now: list[Spot]) -> int:
    """Say about how often something is looked at to compare two sets of subschemas."""
    names, patterns, named = (
        sum(len(part.get(key, ())) for _, part in spots)
        for spots, key in (
            (was, "properties"),
            (was, "patternProperties"),
            (now, "properties"),
        )
    )
    wide = len([part for _, part in now if _WIDE & part.keys()])
    tuples = (part.get(key) for _, part in (*was, *now) for key in ("items", "prefixItems"))
    longest = max((len(held) for held in tuples if isinstance(held, list)), default=0)
    return (len(was) + len(now)) * (1 + longest) + names * (1 + wide) + named * (1 + patterns)


class _Reading:
    """One document, and how its dialect reads references and tuples."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.dialect = dialect_of(root)
        self.tuple_key = "prefixItems" if self.dialect == "2020-12" else "items"
        self.anchors: dict[str, list[Any]] = {}
        pending = [root]
        while pending:
            node = pending.pop()
            if isinstance(node, dict) and isinstance(node.get("$dynamicAnchor"), str):
                self.anchors.setdefault(f"#{node['$dynamicAnchor']}", []).append(node)
            pending.extend(item for _, item in children(node))

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

    def speakers(self, starts: Iterable[Spot]) -> list[Spot]:
        """Give all subschemas that may speak of the value that these speak of, each once."""
        found: list[Spot] = []
        seen: set[int] = set()
        waiting = list(starts)[::-1]
        while waiting:
            pointer, part = waiting.pop()
            if not isinstance(part, dict) or id(part) in seen:
                continue
            seen.add(id(part))
            waiting += [(pointer, target) for target in self.targets(part)]
            if self.dialect == "draft-07" and "$ref" in part:
                continue
            found.append((pointer, part))
            waiting += [
                (pointer + place, item)
                for place, item in children(part)
                if place.split("/", 2)[1] in _IN_PLACE
            ]
        return found

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
                found += _held(pointer, part, _ITEMS)
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
    wide = [one for one in now if _WIDE & one[1].keys()]
    for name, spots in _members(was, "properties").items():
        if name not in missing:
            more = [spot for one in wide for spot in _unnamed(one, name)]
            yield spots, named.get(name, []) + more
    others = [spot for pointer, part in wide for spot in _held(pointer, part, _REST)]
    others += [spot for spots in patterns.values() for spot in spots]
    for pattern, spots in _members(was, "patternProperties").items():
        fitting = [spot for name, held in named.items()
                   if in_class(("pattern", pattern), name)
                   for spot in held]  # fmt: skip
        yield spots, patterns.get(pattern) or others + fitting
    yield [spot for pointer, part in was for spot in _held(pointer, part, _REST)], others
    longest = max(len(side.first(part)) for side, spots in (old, new) for _, part in spots)
    for at in range(longest + 1):
        yield before.item(was, at), after.item(now, at)
    some = [spot for pointer, part in was for spot in _held(pointer, part, ("contains",))]
    if some:
        keys = ("contains", *_ITEMS)
        yield some, [spot for pointer, part in now for spot in _held(pointer, part, keys)]


def _unnamed(spot: Spot, name: str) -> list[Spot]:
    """Give what one subschema of an object says of a member without naming it."""
    pointer, part = spot
    found = [("", held) for held in patterned(part, name)]
    is_named = found or name in part.get("properties", {})
    return found if is_named else _held(pointer, part, _REST)


def patterned(schema: dict[str, Any], name: str) -> Iterator[Any]:
    """Give the schemas that patterns give to a member of this name."""
    for pattern, held in schema.get("patternProperties", {}).items():
        if in_class(("pattern", pattern), name):
            yield held


def is_patterned(schema: dict[str, Any], name: str) -> bool:
    """Tell whether a pattern speaks of a member of this name."""
    return next(patterned(schema, name), None) is not None
