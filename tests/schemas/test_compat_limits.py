"""Pairs that multiply: unions of open members, rules, chains; and the limit of time."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tallystick.schemas.compat import compare
from tallystick.schemas.containment import search
from tallystick.schemas.containment.evaluate import satisfies
from tallystick.schemas.containment.keywords import Clause, clauses
from tallystick.schemas.containment.nodes import Exhausted, Source, Space
from tallystick.schemas.containment.search import make_space
from tallystick.schemas.witness import check_witness


def union(keyword: str, count: int, kind: str) -> Any:
    """Make a union of objects that may all hold at once."""
    return {
        keyword: [
            {"properties": {f"p{at}": {"type": kind}}, "required": [f"p{at}"]}
            for at in range(count)
        ]
    }


def rules(*numbers: int, title: str = "") -> Any:
    """Make conditions, each with a reference into the document."""
    return {
        "title": title,
        "definitions": {"text": {"type": "string"}},
        "allOf": [
            {
                "if": {"properties": {f"k{at}": {"const": at}}, "required": [f"k{at}"]},
                "then": {"required": [f"v{at}"]},
                "properties": {f"v{at}": {"$ref": "#/definitions/text"}},
            }
            for at in numbers
        ],
    }


def chain(length: int, kind: str, *, wrapped: bool) -> Any:
    """Make references that lead from one to the next."""
    rows: dict[str, Any] = {}
    for at in range(length):
        reference = {"$ref": f"#/definitions/d{at + 1}"}
        rows[f"d{at}"] = {"allOf": [reference]} if wrapped else reference
    rows[f"d{length}"] = {"type": kind}
    return {"definitions": rows, "properties": {"a": {"$ref": "#/definitions/d0"}}}


def wide(count: int, kind: str) -> Any:
    """Make an object of many members that must all be there."""
    names = [f"p{at}" for at in range(count)]
    members = {name: {"type": kind, "minimum": at} for at, name in enumerate(names)}
    return {"properties": members, "required": names}


def judge(old: Any, new: Any, verdict: str) -> None:
    """Compare, and hold a break to its witness."""
    found = compare(old, new, "strict")
    assert found.verdict == verdict, found
    assert verdict != "breaking" or check_witness(old, new, found.witness)


@pytest.mark.parametrize("count", [3, 16, 24])
def test_unions_of_many_open_members_are_answered(count: int) -> None:
    judge(union("anyOf", count, "integer"), union("anyOf", count, "number"), "compatible")
    judge(union("anyOf", count, "number"), union("anyOf", count, "integer"), "breaking")
    judge(union("oneOf", count, "integer"), union("oneOf", count, "number"), "breaking")
    fewer = copy.deepcopy(union("anyOf", count, "integer"))
    fewer["anyOf"].pop()
    judge(union("anyOf", count, "integer"), fewer, "breaking")
    judge(fewer, union("anyOf", count, "integer"), "compatible")


def test_a_rule_that_is_dropped_breaks_nothing_and_one_that_is_added_does() -> None:
    judge(rules(*range(11)), rules(*range(5), *range(6, 11), title="new"), "compatible")
    judge(rules(*range(10)), rules(*range(11)), "breaking")


@pytest.mark.parametrize("wrapped", [False, True])
def test_references_may_lead_far(wrapped: bool) -> None:
    judge(chain(60, "integer", wrapped=wrapped), chain(60, "number", wrapped=wrapped), "compatible")
    judge(chain(60, "number", wrapped=wrapped), chain(60, "integer", wrapped=wrapped), "breaking")


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        (r"\bfoo\b", r"\bfoobar\b", "breaking"), (r"\bfoo\b", r"\bfoo\b", "compatible"),
        (r"^\p{L}+$", r"^\p{Lu}+$", "breaking"), (r"^\p{L}+$", "^[a-z]+$", "breaking"),
        (r"^[\p{L}_]+$", r"^[\p{L}]+$", "breaking"),
    ],
)  # fmt: skip
def test_patterns_beyond_regular_languages_are_searched(old: str, new: str, verdict: str) -> None:
    judge({"type": "string", "pattern": old}, {"type": "string", "pattern": new}, verdict)


def test_what_is_written_alike_but_refers_to_something_else_is_not_the_same() -> None:
    old = {
        "properties": {"a": {"$ref": "#/definitions/d"}},
        "definitions": {"d": {"type": "number"}},
    }
    new = {**old, "definitions": {"d": {"type": "integer"}}}
    judge(old, new, "breaking")
    judge(new, old, "compatible")


@pytest.mark.parametrize("count", [100, 400])
def test_a_wide_object_costs_steps_by_its_properties_and_not_by_their_square(count: int) -> None:
    integers, numbers = wide(count, "integer"), wide(count, "number")
    assert compare(integers, numbers, budget=11 * count).verdict == "compatible"
    assert compare(numbers, integers, budget=11 * count).verdict == "breaking"


def test_a_pair_ends_when_its_time_is_over_and_says_so() -> None:
    moments = iter(range(10_000_000))
    old, new = union("anyOf", 24, "integer"), union("anyOf", 24, "number")
    found = compare(old, new, "strict", clock=lambda: float(next(moments)))
    assert found.verdict == "unknown"
    assert "time" in found.reason
    assert compare(old, new, "strict", clock=lambda: 0.0).verdict == "compatible"


def tagged(count: int) -> Any:
    """Make a union of objects that a tag tells apart."""
    return {
        "oneOf": [
            {"properties": {"kind": {"const": at}}, "required": ["kind"]} for at in range(count)
        ]
    }


def clauses_of(schema: Any, space: Space) -> list[Clause]:
    source = Source(schema, "draft-07", formats=True)
    return clauses(space, space.node(schema, source), True, "object")


@pytest.mark.parametrize(("count", "left"), [(99, 1000), (200, 600)])
def test_setting_the_members_of_a_union_against_each_other_costs_steps(
    count: int, left: int
) -> None:
    space = make_space(1000)
    clauses_of(tagged(count), space)
    assert space.budget == left


def test_a_union_that_is_too_wide_ends_with_its_budget_or_its_time() -> None:
    with pytest.raises(Exhausted, match="limit of steps"):
        clauses_of(tagged(400), make_space(1000))
    moments = iter(range(10_000))
    with pytest.raises(Exhausted, match="time"):
        clauses_of(tagged(50), make_space(1000, lambda: float(next(moments)), 10.0))
    assert next(moments) == 12, "it is asked for each member"


def test_what_leads_to_itself_is_never_proven() -> None:
    loop = {"oneOf": [{"type": "number"}, {"type": "string"}, {"$ref": "#/definitions/p"}]}
    old = {"anyOf": [{"$ref": "#/definitions/p"}], "definitions": {"p": loop}}
    new = {"anyOf": [{"not": {"type": "string"}}], "definitions": {"p": loop}}
    assert compare(old, new, "strict").verdict != "compatible"
    wide = {"anyOf": [*old["anyOf"], {"type": "number"}, {"type": "null"}]}
    assert compare({**old, **wide}, {**new, **wide, "not": False}, "strict").verdict == "unknown"


@pytest.mark.parametrize("more", [{}, {"type": "string"}, {"title": "t"}], ids=str)
def test_huge_lists_are_set_against_each_other_and_not_asked_value_by_value(
    more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def judge(space: Any, key: Any, value: Any) -> bool:
        asked.append(value)
        return satisfies(space, key, value)

    monkeypatch.setattr(search, "satisfies", judge)
    values = [f"value-{at}" for at in range(20_000)]

    def schema(listed: list[Any]) -> dict[str, Any]:
        return {"type": "object", "properties": {"s": {**more, "enum": listed}}}

    fewer = values[:7000] + values[7001:]
    found = compare(schema(values), schema(fewer), "strict")
    assert (found.verdict, found.witness) == ("breaking", {"s": "value-7000"})
    assert compare(schema(fewer), schema(values[::-1]), "strict").verdict == "compatible"
    assert len(asked) < 100


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ({"enum": [1, 2.0, "a", None]}, {"enum": [1.0, 2, "a", None]}, "compatible"),
        ({"enum": [1, True]}, {"enum": [1, 0]}, "breaking"),
        ({"enum": ["a", "bb"]}, {"enum": ["a", "bb"], "minLength": 2}, "breaking"),
        ({"enum": ["a", "bb"], "minLength": 2}, {"const": "bb"}, "compatible"),
        ({"enum": [1, 2], "const": 2}, {"enum": [2, 3]}, "compatible"),
        ({"enum": [1, "a"]}, {"type": "string", "enum": [1, "a"]}, "breaking"),
        ({"enum": [1.5, 2]}, {"type": "integer", "enum": [1.5, 2]}, "breaking"),
        ({"enum": [[1], {"a": 1}]}, {"enum": [{"a": 1.0}, [1.0]]}, "compatible"),
        ({"enum": [1, "a"]}, {"type": ["number", "string"]}, "compatible"),
        ({"enum": [1, "a"]}, False, "breaking"),
    ],
    ids=str,
)
def test_a_list_means_what_it_means_value_by_value(old: Any, new: Any, verdict: str) -> None:
    assert compare(old, new, "strict").verdict == verdict
