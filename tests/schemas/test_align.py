"""The field policy of `babelqueue`: what counts as added, removed or merely moved."""

from __future__ import annotations

from typing import Any

import pytest

from tallystick.schemas.compat import compare

TEXT: dict[str, Any] = {"type": "string"}
COUNT: dict[str, Any] = {"type": "integer"}
ONE: dict[str, Any] = {
    "type": "object",
    "properties": {"k": {"const": 1}, "x": TEXT},
    "required": ["k"],
}
TWO: dict[str, Any] = {
    "type": "object",
    "properties": {"k": {"const": 2}, "y": TEXT},
    "required": ["k"],
}
SIX = {"type": "object", "properties": {"k": {"const": 6}, "z": TEXT}, "required": ["k"]}


def fields(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


DEMANDS: tuple[dict[str, Any], ...] = (
    {"type": "object", "required": ["b"]},
    {"type": "object", "allOf": [{"required": ["b"]}]},
    {"type": "object", "dependencies": {"a": ["b"]}},
    {"type": "object", "anyOf": [{"required": ["b"]}, {"required": ["c"]}]},
)


@pytest.mark.parametrize("old", DEMANDS, ids=str)
def test_a_type_on_a_name_that_was_demanded_breaks(old: dict[str, Any]) -> None:
    found = compare(old, {**old, "properties": {"b": COUNT}}, "babelqueue")
    assert found.verdict == "breaking"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"oneOf": [ONE, TWO]}, {"oneOf": [TWO, ONE]}),
        ({"oneOf": [ONE, TWO]}, {"oneOf": [SIX, ONE, TWO]}),
        ({"allOf": [fields(a=TEXT), fields(b=TEXT)]}, {"allOf": [fields(b=TEXT), fields(a=TEXT)]}),
        ({"allOf": [fields(a=TEXT)]}, {"allOf": [fields(a=TEXT), fields(b=COUNT)]}),
        (fields(a=TEXT), {"allOf": [fields(a=TEXT), fields(b=COUNT)]}),
        (fields(a=TEXT), fields(a=TEXT, b=COUNT)),
    ],
    ids=str,
)
def test_what_moved_or_was_added_as_optional_is_compatible(old: Any, new: Any) -> None:
    assert compare(old, new, "babelqueue").verdict == "compatible"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (fields(a=TEXT, b=COUNT), fields(a=TEXT)),
        ({"allOf": [fields(a=TEXT), fields(b=TEXT)]}, {"allOf": [fields(a=TEXT), fields()]}),
        (fields(a=TEXT), {**fields(a=TEXT, b=COUNT), "required": ["b"]}),
    ],
    ids=str,
)
def test_what_is_gone_or_newly_demanded_breaks(old: Any, new: Any) -> None:
    assert compare(old, new, "babelqueue").verdict == "breaking"


NULL = {"type": "null"}
BOTH = fields(a=TEXT, b=COUNT)
MORE = fields(a=TEXT, b=COUNT, c=COUNT)
MAP = {"type": "object", "additionalProperties": TEXT}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (BOTH, {"anyOf": [BOTH, NULL]}),
        (BOTH, {"oneOf": [NULL, MORE]}),
        (fields(), {"oneOf": [NULL, fields(c=COUNT)]}),
        ({"anyOf": [BOTH, NULL]}, {"oneOf": [NULL, MORE]}),
        ({"anyOf": [BOTH, NULL]}, {**MORE, "type": ["object", "null"]}),
        (fields(p=BOTH), fields(p={"anyOf": [MORE, NULL]})),
        ({"oneOf": [ONE, TWO]},
         {"oneOf": [NULL, {**ONE, "properties": {**ONE["properties"], "z": COUNT}}, TWO]}),
        ({**BOTH, "additionalProperties": False}, {**fields(a=TEXT, b=COUNT, c=False),
                                                   "additionalProperties": False}),
        (MAP, {**MAP, "properties": {"k": {"type": ["string", "null"]}}}),
        ({**fields(a=TEXT), "patternProperties": {"a": TEXT}},
         {"anyOf": [NULL, {**fields(), "patternProperties": {"a": TEXT}}]}),
    ],
    ids=str,
)  # fmt: skip
def test_a_field_may_come_with_null_beside_its_object(old: Any, new: Any) -> None:
    assert compare(old, new, "babelqueue").verdict == "compatible"


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (fields(a=TEXT), fields(a=TEXT, b=False), "property-with-false-added"),
        (fields(a=TEXT), fields(a=TEXT, b={"not": {}}), "optional-property-added"),
        (fields(a=TEXT), {**fields(a=TEXT, b=COUNT), "propertyNames": {"enum": ["a"]}},
         "property-names-added"),
        (MAP, {**MAP, "properties": {"k": COUNT}}, ""),
        ({"allOf": [MAP]}, {"allOf": [MAP], "properties": {"k": COUNT}}, ""),
        ({"anyOf": [fields(b=COUNT), TEXT]}, {"anyOf": [fields(b=COUNT), TEXT],
                                              "properties": {"b": TEXT}}, ""),
        ({"if": {"required": ["x"]}, "then": fields(b=COUNT)},
         {"if": {"required": ["x"]}, "then": fields(b=COUNT), "properties": {"b": TEXT}}, ""),
        (BOTH, {"anyOf": [fields(a=TEXT), NULL]}, "property-removed"),
        (BOTH, {"anyOf": [fields(a=COUNT, b=COUNT), NULL]}, "type-changed"),
        ({"anyOf": [BOTH, NULL]}, MORE, "nullable-removed"),
    ],
    ids=str,
)  # fmt: skip
def test_a_name_that_is_forbidden_or_was_described_is_not_added(
    old: Any, new: Any, rule: str
) -> None:
    found = compare(old, new, "babelqueue")
    assert found.verdict == "breaking"
    blamed = [row.rule for row in found.changes if row.effect == "breaking"]
    assert any(one.startswith(rule) for one in blamed), blamed


