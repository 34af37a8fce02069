"""The draft-07 subset: the first violation, with its path and code."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.schemas.subset import find_violation

ORDER = {
    "type": "object",
    "required": ["order_id"],
    "properties": {
        "order_id": {"type": "integer", "minimum": 1},
        "lines": {
            "type": "array",
            "items": {"type": "object", "properties": {"sku": {"type": "string", "minLength": 2}}},
        },
    },
    "additionalProperties": False,
}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("value", "violation"),
    [
        ({"order_id": 1}, None),
        ({"order_id": 1, "lines": [{"sku": "ab"}, {}]}, None),
        ([], "<root>: not_an_object"),
        ({}, "order_id: missing_required"),
        ({"order_id": "x"}, "order_id: not_an_integer"),
        ({"order_id": 0}, "order_id: below_minimum"),
        ({"order_id": 1, "x": 1}, "x: additional_not_allowed"),
        ({"x": 1, "order_id": "y"}, "x: additional_not_allowed"),
        ({"order_id": "y", "x": 1}, "order_id: not_an_integer"),
        ({"order_id": 1, "lines": {}}, "lines: not_an_array"),
        ({"order_id": 1, "lines": [{"sku": "ab"}, {"sku": 5}]}, "lines[1].sku: not_a_string"),
        ({"order_id": 1, "lines": [{"sku": "a"}, {"sku": 5}]}, "lines[0].sku: below_min_length"),
    ],
)
def test_the_first_violation_is_given_with_its_path(value: Any, violation: str | None) -> None:
    assert find_violation(ORDER, value) == violation


@pytest.mark.parametrize(
    ("kind", "good", "bad", "code"),
    [
        ("string", ["", "x"], [1, None, True, []], "not_a_string"),
        ("integer", [0, -1, 2**70, 1.0, -0.0], [1.5, True, "1", None], "not_an_integer"),
        ("number", [0, 1.5, -2], [True, "1", None], "not_a_number"),
        ("boolean", [True, False], [0, 1, "true", None], "not_a_boolean"),
        ("null", [None], [0, False, "", {}], "not_null"),
        ("object", [{}, {"a": 1}], [[], None, "{}"], "not_an_object"),
        ("array", [[], [1]], [{}, None, "[]"], "not_an_array"),
    ],
)
def test_types(kind: str, good: list[Any], bad: list[Any], code: str) -> None:
    assert [find_violation({"type": kind}, value) for value in good] == [None] * len(good)
    expected = [f"<root>: {code}"] * len(bad)
    assert [find_violation({"type": kind}, value) for value in bad] == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, 1.0), (1, True), (0, False), ("1", 1), (None, 0), ([1], [1.0]), ({"a": 1}, {"a": True})],
)
def test_equality_knows_types_at_every_depth(one: Any, other: Any) -> None:
    for stated, value in ((one, other), (other, one)):
        assert find_violation({"const": stated}, value) == "<root>: wrong_const"
        assert find_violation({"enum": ["z", stated]}, value) == "<root>: not_in_enum"


@given(json_values)
def test_a_value_equals_itself(value: Any) -> None:
    assert find_violation({"const": value}, value) is None
    assert find_violation({"enum": [[], value]}, value) is None


def test_objects_are_equal_in_any_order_and_arrays_in_one() -> None:
    assert find_violation({"const": {"a": 1, "b": 2}}, {"b": 2, "a": 1}) is None
    assert find_violation({"const": {"a": 1}}, {"a": 1, "b": 2}) == "<root>: wrong_const"
    assert find_violation({"const": [1, 2]}, [2, 1]) == "<root>: wrong_const"
    assert find_violation({"const": [1, 2]}, [1]) == "<root>: wrong_const"


def test_const_comes_before_enum_before_type() -> None:
    assert find_violation({"const": 1, "enum": [2], "type": "string"}, 3) == "<root>: wrong_const"
    assert find_violation({"enum": [2], "type": "string"}, 3) == "<root>: not_in_enum"
    assert find_violation({"enum": []}, 3) == "<root>: not_in_enum"
    assert find_violation({"const": None}, 0) == "<root>: wrong_const"


@pytest.mark.parametrize(
    ("text", "length"), [("abc", 3), ("ğü", 2), ("😀", 1), ("😀a", 2), ("e\u0301", 2), ("", 0)]
)
def test_length_counts_code_points(text: str, length: int) -> None:
    assert find_violation({"type": "string", "minLength": length}, text) is None
    longer = {"type": "string", "minLength": length + 1}
    assert find_violation(longer, text) == "<root>: below_min_length"


def test_a_minimum_holds_for_integers_and_numbers() -> None:
    assert find_violation({"type": "integer", "minimum": 3}, 3) is None
    assert find_violation({"type": "integer", "minimum": 3}, 1.0) == "<root>: below_minimum"
    assert find_violation({"type": "number", "minimum": 0.5}, 0.4) == "<root>: below_minimum"
    assert find_violation({"type": "number", "minimum": 0.5}, 0.5) is None


def test_required_is_said_in_its_order_before_members() -> None:
    schema = {"type": "object", "required": ["z", "a"], "properties": {"c": {"type": "string"}}}
    assert find_violation(schema, {"c": 1}) == "z: missing_required"
    nested = {"type": "object", "properties": {"o": schema}}
    assert find_violation(nested, {"o": {"z": 1}}) == "o.a: missing_required"


def test_arrays_nest() -> None:
    schema = {"type": "array", "items": {"type": "array", "items": {"type": "null"}}}
    assert find_violation(schema, [[None], [None, 1]]) == "[1][1]: not_null"
    assert find_violation(schema, [[None], []]) is None


@pytest.mark.parametrize(
    "schema",
    [
        {},
        True,
        None,
        {"minLength": 9},
        {"minimum": 9},
        {"required": ["x"]},
        {"type": "strange"},
        {"type": ["string", "null"]},
        {"type": "integer", "minimum": "9"},
        {"enum": "abc"},
    ],
)
def test_what_is_outside_the_subset_is_not_judged(schema: Any) -> None:
    assert find_violation(schema, 1) is None


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string", "minLength": True}, ""),
        ({"type": "string", "minLength": "2"}, ""),
        ({"type": "object", "required": "a"}, {}),
        ({"type": "object", "required": [1]}, {}),
        ({"type": "object", "properties": []}, {"a": 1}),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"a": 1}),
        ({"type": "array", "items": [{"type": "string"}]}, [1]),
        ({"type": "object", "properties": {"a": False}}, {"a": 1}),
    ],
)
def test_a_keyword_of_the_wrong_kind_is_not_judged(schema: Any, value: Any) -> None:
    assert find_violation(schema, value) is None


@given(json_values, json_values)
def test_no_schema_and_no_value_raises(schema: Any, value: Any) -> None:
    find_violation(schema, value)
