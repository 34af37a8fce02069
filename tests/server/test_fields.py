from __future__ import annotations

from typing import Any

from tallystick.server.fields import Field, list_fields


def by_path(schema: Any) -> dict[str, Field]:
    return {field.path: field for field in list_fields(schema)}


def test_nested_members_and_array_items_have_the_paths_of_the_inventory() -> None:
    schema = {
        "required": ["user"],
        "properties": {
            "user": {"type": "object", "properties": {"mail": {"type": "string"}}},
            "lines": {"type": "array", "items": {"properties": {"sku": {"type": "string"}}}},
        },
    }
    found = by_path(schema)
    assert list(found) == ["user", "user.mail", "lines", "lines[].sku"]
    assert found["user"].required
    assert not found["user.mail"].required


def test_a_mark_is_true_or_a_category_and_nothing_else() -> None:
    marks: dict[str, Any] = {"a": True, "b": "email", "c": False, "d": "", "e": 1}
    schema = {"properties": {name: {"x-gdpr-sensitive": mark} for name, mark in marks.items()}}
    found = by_path(schema)
    assert [found[name].sensitive for name in marks] == ["yes", "email", "", "", ""]


def test_a_mark_is_found_behind_references_combinators_patterns_and_scalars_in_arrays() -> None:
    schema = {
        "definitions": {"iban": {"type": "string", "x-gdpr-sensitive": "iban"}},
        "allOf": [{"properties": {"one": {"$ref": "#/definitions/iban"}}}],
        "if": {"properties": {"two": {"x-gdpr-sensitive": True}}},
        "patternProperties": {"^p": {"x-gdpr-sensitive": True}},
        "additionalProperties": {"x-gdpr-sensitive": True},
        "properties": {"many": {"type": "array", "items": {"$ref": "#/definitions/iban"}}},
    }
    marked = {path for path, field in by_path(schema).items() if field.sensitive}
    assert marked == {"one", "two", "{^p}", "*", "many[]"}


def test_a_schema_that_contains_itself_is_listed_once() -> None:
    schema = {
        "properties": {"next": {"$ref": "#"}, "kids": {"type": "array", "items": {"$ref": "#"}}}
    }
    assert {"next", "kids"} <= by_path(schema).keys()
    assert len(by_path(schema)) < 10


def test_references_in_a_circle_end() -> None:
    schema = {
        "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}},
        "properties": {"x": {"$ref": "#/definitions/a"}},
    }
    assert list(by_path(schema)) == ["x"]


def test_a_tower_of_doubled_references_is_walked_once_per_level() -> None:
    levels: dict[str, Any] = {
        f"l{at}": {"allOf": [{"$ref": f"#/definitions/l{at + 1}"}] * 2} for at in range(60)
    }
    levels["l60"] = {"properties": {"deep": {"type": "string"}}}
    assert list(by_path({"definitions": levels, "$ref": "#/definitions/l0"})) == ["deep"]


def test_the_types_of_alternatives_are_joined() -> None:
    schema = {
        "oneOf": [
            {"properties": {"v": {"type": "string"}}},
            {"properties": {"v": {"type": ["integer", "null"]}}},
        ]
    }
    assert by_path(schema)["v"].type == "string | integer | null"


def test_a_boolean_schema_has_no_fields() -> None:
    assert list_fields(True) == ()