LATE = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
IF_K = {"if": {"required": ["k"]}}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (fields(p=fields(a=TEXT)), {"allOf": [fields(p=BOTH)]}),
        ({"allOf": [fields(p=fields(a=TEXT))]}, fields(p=BOTH)),
        ({"items": fields(a=TEXT)}, {"allOf": [{"items": BOTH}]}),
        ({**LATE, **fields(p=fields(a=TEXT))},
         {**LATE, "type": "object", "$ref": "#/$defs/base", "$defs": {"base": fields(p=BOTH)}}),
        ({**IF_K, "then": fields(a=TEXT)}, {**IF_K, "then": BOTH}),
        (fields(p={"oneOf": [ONE, TWO]}),
         fields(p={"oneOf": [ONE, {**TWO, "properties": {**TWO["properties"], "x": COUNT}}]})),
    ],
    ids=str,
)  # fmt: skip
def test_a_field_may_come_further_down_while_its_object_moves(old: Any, new: Any) -> None:
    assert compare(old, new, "babelqueue").verdict == "compatible"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({**fields(p=fields(a=TEXT)), "allOf": [fields(p=fields(b=COUNT))]},
         fields(p=fields(a=TEXT, b=TEXT))),
        ({"items": fields(a=TEXT), "allOf": [{"items": fields(b=COUNT)}]},
         {"items": fields(a=TEXT, b=TEXT)}),
        ({**fields(b=COUNT), **IF_K, "then": fields(a=TEXT)},
         {**fields(b=COUNT), **IF_K, "then": fields(a=TEXT, b=TEXT)}),
        ({**fields(b=COUNT), "dependencies": {"k": fields(a=TEXT)}},
         {**fields(b=COUNT), "dependencies": {"k": fields(a=TEXT, b=TEXT)}}),
    ],
    ids=str,
)  # fmt: skip
def test_a_name_that_another_branch_described_is_not_added(old: Any, new: Any) -> None:
    found = compare(old, new, "babelqueue")
    assert (found.verdict, found.has_witness) == ("breaking", True)


def test_a_witness_of_the_policy_was_valid_before() -> None:
    old = {"oneOf": [fields(k={"const": 1}), fields(k={"const": 2})]}
    new = {"oneOf": [fields(k={"const": 1}, z=COUNT), fields(k={"const": 2})]}
    assert compare(old, new, "babelqueue").verdict == "compatible"


SHARED = {"$ref": "#/definitions/a"}
SHORT = {"type": "string", "maxLength": 3}


def shared(beside: Any, *, first: str = "s", **gained: Any) -> dict[str, Any]:
    """Use a definition twice: alone as `s`, and as `b` with something beside it."""
    held = {"s": dict(SHARED), "b": {"allOf": [dict(SHARED), beside]}}
    order = sorted(held, key=lambda name: name != first)
    whole = fields(**{name: held[name] for name in order})
    return {**whole, "definitions": {"a": fields(x=TEXT, **gained)}}


@pytest.mark.parametrize("first", ["s", "b"])
@pytest.mark.parametrize(
    ("beside", "gained"),
    [
        (fields(c=TEXT), SHORT),
        ({"required": ["c"]}, TEXT),
        ({**IF_K, "then": fields(c=TEXT)}, COUNT),
        ({"anyOf": [fields(c=TEXT), NULL]}, COUNT),
        ({"additionalProperties": TEXT}, COUNT),
        ({"patternProperties": {"^c": TEXT}}, COUNT),
    ],
    ids=str,
)
def test_a_name_is_not_new_to_a_shared_definition_where_it_was_described(
    beside: Any, gained: Any, first: str
) -> None:
    found = compare(shared(beside, first=first), shared(beside, c=gained), "babelqueue")
    assert found.verdict == "breaking"


