"""Find the schemas that apply to one place in a message, and the places below it.

Every schema that may apply to a place counts: `$ref` is followed, and all branches of
`allOf`, `anyOf`, `oneOf`, `if`/`then`/`else` and the dependent schemas are used. A schema under
`not` counts too, because a mark there is still a mark, but it declares nothing. The schema is
self-contained (`catalog.self_contained`), so that a reference is a pointer from the root.

`x-gdpr-sensitive: true` or a non-empty category marks a place; so do the tags `PII`, `PERSONAL`,
`SENSITIVE` of other registries (`confluent:tags`, `x-confluent-tags`, `x-tags`).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.errors import Rejected
from tallystick.schemas.refs import children, find_pointer
from tallystick.schemas.validate import compile_schema
from tallystick.schemas.values import escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["MARK", "Spot", "gather", "item_spots", "mark_of", "member_spots", "steps", "types_of"]

MARK: Final = "x-gdpr-sensitive"
_TAGS: Final = ("confluent:tags", "x-confluent-tags", "x-tags")
_TAGGED: Final = frozenset({"pii", "personal", "sensitive", "gdpr"})
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SINGLES: Final = ("if", "then", "else")
_MAPS: Final = ("dependentSchemas", "dependencies")
_OBJECT: Final = frozenset({
    "properties", "patternProperties", "additionalProperties", "required", "propertyNames",
    "unevaluatedProperties", "minProperties", "maxProperties",
})  # fmt: skip
_ARRAY: Final = frozenset({
    "items", "prefixItems", "contains", "additionalItems", "unevaluatedItems", "minItems",
    "maxItems", "uniqueItems",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spot:
    """One schema that may apply, where it stands, and whether it declares (else: under `not`)."""

    pointer: str
    node: Any
    declares: bool = True


def mark_of(node: Any) -> str | None:
    """Give the category of a mark (empty when it has none), or None when there is no mark."""
    if not isinstance(node, dict):
        return None
    mark = node.get(MARK)
    if mark is True:
        return ""
    if isinstance(mark, str) and mark:
        return mark
    for name in _TAGS:
        tags = node.get(name)
        if isinstance(tags, list) and any(str(tag).lower() in _TAGGED for tag in tags):
            return ""
    return None


def gather(root: Any, first: Sequence[Spot]) -> tuple[Spot, ...]:
    """Give every schema that may apply where the first ones do, each once."""
    found: dict[tuple[str, bool], Spot] = {}
    pending = list(reversed(first))
    while pending:
        spot = pending.pop()
        if (spot.pointer, spot.declares) not in found:
            found[(spot.pointer, spot.declares)] = spot
            pending.extend(reversed(list(_beside(root, spot))))
    return tuple(found.values())


def _beside(root: Any, spot: Spot) -> Iterator[Spot]:
    node, here, declares = spot.node, spot.pointer, spot.declares
    if not isinstance(node, dict):
        return
    for keyword in ("$ref", "$recursiveRef", "$dynamicRef"):
        target = node.get(keyword)
        if isinstance(target, str):
            places = list(_targets(root, target))
            if not places:
                raise Rejected(
                    f"{keyword} {target!r} points to nothing", code="schema.ref", pointer=here
                )
            yield from (Spot(pointer, found, declares) for pointer, found in places)
    for keyword in _LISTS:
        branches = node.get(keyword)
        for at, item in enumerate(branches if isinstance(branches, list) else ()):
            yield Spot(f"{here}/{keyword}/{at}", item, declares)
    for keyword in _SINGLES:
        if keyword in node:
            yield Spot(f"{here}/{keyword}", node[keyword], declares)
    if "not" in node:
        yield Spot(f"{here}/not", node["not"], declares=False)
    for keyword in _MAPS:
        held = node.get(keyword)
        for name, item in held.items() if isinstance(held, dict) else ():
            if isinstance(item, dict):
                yield Spot(f"{here}/{keyword}/{escape(name)}", item, declares)


def _targets(root: Any, target: str) -> Iterator[tuple[str, Any]]:
    """Give every schema that a reference may mean: a dynamic anchor may stand in many places."""
    if target in ("#", "") or target.startswith("#/"):
        with suppress(KeyError):
            yield target[1:], find_pointer(root, target[1:])
        return
    pending = [("", root)]
    while pending:
        pointer, node = pending.pop()
        if isinstance(node, dict):
            if target[1:] in (node.get("$anchor"), node.get("$dynamicAnchor")):
                yield pointer, node
            pending.extend((pointer + place, item) for place, item in children(node))


def steps(spots: Sequence[Spot]) -> dict[str, list[Spot]]:
    """Give what lies one step below, by how the path goes on: `.name`, `.{pattern}`, `[]`..."""
    out: dict[str, list[Spot]] = {}

    def add(step: str, place: str, node: Any, spot: Spot) -> None:
        out.setdefault(step, []).append(Spot(spot.pointer + place, node, spot.declares))

    for spot in spots:
        node = spot.node
        if not isinstance(node, dict):
            continue
        for keyword, form in (("properties", ".{}"), ("patternProperties", ".{{{}}}")):
            held = node.get(keyword)
            for name, item in held.items() if isinstance(held, dict) else ():
                add(form.format(name), f"/{keyword}/{escape(name)}", item, spot)
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            if isinstance(node.get(keyword), dict):
                add(".*", f"/{keyword}", node[keyword], spot)
        if isinstance(node.get("propertyNames"), dict):
            add("{keys}", "/propertyNames", node["propertyNames"], spot)
        if isinstance(node.get("contentSchema"), dict):
            add("{content}", "/contentSchema", node["contentSchema"], spot)
        for keyword in ("items", "prefixItems"):
            held = node.get(keyword)
            if isinstance(held, list):
                for at, item in enumerate(held):
                    add(f"[{at}]", f"/{keyword}/{at}", item, spot)
            elif isinstance(held, dict):
                add("[]", f"/{keyword}", held, spot)
        for keyword in ("contains", "additionalItems", "unevaluatedItems"):
            if isinstance(node.get(keyword), dict):
                add("[]", f"/{keyword}", node[keyword], spot)
    return out


def member_spots(root: Any, spots: Sequence[Spot], name: str) -> tuple[Spot, ...]:
    """Give the schemas that may apply to one member of an object."""
    found: list[Spot] = []
    for spot in spots:
        node = spot.node
        if not isinstance(node, dict):
            continue
        named = False
        properties, patterns = node.get("properties"), node.get("patternProperties")
        if isinstance(properties, dict) and name in properties:
            place = f"{spot.pointer}/properties/{escape(name)}"
            found.append(Spot(place, properties[name], spot.declares))
            named = True
        for pattern, item in patterns.items() if isinstance(patterns, dict) else ():
            if may_match(pattern, name):
                place = f"{spot.pointer}/patternProperties/{escape(pattern)}"
                found.append(Spot(place, item, spot.declares))
                named = True
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            if not named and isinstance(node.get(keyword), dict):
                says = spot.declares and bool(node[keyword])
                found.append(Spot(f"{spot.pointer}/{keyword}", node[keyword], says))
    return gather(root, found)


def item_spots(root: Any, spots: Sequence[Spot], index: int) -> tuple[Spot, ...]:
    """Give the schemas that may apply to one item of an array."""
    found: list[Spot] = []
    for spot in spots:
        node = spot.node
        if not isinstance(node, dict):
            continue
        rest = True
        for keyword in ("prefixItems", "items"):
            held = node.get(keyword)
            if isinstance(held, list):
                if index < len(held):
                    place = f"{spot.pointer}/{keyword}/{index}"
                    found.append(Spot(place, held[index], spot.declares))
                    rest = False
            elif isinstance(held, dict) and rest:
                says = spot.declares and bool(held)
                found.append(Spot(f"{spot.pointer}/{keyword}", held, says))
        for keyword in ("additionalItems", "unevaluatedItems"):
            if rest and isinstance(node.get(keyword), dict):
                says = spot.declares and bool(node[keyword])
                found.append(Spot(f"{spot.pointer}/{keyword}", node[keyword], says))
        if isinstance(node.get("contains"), dict):
            found.append(Spot(f"{spot.pointer}/contains", node["contains"], declares=False))
    return gather(root, found)


@lru_cache(maxsize=1024)
def _misses(pattern: str) -> Any:
    try:
        return compile_schema({"not": {"pattern": pattern}}).is_valid
    except Rejected:
        return None


def may_match(pattern: str, name: str) -> bool:
    """Tell whether a pattern may match; only a proven miss is a miss."""
    misses = _misses(pattern)
    return misses is None or not misses(name)


def types_of(spots: Sequence[Spot]) -> frozenset[str]:
    """Give the JSON types that the schemas name or imply; empty when they say nothing."""
    types: set[str] = set()
    for spot in spots:
        node = spot.node
        if not spot.declares or not isinstance(node, dict):
            continue
        named = node.get("type")
        if isinstance(named, str):
            types.add(named)
        elif isinstance(named, list):
            types.update(one for one in named if isinstance(one, str))
        else:
            types.update(["array"] if not _ARRAY.isdisjoint(node) else ())
            types.update(["object"] if not _OBJECT.isdisjoint(node) else ())
    return frozenset(types)
