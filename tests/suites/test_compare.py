"""Laws of comparing JSON exactly."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.suites.compare import compare, contain, lookup, parse, same

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)  # fmt: skip


@given(values)
def test_a_value_equals_itself_written_and_read(value: Any) -> None:
    assert same(value, parse(json.dumps(value)))


@given(values, values)
def test_equal_means_equal_types_at_every_depth(one: Any, other: Any) -> None:
    assert same(one, other) == (typed(one) == typed(other))


def typed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: typed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [typed(inner) for inner in value]
    return type(value).__name__, repr(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("true", "1"),
        ("false", "0"),
        ("1", "1.0"),
        ("0.0", "-0.0"),
        ("{}", "[]"),
        ("null", "0"),
        ('""', "null"),
        ('{"a":null}', "{}"),
        ("9007199254740993", "9007199254740992"),
        ("9007199254740993", "9007199254740993.0"),
        ("1e400", "1e401"),
        ("[1]", "[1,1]"),
        ('"\\u00e9"', '"e\\u0301"'),
    ],
)
def test_these_are_never_equal(one: str, other: str) -> None:
    assert not same(parse(one), parse(other))


@pytest.mark.parametrize(
    "text", ["NaN", "-Infinity", "[1,]", "", "\ufeff1", b"\xff", "[" * 100_000]
)
def test_what_is_not_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse(text)


def test_big_numbers_keep_their_digits() -> None:
    digits = "9" * 5000
    assert parse(digits) == Decimal(digits)
    assert parse("1e400") == Decimal("1e400")
    assert parse(str(2**200)) == 2**200


def test_differences_name_the_place_and_both_sides() -> None:
    found = list(compare({"a": [1, {"b/c": 2}], "d": 1}, {"a": [1, {"b/c": 3}], "e": 1}))
    assert [(one.pointer, one.expected, one.found) for one in found] == [
        ("/a/1/b~1c", 2, 3),
        ("/d", 1, ...),
        ("/e", ..., 1),
    ]


def test_containing_allows_more_members_but_no_other_values() -> None:
    assert not list(contain({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": 3}))
    assert list(contain({"a": {"b": 1}}, {"a": {"b": True}}))
    assert list(contain({"a": [1]}, {"a": [1, 2]}))


def test_comparing_does_not_recurse() -> None:
    deep: Any = 1
    for _ in range(50_000):
        deep = [deep]
    other: Any = 2
    for _ in range(50_000):
        other = [other]
    assert len(list(compare(deep, other))) == 1


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("", {"a/b": [1, {"~": 2}]}),
        ("/a~1b/1/~0", 2),
        ("/a~1b/0", 1),
        ("/a~1b/7", ...),
        ("/a~1b/-1", ...),
        ("/none", ...),
        ("/a~1b/0/deeper", ...),
    ],
)
def test_pointers_are_those_of_rfc_6901(pointer: str, found: Any) -> None:
    assert lookup({"a/b": [1, {"~": 2}]}, pointer) == found