@pytest.mark.parametrize("first", ["s", "b"])
def test_a_field_may_move_into_a_shared_definition(first: str) -> None:
    beside = fields(c=TEXT)
    old = shared(beside, first=first)
    assert compare(old, shared(beside, c=TEXT), "babelqueue").verdict == "compatible"
    assert compare(old, shared({}, c=TEXT), "babelqueue").verdict == "compatible"
    assert compare(old, shared(beside, d=COUNT), "babelqueue").verdict == "compatible"


def test_objects_that_python_shares_are_places_of_their_own() -> None:
    old = shared(fields(c=TEXT))
    old["properties"]["s"] = old["properties"]["b"]["allOf"][0]
    new = fields(b=fields(x=TEXT, c=SHORT), s=fields(x=TEXT, c=TEXT))
    assert compare(old, new, "babelqueue").verdict == "breaking"


def test_fields_that_are_too_many_to_walk_are_not_judged() -> None:
    names = {f"a{at}": TEXT for at in range(100)}
    old = {"anyOf": [fields(**{name: TEXT}) for name in names]}
    new = {**fields(**names, **{f"p{at}": TEXT for at in range(400)}),
           "patternProperties": {f"^x{at}[a-z]+$": TEXT for at in range(50)}}  # fmt: skip
    found = compare(old, new, "babelqueue")
    assert (found.verdict, found.has_witness) == ("unknown", False)
    assert compare(old, {}, "babelqueue").verdict == "breaking"


def told(tag: Any, **more: Any) -> dict[str, Any]:
    return {**fields(t=tag, x=TEXT, **more), "required": ["t"]}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (lambda tag: {"const": tag}, lambda tag: {"const": tag, "description": "which"}),
        (lambda tag: {"const": tag}, lambda tag: {"const": tag, **TEXT}),
        (lambda tag: {"enum": [tag]}, lambda tag: {"enum": [tag]}),
        (lambda tag: {"enum": [tag]}, lambda tag: {"const": tag}),
        (lambda tag: {"const": tag}, lambda tag: {"enum": [tag, f"{tag}{tag}"]}),
        (lambda tag: told({"const": tag}), lambda tag: told({"enum": [tag]})),
    ],
)
def test_an_alternative_is_known_by_its_tag_however_that_is_written(old: Any, new: Any) -> None:
    before = {"oneOf": [told(old("a")), told(old("b"))]}
    after = {"oneOf": [told(new("b"), n=COUNT), told(new("a"), m=COUNT)]}
    assert compare(before, after, "babelqueue").verdict == "compatible"


PAIR = {"oneOf": [ONE, TWO]}
GROWN = {"oneOf": [TWO, {**ONE, "properties": {**ONE["properties"], "z": COUNT}}]}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (PAIR, {"allOf": [GROWN], "description": "both"}),
        ({"allOf": [PAIR]}, GROWN),
        ({"allOf": [PAIR, {"required": ["k"]}]}, {"allOf": [{"required": ["k"]}, GROWN]}),
        (PAIR, {"allOf": [SHARED], "definitions": {"a": GROWN}}),
        ({"items": PAIR}, {"items": {"allOf": [SHARED]}, "definitions": {"a": GROWN}}),
    ],
    ids=str,
)
def test_alternatives_are_found_in_any_branch_of_all(old: Any, new: Any) -> None:
    assert compare(old, new, "babelqueue").verdict == "compatible"


def test_a_name_that_a_condition_described_is_not_new_to_an_alternative() -> None:
    when = {"if": {"required": ["x"]}, "then": fields(z=TEXT)}
    assert compare({**PAIR, **when}, {**GROWN, **when}, "babelqueue").verdict == "breaking"


@pytest.mark.parametrize(
    "new",
    [
        {**BOTH, **IF_K, "then": fields(n=COUNT)},
        {**BOTH, **IF_K, "else": fields(n=COUNT)},
        {**BOTH, "allOf": [{**IF_K, "then": fields(n=COUNT)}]},
        {**BOTH, "dependencies": {"a": fields(n=COUNT)}},
        {**LATE, **BOTH, "dependentSchemas": {"a": fields(n=COUNT)}},
        {**fields(a=TEXT, b=COUNT, n=COUNT), **IF_K, "then": fields(n=TEXT)},
    ],
    ids=str,
)
def test_a_field_may_come_under_a_condition(new: Any) -> None:
    assert compare(BOTH, new, "babelqueue").verdict == "compatible"


@pytest.mark.parametrize(
    "then",
    [fields(n=False), {**fields(n=COUNT), "required": ["n"]}, fields(a=COUNT)],
    ids=str,
)
def test_what_a_new_condition_refuses_demands_or_retypes_breaks(then: Any) -> None:
    assert compare(BOTH, {**BOTH, **IF_K, "then": then}, "babelqueue").verdict == "breaking"
