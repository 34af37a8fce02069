"""Subschemas as nodes, interned by structure, and the space in which one pair is decided.

A literal is a node with a sign: the value must conform to it, or must not. A query is a set of
literals. Two subschemas with the same text are one node, so `a and not a` is found at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final
from urllib.parse import unquote

from tallystick.schemas.refs import dialect_of, find_pointer, is_alias, walk

__all__ = [
    "TYPES",
    "Circular",
    "Exhausted",
    "Key",
    "Literal",
    "Node",
    "Sample",
    "Source",
    "Space",
    "Undecided",
    "distinct",
    "exact",
    "freeze",
    "make_source",
    "type_of",
]

TYPES: Final = ("object", "array", "string", "number", "boolean", "null")


class Undecided(Exception):
    """The method cannot decide this schema; the text gives the reason."""


class Circular(Undecided):
    """A reference leads to itself without going deeper: its meaning is not defined."""


class Exhausted(Undecided):
    """The budget of the pair is used up."""


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """The document of a subschema, and how to interpret it."""

    root: Any
    dialect: str
    formats: bool


@dataclass(slots=True, eq=False)
class Node:
    """One subschema of a source; `parts` caches the clauses of its keywords by JSON type."""

    value: Any
    source: Source
    number: int
    parts: dict[str, Any] = field(default_factory=dict)
    members: dict[str, Any] = field(default_factory=dict)

    def __hash__(self) -> int:
        return self.number

    def __lt__(self, other: Node) -> bool:
        return self.number < other.number


Literal = tuple[Node, bool]
Key = frozenset[Literal]


@dataclass(frozen=True, slots=True)
class Sample:
    """Some solutions; `complete`: there are no others; `assumed`: queries assumed to be empty."""

    values: tuple[Any, ...]
    complete: bool
    assumed: frozenset[Key] = frozenset()


@dataclass(slots=True)
class Space:
    """The state of one pair: interned nodes, results so far, open queries, the budget."""

    budget: int
    nodes: dict[Any, Node] = field(default_factory=dict)
    by_identity: dict[tuple[int, int], Node] = field(default_factory=dict)
    answers: dict[Key, tuple[int, Sample]] = field(default_factory=dict)
    open: set[Key] = field(default_factory=set)
    kept: list[Any] = field(default_factory=list)
    reaches: dict[Any, Any] = field(default_factory=dict)
    clock: Callable[[], float] | None = None
    deadline: float = 0.0
    inhabit: Callable[[Key, int], Sample] = lambda _key, _want: Sample((), complete=False)

    def spend(self, steps: int) -> None:
        """Take steps from the budget; raise `Exhausted` if the budget or the time is used up."""
        self.budget -= steps
        if self.budget < 0:
            raise Exhausted("the comparison reached its limit of steps")
        if self.clock is not None and self.clock() > self.deadline:
            raise Exhausted("the comparison reached its time limit")

    def node(self, value: Any, source: Source) -> Node:
        """Return the node of a subschema; equal subschemas have the same node."""
        place = (id(value), id(source))
        known = self.by_identity.get(place)
        if known is None:
            self.kept.append(value)  # an identity may not be reused while it is a key
            meant = follow_plain(value, source)
            text = json.dumps(meant, sort_keys=True)
            bound = (source.dialect, source.formats, self.reach(meant, text, source))
            known = self.nodes.get((text, bound))
            if known is None:
                known = self.nodes[(text, bound)] = Node(meant, source, len(self.nodes))
            self.by_identity[place] = known
        return known

    def reach(self, value: Any, text: str, source: Source) -> Any:
        """Return all targets of references: equal texts with equal targets have the same meaning.

        A `$dynamicRef`, or a reference without a target, binds a subschema to its document.
        """
        if 'Ref"' in text:
            return id(source)
        if '"$ref"' not in text:
            return None
        start = tuple(sorted(references_in(value)))
        known = self.reaches.get((start, id(source)))
        if known is None:
            found: dict[str, str] = {}
            pending = list(start)
            while pending:
                reference = pending.pop()
                if reference in found:
                    continue
                try:
                    target = find_pointer(source.root, unquote(reference[1:]))
                except KeyError:
                    return id(source)
                found[reference] = json.dumps(target, sort_keys=True)
                if 'Ref"' in found[reference]:
                    return id(source)
                pending.extend(references_in(target))
            known = self.reaches[start, id(source)] = frozenset(found.items())
        return known

    def refer(self, node: Node, reference: str) -> Node:
        """Follow a reference inside the node's document."""
        root = node.source.root
        if reference in ("", "#"):
            return self.node(root, node.source)
        try:
            if not reference.startswith("#/"):
                return self.node(_dynamic_anchor(root, reference), node.source)
            return self.node(find_pointer(root, unquote(reference[1:])), node.source)
        except KeyError:
            raise Undecided(f"$ref {reference!r} points to nothing") from None


def follow_plain(value: Any, source: Source) -> Any:
    """Follow a subschema that is only a reference, unless it leads to itself."""
    seen = set()
    here = value
    while isinstance(here, dict) and isinstance(here.get("$ref"), str) and id(here) not in seen:
        seen.add(id(here))
        reference = here["$ref"]
        if not is_alias(here, source.dialect) or not reference.startswith("#/"):
            return here
        try:
            here = find_pointer(source.root, unquote(reference[1:]))
        except KeyError:
            return here
    return value if isinstance(here, dict) and id(here) in seen else here


def references_in(value: Any) -> Iterator[str]:
    """Return every `$ref` below a value, also in parts that only look like a subschema."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                yield node["$ref"]
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)


def _dynamic_anchor(root: Any, reference: str) -> Any:
    found = [node for _, node in walk(root) if node.get("$dynamicAnchor") == reference[1:]]
    if len(found) != 1:
        raise KeyError(reference)
    return found[0]


def make_source(schema: Any, *, formats: bool | None = None) -> Source:
    """Make a source of a self-contained schema; its dialect decides `format` by default."""
    dialect = dialect_of(schema)
    return Source(schema, dialect, dialect == "draft-07" if formats is None else formats)


def exact(number: float) -> Fraction:
    """Return a JSON number as an exact rational, from its decimal text."""
    return Fraction(number) if isinstance(number, int) else Fraction(Decimal(repr(number)))


_NAMES: Final[dict[type, str]] = {
    str: "string", dict: "object", list: "array", bool: "boolean", type(None): "null",
}  # fmt: skip


def type_of(value: Any) -> str:
    """Name the JSON type; an integer is a number here."""
    return _NAMES.get(type(value), "number")


def freeze(value: Any) -> Any:
    """Make a JSON value hashable so that equal means equal in JSON Schema: 1 is 1.0, not true."""
    if isinstance(value, str):  # first: there may be very many
        return value
    if isinstance(value, bool) or value is None:
        return (type_of(value), value)
    if isinstance(value, list):
        return ("array", tuple(map(freeze, value)))
    if isinstance(value, dict):
        return ("object", frozenset((key, freeze(item)) for key, item in value.items()))
    if isinstance(value, int):
        return value
    return int(value) if value.is_integer() else exact(value)


def distinct(values: Iterable[Any]) -> list[Any]:
    """Keep the first of equal values."""
    return list({freeze(value): value for value in reversed(list(values))}.values())[::-1]
