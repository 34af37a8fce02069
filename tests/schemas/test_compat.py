"""One schema against another: the verdict of every mode, with its reasons and a witness."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tallystick.core.errors import Rejected, UsageError
from tallystick.schemas.change_rows import Change
from tallystick.schemas.compat import compare
from tallystick.schemas.modes import MODES
from tallystick.schemas.witness import check_witness

ORDER: dict[str, Any] = {
    "type": "object",
    "required": ["id", "amount"],
    "properties": {
        "id": {"type": "integer"},
        "amount": {"type": "number", "minimum": 1},
        "note": {"type": "string"},
        "state": {"type": "string", "enum": ["new", "paid"]},
    },
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """Give the order schema with one place set, or dropped when the value is `...`."""
    schema = copy.deepcopy(ORDER)
    node = schema
    *parents, last = path.split("/")
    for name in parents:
        node = node[name]
    if value is ...:
        del node[last]
    else:
        node[last] = value
    return schema


SEED = [
    ("add an optional field", changed("properties/coupon", {"type": "string"}), "compatible"),
    ("make an optional field required", changed("required", ["id", "amount", "note"]), "breaking"),
    ("add a required field", {**changed("properties/vat", {"type": "number"}),
                              "required": ["id", "amount", "vat"]}, "breaking"),
    ("remove a field", changed("properties/note", ...), "breaking"),
    ("rename a field", {**ORDER, "properties": {
        **{k: v for k, v in ORDER["properties"].items() if k != "note"}, "memo": {}}}, "breaking"),
    ("retype a field", changed("properties/id", {"type": "string"}), "breaking"),
    ("close the model", changed("additionalProperties", False), "breaking"),
    ("drop an enum value", changed("properties/state/enum", ["new"]), "breaking"),
    ("add an enum", changed("properties/note/enum", ["a"]), "breaking"),
    ("widen an enum", changed("properties/state/enum", ["new", "paid", "void"]), "compatible"),
    ("relax a constraint", changed("properties/amount/minimum", 0), "compatible"),
    ("tighten a constraint", changed("properties/amount/minimum", 2), "breaking"),
    ("drop a required field from the list", changed("required", ["id"]), "compatible"),
    ("mark a field as personal", changed("properties/note/x-gdpr-sensitive", True), "compatible"),
    ("nothing", ORDER, "compatible"),
]  # fmt: skip


@pytest.mark.parametrize(("new", "verdict"), [pytest.param(*row[1:], id=row[0]) for row in SEED])
def test_the_policy_table_of_babelqueue_holds(new: Any, verdict: str) -> None:
    found = compare(ORDER, new, "babelqueue")
    assert found.verdict == verdict
    if verdict == "breaking":
        assert any(row.effect == "breaking" for row in found.changes)
        removal = any(row.rule.startswith("property-removed") for row in found.changes)
        assert found.has_witness or removal
    else:
        assert all(row.effect == "compatible" for row in found.changes)
    if found.has_witness:
        assert check_witness(ORDER, new, found.witness)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"type": "integer"}, {"type": "number"}),
        ({"const": 1}, {"enum": [1, 2]}),
        ({"type": "boolean"}, {"enum": [True, False]}),
        ({"type": "string"}, {"type": "string", "minLength": 0}),
        ({"type": "integer"}, {"type": "integer", "minLength": 3}),
        ({"type": "integer", "minimum": 0.5}, {"type": "integer", "minimum": 1}),
        ({"type": "object", "properties": {"a": {"type": "string"}}},
         {"type": "object", "patternProperties": {"^a$": {"type": "string"}}}),
    ],
)  # fmt: skip
def test_what_is_proven_is_no_false_alarm_in_any_mode(old: Any, new: Any) -> None:
    assert compare(old, new, "babelqueue").verdict == "compatible"
    assert compare(old, new, "BACKWARD").verdict == "compatible"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"const": 1}, {"const": 2}),
        ({"type": ["string", "null"]}, {"type": "string"}),
        ({"enum": [1, True, None]}, {"enum": ["1", "true", "<nil>"]}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({"$ref": "#/definitions/a", "definitions": {"a": {"type": "string"}}},
         {"$ref": "#/definitions/a", "definitions": {"a": {"type": "null"}}}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "string"}]}),
        ({"type": "object"}, {"type": "object", "propertyNames": {"maxLength": 3}}),
        ({"type": "object", "properties": {"a": {}}},
         {"type": "object", "properties": {"a": False}}),
    ],
)  # fmt: skip
def test_what_the_reference_misses_is_found_with_a_witness(old: Any, new: Any) -> None:
    found = compare(old, new, "babelqueue")
    assert found.verdict == "breaking"
    assert check_witness(old, new, found.witness)


def test_an_added_optional_field_is_free_at_every_depth_and_through_references() -> None:
    def schema(**more: Any) -> Any:
        inner = {"type": "object", "properties": {"a": {"type": "string"}, **more}}
        lines = {"type": "array", "items": {"$ref": "#/definitions/line"}}
        return {
            "definitions": {"line": inner},
            "type": "object",
            "properties": {"lines": lines, "deep": {"type": "object", "properties": {"x": inner}}},
        }

    new = schema(b={"type": "integer"})
    assert compare(schema(), new, "babelqueue").verdict == "compatible"
    assert compare(schema(), new, "strict").verdict == "breaking"
    assert compare(new, schema(), "babelqueue").verdict == "breaking"


@pytest.mark.parametrize(
    ("mode", "widened", "narrowed"),
    [
        ("strict", "compatible", "breaking"),
        ("BACKWARD", "compatible", "breaking"),
        ("FORWARD", "breaking", "compatible"),
        ("FULL", "breaking", "breaking"),
        ("NONE", "compatible", "compatible"),
        ("full", "breaking", "breaking"),
    ],
)
def test_a_mode_is_a_set_of_directions(mode: str, widened: str, narrowed: str) -> None:
    small, large = {"type": "integer"}, {"type": "number"}
    assert compare(small, large, mode).verdict == widened
    found = compare(large, small, mode)
    assert found.verdict == narrowed
    assert [row.effect for row in found.changes] == [narrowed]
    assert found.has_witness is (narrowed == "breaking")


def test_a_witness_of_null_is_told_from_none() -> None:
    found = compare({"type": ["string", "null"]}, {"type": "string"}, "strict")
    assert (found.has_witness, found.witness) == (True, None)
    assert found.as_json()["witness"] == {"data": None, "direction": "backward"}
    assert compare({}, {}, "strict").as_json()["witness"] is None


def test_a_change_names_its_pointer_and_rule() -> None:
    new = changed("properties/amount/minimum", 2)
    assert compare(ORDER, new, "strict").changes == (
        Change(
            "/properties/amount/minimum", "minimum-increased", "breaking",
            "minimum changed from 1 to 2",
        ),
    )  # fmt: skip


def test_a_break_without_a_row_is_explained_by_the_witness() -> None:
    old = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    new = {"anyOf": [{"type": "string"}]}
    assert any(row.effect == "breaking" for row in compare(old, new, "strict").changes)


def test_unknown_modes_and_malformed_schemas_are_refused() -> None:
    with pytest.raises(UsageError):
        compare({}, {}, "banana")
    for mode in MODES:
        with pytest.raises(Rejected):
            compare({"type": "strnig"}, {}, mode)
        with pytest.raises(Rejected):
            compare({}, {"$ref": "http://example.com/a"}, mode)


@pytest.mark.parametrize("keyword", ["prefixItems", "dependentRequired", "minContains"])
def test_a_keyword_of_another_dialect_may_hold_anything(keyword: str) -> None:
    assert compare({keyword: "x"}, {keyword: 5}, "strict").verdict == "compatible"


SEVEN = "http://json-schema.org/draft-07/schema#"
TWENTY = "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize(
    ("outer", "inner", "keyword"), [(SEVEN, TWENTY, "prefixItems"), (TWENTY, SEVEN, "items")]
)
def test_parts_of_different_dialects_are_refused_and_never_called_compatible(
    outer: str, inner: str, keyword: str
) -> None:
    def schema(dialect: str, kind: str) -> dict[str, Any]:
        part = {"$id": "http://x/b", "$schema": dialect, keyword: [{"type": kind}]}
        return {"$schema": outer, "properties": {"a": part}}

    for mode in MODES:
        with pytest.raises(Rejected, match="dialect") as caught:
            compare(schema(inner, "string"), schema(inner, "integer"), mode)
        assert (caught.value.code, caught.value.pointer) == (
            "schema.mixed", "/properties/a/$schema",
        )  # fmt: skip
    if keyword == "prefixItems":
        assert compare(schema(outer, "string"), schema(outer, "integer")).verdict == "compatible"


LATE = "https://json-schema.org/draft/2019-09/schema"


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ({"contains": True, "unevaluatedItems": False}, {"maxItems": 0}, "breaking"),
        ({"allOf": [{"contains": {"const": 1}}], "unevaluatedItems": False},
         {"type": ["array", "null"]}, "breaking"),
        ({"type": "array", "contains": {"const": 1}, "unevaluatedItems": False},
         {"items": {"const": 1}}, "compatible"),
        ({"type": "array", "minItems": 1, "items": {"const": 1}},
         {"contains": {"const": 1}, "unevaluatedItems": False}, "unknown"),
        ({"contains": True}, {"minItems": 1}, "compatible"),
        ({"items": [True], "unevaluatedItems": False}, {"maxItems": 1}, "compatible"),
    ],
    ids=str,
)  # fmt: skip
def test_only_what_holds_for_draft_and_validator_is_proven(
    old: Any, new: Any, verdict: str
) -> None:
    found = compare({"$schema": LATE, **old}, {"$schema": LATE, **new}, "strict")
    assert found.verdict == verdict, found
