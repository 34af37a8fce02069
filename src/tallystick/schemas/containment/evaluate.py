"""Tell whether one concrete value conforms to a node. Every candidate is checked here.

This uses the same clauses as the proof, so the two cannot disagree about a keyword.
"""

from __future__ import annotations

from typing import Any

from tallystick.schemas.containment.keywords import clauses
from tallystick.schemas.containment.nodes import (
    Circular,
    Key,
    Literal,
    Space,
    exact,
    freeze,
    type_of,
)
from tallystick.schemas.containment.predicates import matches, predicate

__all__ = ["conforms", "frozen", "in_class", "satisfies"]

_MAX_DEPTH = 120


def satisfies(space: Space, key: Key, value: Any) -> bool:
    """Tell whether a value satisfies every literal of a query."""
    return all(conforms(space, literal, value) for literal in key)


def conforms(space: Space, literal: Literal, value: Any, depth: int = 0) -> bool:
    """Tell whether a value conforms to a literal."""
    if depth:
        space.spend(1)
    if depth > _MAX_DEPTH:
        raise Circular("a reference refers to itself, or the document is nested too deep")
    node, sign = literal
    found = _accepts(space, node, value, depth)
    return found is sign


def _accepts(space: Space, node: Any, value: Any, depth: int) -> bool:
    kind = type_of(value)
    for clause in clauses(space, node, True, kind):
        if not any(
            all(_holds(space, item, value, depth + 1) for item in alternative)
            for alternative in clause
        ):
            return False
    return True


def in_class(names: tuple[Any, ...], name: str) -> bool:
    """Tell whether a property's name belongs to a class of names."""
    if names[0] == "name":
        return bool(names[1] == name)
    if names[0] == "pattern":
        return matches(predicate({"pattern": names[1]}, "draft-07"), name)
    return name not in names[1] and not any(in_class(("pattern", one), name) for one in names[2])


def _holds(space: Space, item: tuple[Any, ...], value: Any, depth: int) -> bool:
    head = item[0]
    if not isinstance(head, str):
        return conforms(space, (item[0], item[1]), value, depth)
    if head in ("in", "out"):
        return (freeze(value) in frozen(item[1])) is (head == "in")
    if isinstance(value, str):
        return _string(item, value)
    if isinstance(value, list):
        return _array(space, item, value, depth)
    if isinstance(value, dict):
        return _object(space, item, value, depth)
    return _number(item, value)


_FROZEN: dict[int, tuple[tuple[Any, ...], frozenset[Any]]] = {}


def frozen(values: tuple[Any, ...]) -> frozenset[Any]:
    """Give the values of an `enum` as a set, made once."""
    known = _FROZEN.get(id(values))
    if known is None or known[0] is not values:
        if len(_FROZEN) > 500:
            _FROZEN.clear()
        known = _FROZEN[id(values)] = (values, frozenset(map(freeze, values)))
    return known[1]


def _number(item: tuple[Any, ...], value: Any) -> bool:
    number = exact(value)
    if item[0] == "low":
        return bool(number > item[1] if item[2] else number >= item[1])
    if item[0] == "high":
        return bool(number < item[1] if item[2] else number <= item[1])
    return (number % item[1] == 0) is (item[0] == "step")


def _within(count: int, low: int, high: int | None) -> bool:
    return count >= low and (high is None or count <= high)


def _string(item: tuple[Any, ...], value: str) -> bool:
    if item[0] == "length":
        return _within(len(value), item[1], item[2])
    if item[0] == "pattern":
        return matches(predicate({"pattern": item[1]}, "draft-07"), value) is item[2]
    return matches(item[1], value) is item[2]


def _array(space: Space, item: tuple[Any, ...], value: list[Any], depth: int) -> bool:
    if item[0] == "length":
        return _within(len(value), item[1], item[2])
    if item[0] == "unique":
        return (len(set(map(freeze, value))) == len(value)) is item[1]
    if item[0] == "count":
        found = sum(conforms(space, (item[1], True), one, depth) for one in value)
        return _within(found, item[2], item[3])
    some = (conforms(space, item[3], one, depth) for one in value[item[1] : item[2]])
    return all(some) if item[0] == "each" else any(some)


def _object(space: Space, item: tuple[Any, ...], value: dict[str, Any], depth: int) -> bool:
    head = item[0]
    if head == "length":
        return _within(len(value), item[1], item[2])
    if head in ("has", "lacks"):
        return (item[1] in value) is (head == "has")
    if head in ("names", "odd"):
        found = (conforms(space, item[1], name, depth) for name in value)
        return all(found) if head == "names" else any(found)
    found = (
        conforms(space, item[2], one, depth)
        for name, one in value.items()
        if in_class(item[1], name)
    )
    return all(found) if head == "each" else any(found)
