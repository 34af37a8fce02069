"""`unevaluatedProperties` and `unevaluatedItems`, written with ordinary keywords.

The evaluated members depend on the in-place subschemas that hold. So the keyword is split into
cases: each case is a set of conditions, and the members that are evaluated under them. The keyword
then means: one of the cases holds, and the members that it did not evaluate conform. In 2020-12,
`contains` evaluates every item that matches it, so each remaining item matches it or conforms. In
2019-09 it evaluates no item, but the validator (jsonschema-rs) behaves as in 2020-12; both
interpretations are returned.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

from tallystick.schemas.containment.nodes import Node, Space, Undecided

__all__ = ["rewrite_items", "rewrite_properties"]

_MAX_CASES = 64
_MAX_DEPTH = 20


class _Case(NamedTuple):
    """Under these conditions: the names, patterns and leading items evaluated, or everything."""

    conditions: tuple[Any, ...] = ()
    names: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    items: int = 0
    every: bool = False
    matched: tuple[Any, ...] = ()


def rewrite_properties(space: Space, node: Node) -> dict[str, Any]:
    """Express `unevaluatedProperties` with `additionalProperties`."""
    inner = node.value["unevaluatedProperties"]

    def rest(case: _Case) -> Any:
        return {
            "properties": dict.fromkeys(sorted(case.names), True),
            "patternProperties": dict.fromkeys(sorted(case.patterns), True),
            "additionalProperties": inner,
        }

    return _rewrite(_cases(space, node, "object", 0, top=True), rest)


def rewrite_items(space: Space, node: Node, *, by_contains: bool) -> dict[str, Any]:
    """Express `unevaluatedItems` with the items that follow a prefix.

    `by_contains` says whether `contains` evaluates what it matches.
    """
    inner = node.value["unevaluatedItems"]
    first, after = (
        ("prefixItems", "items")
        if node.source.dialect == "2020-12"
        else ("items", "additionalItems")
    )

    def rest(case: _Case) -> Any:
        left = {"anyOf": [*case.matched, inner]} if case.matched else inner
        return {first: [True] * case.items, after: left} if case.items else {"items": left}

    cases = _cases(space, node, "array", 0, top=True)
    return _rewrite(cases if by_contains else [one._replace(matched=()) for one in cases], rest)


def _rewrite(cases: list[_Case], rest: Any) -> dict[str, Any]:
    return {
        "anyOf": [
            {"allOf": [*case.conditions, *(() if case.every else (rest(case),))]} for case in cases
        ]
    }


def _join(left: _Case, right: _Case) -> _Case:
    return _Case(
        left.conditions + right.conditions,
        left.names | right.names,
        left.patterns | right.patterns,
        max(left.items, right.items),
        left.every or right.every,
        left.matched + right.matched,
    )


def _cases(space: Space, node: Node, kind: str, depth: int, *, top: bool = False) -> list[_Case]:
    if depth > _MAX_DEPTH:
        raise Undecided("unevaluated keywords over deep or cyclic references cannot be compared")
    schema = node.value
    if not isinstance(schema, dict):
        return [_Case()]
    own = _own_properties(schema, top=top) if kind == "object" else _own_items(node, top=top)
    groups: list[list[_Case]] = [[own]]

    def inside(sub: Any) -> list[_Case]:
        return _cases(space, space.node(sub, node.source), kind, depth + 1)

    def chosen(sub: Any) -> list[_Case]:
        return [_join(_Case((sub,)), case) for case in inside(sub)]

    groups += [
        _cases(space, space.refer(node, schema[keyword]), kind, depth + 1)
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef")
        if keyword in schema
    ]
    groups += [inside(sub) for sub in schema.get("allOf", ())]
    for sub in schema.get("anyOf", ()):
        if inside(sub) != [_Case()]:
            groups.append([*chosen(sub), _Case(({"not": sub},))])
    if any(inside(sub) != [_Case()] for sub in schema.get("oneOf", ())):
        groups.append([case for sub in schema["oneOf"] for case in chosen(sub)])
    if "if" in schema:
        test, then, other = schema["if"], schema.get("then", True), schema.get("else", True)
        yes = [_join(one, two) for one in chosen(test) for two in inside(then)]
        groups.append(yes + [_join(_Case(({"not": test},)), case) for case in inside(other)])
    for name, sub in schema.get("dependentSchemas", {}).items():
        there = {"required": [name]}
        groups.append(
            [_Case(({"not": there},)), *(_join(_Case((there,)), case) for case in inside(sub))]
        )
    total = 1
    for group in groups:
        total *= len(group)
    space.spend(total)
    if total > _MAX_CASES:
        raise Undecided("too many combinations of evaluated properties or items")
    out = []
    for combination in product(*groups):
        case = _Case()
        for part in combination:
            case = _join(case, part)
        out.append(case)
    return out


def _own_properties(schema: dict[str, Any], *, top: bool) -> _Case:
    every = "additionalProperties" in schema or (not top and "unevaluatedProperties" in schema)
    return _Case(
        (),
        frozenset(schema.get("properties", ())),
        frozenset(schema.get("patternProperties", ())),
        0,
        every,
    )


def _own_items(node: Node, *, top: bool) -> _Case:
    schema = node.value
    matched = (schema["contains"],) if "contains" in schema else ()
    if node.source.dialect == "2020-12":
        count, every = len(schema.get("prefixItems", ())), "items" in schema
    else:
        listed = isinstance(schema.get("items"), list)
        count = len(schema["items"]) if listed else 0
        every = "additionalItems" in schema if listed else "items" in schema
    every = every or (not top and "unevaluatedItems" in schema)
    return _Case((), frozenset(), frozenset(), count, every, matched)
