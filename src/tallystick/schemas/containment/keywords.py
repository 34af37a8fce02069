"""The meaning of every keyword for a value of one JSON type: how to satisfy and how to violate it.

A keyword has clauses and breaches. Each clause must hold, through one of its alternatives. A breach
is one way to violate the keyword; one breach is enough. An alternative is a list of items that must
hold together: literals (another node and a sign) and atoms, which are simple constraints:

    all       ("in", values)  ("out", values)
    number    ("low", n, open)  ("high", n, open)  ("step", n)  ("off", n)
    string    ("length", low, high)  ("pattern", p, sign)  ("predicate", question, sign)
    array     ("length", low, high)  ("each", start, stop, literal)  ("some", start, stop, literal)
              ("count", node, low, high)  ("unique", sign)
    object    ("length", low, high)  ("has", name)  ("lacks", name)  ("each", names, literal)
              ("some", names, literal)  ("names", literal)  ("odd", literal)

The names of an object are a class: ("name", n), ("pattern", p) or ("other", names, patterns).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from tallystick.schemas.containment.apart import are_apart, look
from tallystick.schemas.containment.nodes import Node, Space, Undecided, exact, type_of
from tallystick.schemas.containment.predicates import is_asserted, predicate
from tallystick.schemas.containment.unevaluated import rewrite_items, rewrite_properties

__all__ = ["Alternative", "Clause", "clauses"]

Item = tuple[Any, ...]
Alternative = list[Item]
Clause = list[Alternative]
Part = tuple[list[Clause], list[Alternative]]
"""The clauses of a keyword, and its breaches."""

_PAIRS: Final = 100
"""The number of pairs of members that are compared in one step."""


def clauses(space: Space, node: Node, sign: bool, kind: str) -> list[Clause]:
    """Return the clauses of a literal for a value of the type `kind`."""
    known = node.parts.get(kind)
    if known is None:
        parts = list(_parts(space, node, kind))
        known = node.parts[kind] = (
            [clause for part, _ in parts for clause in part],
            [[breach for _, breaches in parts for breach in breaches]],
        )
    return known[0] if sign else known[1]


def _parts(space: Space, node: Node, kind: str) -> Iterator[Part]:
    schema = node.value
    if isinstance(schema, bool):
        yield ([], []) if schema else ([[]], [[]])
        return
    if not isinstance(schema, dict):
        raise Undecided("a subschema must be an object or a boolean")
    if "$ref" in schema and node.source.dialect == "draft-07":
        yield _plain(space, node, schema["$ref"])
        return
    for keyword in schema:
        rule = _EVERY.get(keyword) or _TYPED[kind].get(keyword)
        if rule is not None:
            yield from rule(space, node, kind)


def _one(*items: Item) -> Part:
    """Make a keyword that is one conjunction of literals."""
    return [[[item]] for item in items], [[(item[0], not item[1])] for item in items]


def _plain(space: Space, node: Node, reference: Any) -> Part:
    return _one((space.refer(node, reference), True))


def _ref(space: Space, node: Node, _: str) -> Iterator[Part]:
    yield _plain(space, node, node.value["$ref"])


def _dynamic_ref(space: Space, node: Node, _: str) -> Iterator[Part]:
    keyword = {"2019-09": "$recursiveRef", "2020-12": "$dynamicRef"}.get(node.source.dialect)
    if keyword in node.value:
        yield _plain(space, node, node.value[keyword])


def _type(_: Space, node: Node, kind: str) -> Iterator[Part]:
    named = node.value["type"]
    types = [named] if isinstance(named, str) else named
    if kind in types:
        return
    if kind == "number" and "integer" in types:
        yield [[[("step", exact(1))]]], [[("off", exact(1))]]
    else:
        yield [[]], [[]]


def _enum(_: Space, node: Node, kind: str) -> Iterator[Part]:
    listed = node.value["enum"] if "enum" in node.value else [node.value["const"]]
    yield _values(listed, kind)
    if "enum" in node.value and "const" in node.value:
        yield _values([node.value["const"]], kind)


def _values(listed: list[Any], kind: str) -> Part:
    mine = tuple(value for value in listed if type_of(value) == kind)
    if not mine:
        return [[]], [[]]
    return [[[("in", mine)]]], [[("out", mine)]]


def _const(space: Space, node: Node, kind: str) -> Iterator[Part]:
    if "enum" not in node.value:
        yield from _enum(space, node, kind)


def _subs(space: Space, node: Node, keyword: str) -> list[Node]:
    return [space.node(one, node.source) for one in node.value[keyword]]


def _all_of(space: Space, node: Node, _: str) -> Iterator[Part]:
    yield _one(*((one, True) for one in dict.fromkeys(_subs(space, node, "allOf"))))


def _any_of(space: Space, node: Node, _: str) -> Iterator[Part]:
    subs = list(dict.fromkeys(_subs(space, node, "anyOf")))
    yield [[[(one, True)] for one in subs]], [[(one, False) for one in subs]]


def _one_of(space: Space, node: Node, _: str) -> Iterator[Part]:
    subs = _subs(space, node, "oneOf")
    looks = [look(one.value) for one in subs]
    chosen = [[(one, True)] for one in subs]
    pairs = []
    for at, one in enumerate(looks):
        space.spend(len(looks) // _PAIRS)
        for spot in range(at + 1, len(looks)):
            if not are_apart(one, looks[spot]):
                chosen[at].append((subs[spot], False))
                chosen[spot].append((subs[at], False))
                pairs.append([(subs[at], True), (subs[spot], True)])
    yield [chosen], [[(one, False) for one in subs], *pairs]


def _not(space: Space, node: Node, _: str) -> Iterator[Part]:
    yield _one((space.node(node.value["not"], node.source), False))


def _if(space: Space, node: Node, _: str) -> Iterator[Part]:
    test = space.node(node.value["if"], node.source)
    then = space.node(node.value.get("then", True), node.source)
    other = space.node(node.value.get("else", True), node.source)
    if "then" in node.value or "else" in node.value:
        yield (
            [[[(test, True), (then, True)], [(test, False), (other, True)]]],
            [[(test, True), (then, False)], [(test, False), (other, False)]],
        )


def _bound(keyword: str, *, low: bool, open_: bool) -> Callable[..., Iterator[Part]]:
    """Make the rule of a numeric bound: it holds on one side and is broken on the other."""

    def rule(_: Space, node: Node, __: str) -> Iterator[Part]:
        limit = exact(node.value[keyword])
        names = ("low", "high") if low else ("high", "low")
        yield [[[(names[0], limit, open_)]]], [[(names[1], limit, not open_)]]

    return rule


def _multiple_of(_: Space, node: Node, __: str) -> Iterator[Part]:
    step = exact(node.value["multipleOf"])
    yield [[[("step", step)]]], [[("off", step)]]


def _at_least(keyword: str) -> Callable[..., Iterator[Part]]:
    def rule(_: Space, node: Node, __: str) -> Iterator[Part]:
        limit = int(node.value[keyword])
        if limit > 0:
            yield [[[("length", limit, None)]]], [[("length", 0, limit - 1)]]

    return rule


def _at_most(keyword: str) -> Callable[..., Iterator[Part]]:
    def rule(_: Space, node: Node, __: str) -> Iterator[Part]:
        limit = int(node.value[keyword])
        yield [[[("length", 0, limit)]]], [[("length", limit + 1, None)]]

    return rule


def _pattern(_: Space, node: Node, __: str) -> Iterator[Part]:
    pattern = node.value["pattern"]
    yield [[[("pattern", pattern, True)]]], [[("pattern", pattern, False)]]


def _format(_: Space, node: Node, __: str) -> Iterator[Part]:
    if node.source.formats:
        yield from _asked({"format": node.value["format"]}, node.source.dialect)


def _content(_: Space, node: Node, __: str) -> Iterator[Part]:
    if node.source.dialect == "draft-07":
        names = ("contentEncoding", "contentMediaType")
        mini = {name: node.value[name] for name in names if name in node.value}
        yield from _asked(mini, node.source.dialect)


def _content_once(space: Space, node: Node, kind: str) -> Iterator[Part]:
    if "contentEncoding" not in node.value:
        yield from _content(space, node, kind)


def _asked(mini: dict[str, Any], dialect: str) -> Iterator[Part]:
    question = predicate(mini, dialect)
    if is_asserted(question):
        yield [[[("predicate", question, True)]]], [[("predicate", question, False)]]


def _each(start: int, stop: int | None, node: Node) -> Part:
    return [[[("each", start, stop, (node, True))]]], [[("some", start, stop, (node, False))]]


def _items(space: Space, node: Node, _: str) -> Iterator[Part]:
    items = node.value["items"]
    if isinstance(items, list):
        for at, one in enumerate(items):
            yield _each(at, at + 1, space.node(one, node.source))
        if "additionalItems" in node.value:
            rest = space.node(node.value["additionalItems"], node.source)
            yield _each(len(items), None, rest)
        return
    start = 0
    if node.source.dialect == "2020-12":
        start = len(node.value.get("prefixItems", ()))
    yield _each(start, None, space.node(items, node.source))


def _prefix_items(space: Space, node: Node, _: str) -> Iterator[Part]:
    if node.source.dialect == "2020-12":
        for at, one in enumerate(node.value["prefixItems"]):
            yield _each(at, at + 1, space.node(one, node.source))


def _contains(space: Space, node: Node, _: str) -> Iterator[Part]:
    inner = space.node(node.value["contains"], node.source)
    low, high = 1, None
    if node.source.dialect != "draft-07":
        low = int(node.value.get("minContains", 1))
        high = int(node.value["maxContains"]) if "maxContains" in node.value else None
    if low > 0:
        yield [[[("count", inner, low, None)]]], [[("count", inner, 0, low - 1)]]
    if high is not None:
        yield [[[("count", inner, 0, high)]]], [[("count", inner, high + 1, None)]]


def _unique(_: Space, node: Node, __: str) -> Iterator[Part]:
    if node.value["uniqueItems"] is True:
        yield [[[("unique", True)]]], [[("unique", False)]]


def _required(_: Space, node: Node, __: str) -> Iterator[Part]:
    for name in node.value["required"]:
        yield [[[("has", name)]]], [[("lacks", name)]]


def _named(names: Item, node: Node) -> Part:
    return [[[("each", names, (node, True))]]], [[("some", names, (node, False))]]


def _properties(space: Space, node: Node, _: str) -> Iterator[Part]:
    for name, one in node.value["properties"].items():
        yield _named(("name", name), space.node(one, node.source))


def _pattern_properties(space: Space, node: Node, _: str) -> Iterator[Part]:
    for pattern, one in node.value["patternProperties"].items():
        yield _named(("pattern", pattern), space.node(one, node.source))


def _additional(space: Space, node: Node, _: str) -> Iterator[Part]:
    names = frozenset(node.value.get("properties", ()))
    patterns = frozenset(node.value.get("patternProperties", ()))
    inner = space.node(node.value["additionalProperties"], node.source)
    yield _named(("other", names, patterns), inner)


def _property_names(space: Space, node: Node, _: str) -> Iterator[Part]:
    inner = space.node(node.value["propertyNames"], node.source)
    yield [[[("names", (inner, True))]]], [[("odd", (inner, False))]]


def _dependencies(keyword: str) -> Callable[..., Iterator[Part]]:
    def rule(space: Space, node: Node, _: str) -> Iterator[Part]:
        if keyword != "dependencies" and node.source.dialect == "draft-07":
            return
        for name, needed in node.value[keyword].items():
            if isinstance(needed, list):
                for other in needed:
                    yield (
                        [[[("lacks", name)], [("has", other)]]],
                        [[("has", name), ("lacks", other)]],
                    )
            else:
                inner = space.node(needed, node.source)
                yield [[[("lacks", name)], [(inner, True)]]], [[("has", name), (inner, False)]]

    return rule


def _unevaluated_properties(space: Space, node: Node, _: str) -> Iterator[Part]:
    if node.source.dialect != "draft-07":
        yield _one((space.node(rewrite_properties(space, node), node.source), True))


def _unevaluated_items(space: Space, node: Node, _: str) -> Iterator[Part]:
    """Say what is left over; where draft and validator differ, what holds for both readings."""
    if node.source.dialect == "draft-07":
        return
    readings = (True, node.source.dialect == "2020-12")
    wide, narrow = (
        space.node(rewrite_items(space, node, by_contains=one), node.source) for one in readings
    )
    yield [[[(wide, True)]]], [[(narrow, False)]]


Rule = Callable[[Space, Node, str], Iterator[Part]]

_EVERY: Final[dict[str, Rule]] = {
    "$ref": _ref, "$dynamicRef": _dynamic_ref, "$recursiveRef": _dynamic_ref, "type": _type,
    "enum": _enum, "const": _const, "allOf": _all_of, "anyOf": _any_of, "oneOf": _one_of,
    "not": _not, "if": _if,
}  # fmt: skip
_TYPED: Final[dict[str, dict[str, Rule]]] = {
    "null": {},
    "boolean": {},
    "number": {
        "minimum": _bound("minimum", low=True, open_=False),
        "maximum": _bound("maximum", low=False, open_=False),
        "exclusiveMinimum": _bound("exclusiveMinimum", low=True, open_=True),
        "exclusiveMaximum": _bound("exclusiveMaximum", low=False, open_=True),
        "multipleOf": _multiple_of,
    },
    "string": {
        "minLength": _at_least("minLength"), "maxLength": _at_most("maxLength"),
        "pattern": _pattern, "format": _format, "contentEncoding": _content,
        "contentMediaType": _content_once,
    },
    "array": {
        "minItems": _at_least("minItems"), "maxItems": _at_most("maxItems"), "items": _items,
        "prefixItems": _prefix_items, "contains": _contains, "uniqueItems": _unique,
        "unevaluatedItems": _unevaluated_items,
    },
    "object": {
        "minProperties": _at_least("minProperties"), "maxProperties": _at_most("maxProperties"),
        "required": _required, "properties": _properties,
        "patternProperties": _pattern_properties, "additionalProperties": _additional,
        "propertyNames": _property_names, "dependencies": _dependencies("dependencies"),
        "dependentRequired": _dependencies("dependentRequired"),
        "dependentSchemas": _dependencies("dependentSchemas"),
        "unevaluatedProperties": _unevaluated_properties,
    },
}  # fmt: skip
