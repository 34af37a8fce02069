"""Measure how often a schema may check one place of a document, without running it.

What applies in place (`$ref`, `allOf`, `if`, ...) adds up; what applies to different members of a
value does not, because one member is judged by one of them. So the ways to judge a place are
counted along the schema, each subschema once. Two references to the same definition, thirty levels
deep, make a thousand million ways out of sixty lines (issue 4, hostile input).

Recursion is told apart: a schema that comes back to itself in more than one way `grows` with the
depth of the document, and says nothing about shallow ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from tallystick.schemas.refs import find_pointer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MANY", "Intricacy", "is_circular", "measure"]

MANY: Final = 100_000
"""More ways than this are too many to be taken for every message."""

_SUMMED: Final = {
    "not": "one", "if": "one", "then": "one", "else": "one", "contains": "one",
    "propertyNames": "one", "unevaluatedItems": "one", "unevaluatedProperties": "one",
    "allOf": "list", "anyOf": "list", "oneOf": "list",
    "dependentSchemas": "map", "dependencies": "map", "patternProperties": "map",
}  # fmt: skip
"""What may all apply at once."""
_APART: Final = {
    "properties": "map", "additionalProperties": "one", "items": "one", "additionalItems": "one",
    "prefixItems": "list",
}  # fmt: skip
"""What applies to members that differ from each other."""
_IN_PLACE: Final = {
    key: _SUMMED[key]
    for key in ("not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas")
}
"""What applies to the value itself."""
_Edges = tuple[list[Any], list[Any]]
"""The subschemas that a subschema leads to: what is summed, what is apart."""


@dataclass(frozen=True, slots=True)
class Intricacy:
    """How many ways there are to judge one place, and whether they multiply with depth."""

    ways: int
    grows: bool

    @property
    def is_plain(self) -> bool:
        """Tell whether any document is judged in a time that its length bounds."""
        return self.ways <= MANY and not self.grows


def measure(schema: Any) -> Intricacy:
    """Measure a self-contained schema."""
    edges, order, group = _components(schema)
    ways: dict[int, int] = {}
    grows = False
    for members in order:  # what a component leads to comes before it
        total = 0
        for number in members:
            summed, apart = edges[number]
            total += 1 + sum(ways.get(group[id(one)], 0) for one in summed)
            total += max((ways.get(group[id(one)], 0) for one in apart), default=0)
            back = [one for one in summed if group[id(one)] == group[number]]
            deeper = any(group[id(one)] == group[number] for one in apart)
            grows = grows or len(back) + deeper > 1
        ways[group[members[0]]] = total
    return Intricacy(ways[group[id(schema)]] if id(schema) in group else 1, grows)


def is_circular(schema: Any) -> bool:
    """Tell whether a reference leads back to itself without going deeper into the document."""
    state: dict[int, bool] = {}  # True: done; False: on the way
    pending = [schema] if isinstance(schema, dict) else []
    seen = {id(schema)}
    while pending:  # every subschema that applies anywhere is a place to start from
        start = pending.pop()
        for held in (*_held(start, _SUMMED), *_held(start, _APART), *_target(schema, start)):
            if id(held) not in seen:
                seen.add(id(held))
                pending.append(held)
        path = [(start, _in_place(schema, start))] if id(start) not in state else []
        state.setdefault(id(start), False)
        while path:
            node, rest = path[-1]
            following = next(rest, None)
            if following is None:
                state[id(node)] = True
                path.pop()
            elif id(following) not in state:
                state[id(following)] = False
                path.append((following, _in_place(schema, following)))
            elif not state[id(following)]:
                return True
    return False


def _in_place(root: Any, node: dict[str, Any]) -> Iterator[Any]:
    yield from _held(node, _IN_PLACE)
    yield from _target(root, node)


def _edges(root: Any, node: dict[str, Any]) -> _Edges:
    return list(_held(node, _SUMMED)) + list(_target(root, node)), list(_held(node, _APART))


def _held(node: dict[str, Any], table: dict[str, str]) -> Iterator[Any]:
    """Give the subschemas under the keywords of a table; booleans cost nothing."""
    for keyword in node.keys() & table.keys():
        value = node[keyword]
        if isinstance(value, list):
            items: Any = value
        elif table[keyword] == "map" and isinstance(value, dict):
            items = value.values()
        else:
            items = (value,)
        yield from (item for item in items if isinstance(item, dict))


def _target(root: Any, node: dict[str, Any]) -> Iterator[Any]:
    for keyword in node.keys() & {"$ref", "$dynamicRef", "$recursiveRef"}:
        reference = node[keyword]
        if not isinstance(reference, str):
            continue
        try:
            pointer = unquote(reference[1:]) if reference.startswith("#/") else ""
            found = find_pointer(root, pointer)
        except KeyError:
            continue
        if isinstance(found, dict):
            yield found


def _components(schema: Any) -> tuple[dict[int, _Edges], list[list[int]], dict[int, int]]:
    """Give where each subschema leads, the components of all (Tarjan, 1972), and which is whose.

    Without recursion of our own: a schema may be nested deeper than the interpreter's stack.
    """
    edges: dict[int, _Edges] = {}
    low: dict[int, int] = {}
    index: dict[int, int] = {}
    group: dict[int, int] = {}
    order: list[list[int]] = []
    path: list[int] = []
    work: list[tuple[int, Iterator[Any]]] = []

    def enter(node: Any) -> None:
        number = id(node)
        index[number] = low[number] = len(index)
        path.append(number)
        summed, apart = edges[number] = _edges(schema, node)
        work.append((number, iter([*summed, *apart])))

    if isinstance(schema, dict):
        enter(schema)
    while work:
        number, rest = work[-1]
        following = next(rest, None)
        if following is not None:
            if id(following) not in index:
                enter(following)
            elif id(following) not in group:
                low[number] = min(low[number], index[id(following)])
            continue
        work.pop()
        if work:
            low[work[-1][0]] = min(low[work[-1][0]], low[number])
        if low[number] == index[number]:
            cut = path.index(number)
            members, path[cut:] = path[cut:], []
            group.update(dict.fromkeys(members, len(order)))
            order.append(members)
    return edges, order, group
