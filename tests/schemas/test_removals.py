"""A field may not be removed, however it was named; but it may be named in another way."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.schemas.compat import compare
from tallystick.schemas.removals import find_removals

TEXT: dict[str, Any] = {"type": "string"}
X: dict[str, Any] = {"properties": {"x": TEXT}}
Y: dict[str, Any] = {"properties": {"y": TEXT}}
XY: dict[str, Any] = {"properties": {"x": TEXT, "y": TEXT}}
NEW = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
LATE = {"$schema": "https://json-schema.org/draft/2019-09/schema"}
SHUT = {"additionalProperties": False}
IF_K = {"if": {"required": ["k"]}}


def base(**more: Any) -> dict[str, Any]:
    return {**NEW, "$ref": "#/$defs/base", "$defs": {"base": X}, **more}


def dynamic(schema: Any) -> dict[str, Any]:
    return {**NEW, "$dynamicRef": "#n", "$defs": {"n": {"$dynamicAnchor": "n", **schema}}}


def kind(tag: Any, **more: Any) -> dict[str, Any]:
    """One alternative of several, told by its tag."""
    told = tag if isinstance(tag, dict) else {"const": tag}
    return {"type": "object", "properties": {"kind": told, **more}, "required": ["kind"]}


def when(tag: str, then: Any) -> dict[str, Any]:
    return {"if": {"properties": {"kind": {"const": tag}}}, "then": then}


NEVER = kind({"enum": ["a"], "allOf": [{"const": "b"}]}, y=TEXT)
NEST = {"allOf": [X]}
GONE: list[tuple[Any, Any, str]] = [
    ({"allOf": [X, Y]}, {"allOf": [X]}, "/allOf/1/properties/y"),
    ({**Y, "allOf": [{"$ref": "#/definitions/b"}], "definitions": {"b": X}}, Y,
     "/allOf/0/properties/x"),
    ({**IF_K, "then": X}, {}, "/then/properties/x"),
    ({**IF_K, "else": X}, IF_K, "/else/properties/x"),
    ({"dependencies": {"k": X}}, {"dependencies": {"k": ["k"]}}, "/dependencies/k/properties/x"),
    ({**NEW, "dependentSchemas": {"k": X}}, NEW, "/dependentSchemas/k/properties/x"),
    ({"anyOf": [X, XY]}, {"anyOf": [X]}, "/anyOf/1/properties/y"),
    ({"properties": {"a": X}}, {"properties": {"a": True}}, "/properties/a/properties/x"),
    ({"properties": {"a": X}}, {"properties": {"a": {}}}, "/properties/a/properties/x"),
    ({"properties": {"a": X}}, {"patternProperties": {"a": {}}}, "/properties/a/properties/x"),
    ({"properties": {"a": X}, "additionalProperties": X},
     {"properties": {"a": {}}, "additionalProperties": X}, "/properties/a/properties/x"),
    ({"properties": {"٣": TEXT}}, {"patternProperties": {r"\d": TEXT}}, "/properties/٣"),
    ({"patternProperties": {"^a": XY}}, {"patternProperties": {"^a": X}},
     "/patternProperties/^a/properties/y"),
    ({"additionalProperties": X}, {"additionalProperties": True},
     "/additionalProperties/properties/x"),
    ({"additionalProperties": X}, {"properties": {"a": X}}, "/additionalProperties/properties/x"),
    ({**NEW, "unevaluatedProperties": X}, NEW, "/unevaluatedProperties/properties/x"),
    ({"items": X}, {}, "/items/properties/x"),
    ({"items": X}, {"items": [X]}, "/items/properties/x"),
    ({"items": [{}, X]}, {"items": [{}]}, "/items/1/properties/x"),
    ({"items": [X], "additionalItems": Y}, {"items": [X]}, "/additionalItems/properties/y"),
    ({**NEW, "prefixItems": [X, Y]}, {**NEW, "prefixItems": [X]}, "/prefixItems/1/properties/y"),
    ({"contains": X}, {}, "/contains/properties/x"),
    (X, True, "/properties/x"),
    (dynamic(XY), dynamic(X), "/properties/y"),
    ({**LATE, **X, "items": {"$recursiveRef": "#"}}, {**LATE, **X}, "/items/properties/x"),
    ({**X, "items": {"$ref": "#"}}, {**X, "items": {"items": {"$ref": "#"}}},
     "/items/properties/x"),
    (base(**Y), base(), "/properties/y"),
    (base(**Y), {**NEW, **Y}, "/properties/x"),
    ({"oneOf": [kind("a", n=TEXT), kind("b", n=TEXT)]}, {"oneOf": [kind("b", n=TEXT), kind("a")]},
     "/oneOf/0/properties/n"),
    ({"anyOf": [kind("a", d=XY), kind("b", d=XY)]}, {"anyOf": [kind("a", d=X), kind("b", d=XY)]},
     "/anyOf/0/properties/d/properties/y"),
    ({"oneOf": [kind("a", n=TEXT), kind("b", m=TEXT)]},
     {"oneOf": [kind("a", m=TEXT), kind("b", m=TEXT, n=TEXT)]}, "/oneOf/0/properties/n"),
    ({"oneOf": [kind({"enum": ["a"]}, n=TEXT), kind("b", n=TEXT)]},
     {"oneOf": [{"allOf": [{"$ref": "#/definitions/a"}]}, kind("b", n=TEXT)],
      "definitions": {"a": kind("a")}}, "/oneOf/0/properties/n"),
    ({"anyOf": [kind({"enum": ["a", "b"], "allOf": [{"const": "b"}]}, n=TEXT), kind("a", n=TEXT)]},
     {"anyOf": [kind("b"), kind("a", n=TEXT)]}, "/anyOf/0/properties/n"),
    ({"oneOf": [{"properties": {"h": kind("a")}, "required": ["h"], **NEST},
                {"properties": {"h": kind("b")}, "required": ["h"], **NEST}]},
     {"oneOf": [{"properties": {"h": kind("a")}, "required": ["h"]},
                {"properties": {"h": kind("b")}, "required": ["h"], **NEST}]},
     "/oneOf/0/allOf/0/properties/x"),
    ({"oneOf": [{"type": "object", "items": X}, {"type": "array", "items": X}]},
     {"oneOf": [{"type": "object", "items": X}, {"type": "array"}]}, "/oneOf/1/items/properties/x"),
    ({"allOf": [when("a", XY), when("b", X)]}, {"allOf": [when("a", Y), when("b", X)]},
     "/allOf/0/then/properties/x"),
    ({"allOf": [when("a", X), when("b", XY)]}, {"allOf": [when("b", XY)]},
     "/allOf/0/then/properties/x"),
    ({**IF_K, "then": XY, "else": X}, {**IF_K, "then": Y, "else": X}, "/then/properties/x"),
    ({**IF_K, "then": X, "else": XY}, {**IF_K, "then": X, "else": Y}, "/else/properties/x"),
    ({"patternProperties": {"^b": X}, "additionalProperties": X}, {"patternProperties": {"^b": X}},
     "/additionalProperties/properties/x"),
    (XY, {**X, "then": Y}, "/properties/y"),
    (XY, {**X, "dependentSchemas": {"x": Y}}, "/properties/y"),
    ({"items": XY}, {"items": X, "additionalItems": Y}, "/items/properties/y"),
    ({"items": XY}, {"items": X, "unevaluatedItems": Y}, "/items/properties/y"),
    ({"additionalProperties": X}, {"unevaluatedProperties": X},
     "/additionalProperties/properties/x"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "place"), GONE, ids=str)
def test_a_field_is_removed_with_whatever_named_it(old: Any, new: Any, place: str) -> None:
    found = compare(old, new, "babelqueue")
    assert found.verdict == "breaking"
    assert [row.pointer for row in found.changes if row.effect == "breaking"] == [place]


MOVED: list[tuple[Any, Any]] = [
    ({"allOf": [X]}, X),
    (X, {"allOf": [X]}),
    (XY, {"allOf": [X, {"allOf": [Y]}]}),
    ({"allOf": [X, Y]}, {"allOf": [Y, X]}),
    ({"items": {"$ref": "#/definitions/a"}, "definitions": {"a": X}}, {"items": X}),
    ({**X, **IF_K, "then": X}, X),
    ({"properties": {"a": {"allOf": [X]}}}, {"allOf": [{"properties": {"a": X}}]}),
    ({"properties": {"a": X}}, {"patternProperties": {"^a$": X}}),
    ({"properties": {"a": X}, **SHUT}, {"patternProperties": {r"^\p{L}$": X}, **SHUT}),
    ({"patternProperties": {"^a$": X}}, {"properties": {"a": X}}),
    ({"additionalProperties": X}, {"patternProperties": {"": X}}),
    ({"items": X}, {"items": [X, X], "additionalItems": X}),
    ({"items": [X, X], "additionalItems": X}, {"items": X}),
    ({**NEW, "prefixItems": [X]}, {"items": [X]}),
    ({"items": X, "maxItems": 1}, {"items": [X], "additionalItems": False}),
    ({"properties": {"a": False}}, {"propertyNames": {"not": {"const": "a"}}}),
    ({"if": {"properties": {"k": {"const": 1}}}, "then": {}}, {}),
    ({**X, "items": {"$ref": "#"}}, {"$ref": "#/definitions/a", "definitions": {
        "a": {**X, "items": {"$ref": "#/definitions/a"}}}}),
    ({**NEW, **XY}, base(**Y)),
    (base(**Y), {**NEW, **XY}),
    (base(**Y), base(properties={"y": TEXT, "z": TEXT})),
    ({"$ref": "#/definitions/a", **Y, "definitions": {"a": X}}, X),
    ({"oneOf": [kind("a", n=TEXT), kind("b", m=TEXT)]},
     {"oneOf": [kind("b", m=TEXT), kind("a", n=TEXT)]}),
    ({"anyOf": [kind("a", n=TEXT), kind("b", m=TEXT)]},
     {"properties": {"kind": {"enum": ["a", "b"]}, "n": TEXT, "m": TEXT}, "required": ["kind"]}),
    ({"anyOf": [kind("a", n=TEXT), {"anyOf": [kind("b", m=TEXT), kind("c", m=TEXT)]}]},
     {"anyOf": [kind("c", m=TEXT), kind("b", m=TEXT), kind("a", n=TEXT)]}),
    ({"oneOf": [kind({"enum": ["a", "b"]}, n=TEXT), kind("c")]},
     {"oneOf": [kind("a", n=TEXT), kind("b", n=TEXT), kind("c")]}),
    ({"oneOf": [kind("a", n=TEXT), kind("b", n=TEXT)]},
     {"properties": {"n": TEXT}, "oneOf": [kind("a"), kind("b")]}),
    ({"anyOf": [X, Y]}, {"anyOf": [Y, X]}),
    ({"anyOf": [{"type": "null"}, {**kind("a"), "minProperties": 2, **SHUT}]},
     {"anyOf": [{"type": "null"}, kind("b")]}),
    ({"anyOf": [{"type": "object", **X}, NEVER]}, {"anyOf": [NEVER, {"type": "object", **X}]}),
    ({"allOf": [when("a", X), when("b", Y)]}, {"allOf": [when("b", Y), when("a", X)]}),
    ({**IF_K, "then": X, "else": Y}, {"if": {"not": IF_K["if"]}, "then": Y, "else": X}),
    ({**X, "then": Y}, X),
    ({**X, "dependentSchemas": {"x": Y}}, X),
    ({"items": X, "additionalItems": Y}, {"items": X}),
    ({**X, "unevaluatedProperties": Y}, X),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), MOVED, ids=str)
def test_a_field_that_is_named_in_another_way_is_not_removed(old: Any, new: Any) -> None:
    found = compare(old, new, "babelqueue")
    assert found.verdict == "compatible", found


def test_what_stands_beside_a_reference_is_told_row_by_row() -> None:
    rows = compare(base(**Y), base(properties={"y": {"type": "integer"}}), "strict").changes
    assert [(row.pointer, row.rule) for row in rows] == [("/properties/y/type", "type-changed")]
    target = base(**Y) | {"$defs": {"base": {"properties": {"x": {"type": "integer"}}}}}
    rows = compare(base(**Y), target, "strict").changes
    assert [(row.pointer, row.rule) for row in rows] == [("/properties/x/type", "type-changed")]


def test_the_places_of_a_recursive_schema_come_to_an_end() -> None:
    """Every set of these definitions can be reached: the walk gives up and says so."""
    count = 24
    spell = {
        f"n{at}": {
            "properties": {
                "s": {"$ref": f"#/definitions/n{(at + 1) % count}"},
                "t": {"anyOf": [{"$ref": f"#/definitions/n{(at + 1) % count}"},
                                {"$ref": "#/definitions/n0"}]},
            }
        }
        for at in range(count)
    }  # fmt: skip
    old = {"$ref": "#/definitions/n0", "definitions": spell}
    assert not find_removals(old, old).complete
    assert find_removals(old, {}).pointers == ("/properties/s", "/properties/t")


def test_an_alternative_is_looked_for_among_very_many() -> None:
    many = {"oneOf": [kind(f"k{at}", n=TEXT) for at in range(300)]}
    fewer = {"oneOf": [kind(f"k{at}", **({} if at == 7 else {"n": TEXT})) for at in range(300)]}
    assert find_removals(many, many) == find_removals(fewer, many)
    assert find_removals(many, fewer).pointers == ("/oneOf/7/properties/n",)
    assert find_removals(many, fewer).complete


Tree = dict[str, Any]
"""Fields by name; each holds a tree, and `[]` stands for the items of an array."""
TREES: st.SearchStrategy[Tree] = st.recursive(
    st.just({}),
    lambda inner: st.dictionaries(st.sampled_from(["a", "b", "c", "[]"]), inner, max_size=3),
    max_leaves=12,
)


class Writer:
    """Writes a tree of fields as a schema, in one of the many ways there are."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.held: dict[str, Any] = {}

    def write(self, tree: Tree) -> dict[str, Any]:
        return {**self.node(tree), "definitions": self.held}

    def node(self, tree: Tree) -> dict[str, Any]:
        way = self.random.randrange(6)
        if way == 0 and len(tree) > 1:
            parts = [self.node({name: held}) for name, held in tree.items()]
            self.random.shuffle(parts)
            return {"allOf": parts}
        if way == 1:
            name = f"d{len(self.held)}"
            self.held[name] = {}
            self.held[name].update(self.node(tree))
            return {"$ref": f"#/definitions/{name}"}
        if way == 2:
            return {"if": {"required": ["a"]}, "then": self.node(tree)}
        if way == 3:
            return {"anyOf": [{"type": "null"}, self.node(tree)]}
        out: dict[str, Any] = {}
        for name, held in tree.items():
            if name == "[]":
                out["items"] = self.node(held)
            else:
                out.setdefault("properties", {})[name] = self.node(held)
        return out


def leaves(tree: Tree, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Give the paths of all fields; items by themselves are no field."""
    found = []
    for name, held in tree.items():
        found += [(*path, name)] if name != "[]" else []
        found += leaves(held, (*path, name))
    return found


def without(tree: Tree, path: tuple[str, ...]) -> Tree:
    name, *rest = path
    if not rest:
        return {key: held for key, held in tree.items() if key != name}
    return {**tree, name: without(tree[name], tuple(rest))}


@given(TREES, st.randoms(use_true_random=False))
def test_the_same_fields_written_in_any_way_are_all_there(tree: Tree, random: Random) -> None:
    old, new = (Writer(random).write(tree) for _ in range(2))
    assert find_removals(old, new).pointers == ()
    for path in leaves(tree):
        fewer = Writer(random).write(without(tree, path))
        assert len(find_removals(old, fewer).pointers) == 1
        assert find_removals(fewer, old).pointers == ()
