"""A schema whose references multiply is found by its shape and applied under a limit of time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tallystick.cli import main
from tallystick.core.errors import Rejected, Unavailable
from tallystick.schemas.guard import work_within
from tallystick.schemas.intricacy import MANY, is_circular, measure
from tallystick.schemas.validate import compile_schema

if TYPE_CHECKING:
    from pathlib import Path

URN = "urn:babel:hostile:made"
TREE = {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}
EXPRESSION = {
    "anyOf": [
        {"type": "integer"},
        {"type": "object", "required": ["x"], "properties": {"x": {"$ref": "#"}, "y": False}},
        {"type": "object", "required": ["x"], "properties": {"x": {"$ref": "#"}, "z": False}},
    ]
}


def diamond(levels: int, keyword: str = "allOf") -> Any:
    """Double a reference on every level."""
    rows: dict[str, Any] = {
        f"d{at}": {keyword: [{"$ref": f"#/definitions/d{at + 1}"}] * 2} for at in range(levels)
    }
    return {"$ref": "#/definitions/d0", "definitions": {**rows, f"d{levels}": {"type": "integer"}}}


def deep(levels: int, value: Any) -> Any:
    """Nest a value."""
    for _ in range(levels):
        value = {"x": value}
    return value


def test_a_doubled_reference_counts_twice_on_every_level() -> None:
    assert measure(diamond(10)).ways > 2**10
    assert measure(diamond(30, "oneOf")).ways > MANY
    assert not measure(diamond(30)).is_plain


def test_members_of_different_names_do_not_add_up() -> None:
    rows: dict[str, Any] = {
        f"d{at}": {
            "properties": {name: {"$ref": f"#/definitions/d{at + 1}"} for name in ("left", "right")}
        }
        for at in range(30)
    }
    schema = {"$ref": "#/definitions/d0", "definitions": {**rows, "d30": {"type": "string"}}}
    assert measure(schema).is_plain


@pytest.mark.parametrize("schema", [TREE, {"items": {"$ref": "#"}}, True, {}, {"not": False}])
def test_ordinary_recursion_does_not_grow(schema: Any) -> None:
    assert measure(schema).is_plain


def test_recursion_by_two_ways_grows() -> None:
    assert measure(EXPRESSION).grows
    assert measure({"patternProperties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}}).grows


def test_a_reference_that_leads_to_itself_is_circular_and_a_deeper_one_is_not() -> None:
    assert is_circular({"$ref": "#"})
    assert is_circular({"properties": {"a": {"allOf": [{"$ref": "#/properties/a"}]}}})
    assert not is_circular(TREE)
    assert not is_circular(EXPRESSION)
    assert not is_circular(diamond(30))
    assert not is_circular(True)


def test_the_guard_gives_the_answer_or_ends_the_work() -> None:
    assert work_within(lambda: [1, "two"], "it") == [1, "two"]
    with pytest.raises(Rejected) as caught:
        work_within(_never, "s.json", 0.02)
    assert caught.value.code == "schema.time"
    assert caught.value.message.startswith("s.json: ")
    assert caught.value.hint
    with pytest.raises(Unavailable, match="ZeroDivisionError"):
        work_within(lambda: 1 // 0, "it")


def _never() -> None:
    while True:
        pass


def test_a_schema_that_multiplies_is_refused_and_a_shallow_document_is_judged() -> None:
    checker = compile_schema(diamond(40, "anyOf"))
    with pytest.raises(Rejected):
        checker.is_valid("text")
    recursive = compile_schema(EXPRESSION)
    assert recursive.is_valid(deep(3, 1))
    assert recursive.is_valid(deep(30, 1))
    assert not recursive.is_valid(deep(30, "text"))
    (only,) = recursive.violations(deep(24, "text"))
    assert only.keyword == "schema"
    assert [one.keyword for one in recursive.violations("text")] == ["anyOf"]


@pytest.mark.parametrize("words", [(), ("--jsonl",), ("--jsonl", "--jobs", "2")])
def test_validate_answers_with_one_line_and_a_hint(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.json").write_text(json.dumps(diamond(40, "oneOf")))
    manifest = tmp_path / "registry.json"
    manifest.write_text(json.dumps({"schemas": [{"urn": URN, "schema": "s.json"}]}))
    message = tmp_path / "message.json"
    message.write_text(json.dumps({"job": URN, "data": {}}) + "\n")
    code = main(["schema", "validate", "--registry", str(manifest), *words, str(message)])
    said = capsys.readouterr().err
    assert code == 2
    assert "s.json: checking a value takes longer than" in said
    assert "hint: " in said


def test_check_warns_of_what_multiplies_and_of_what_asks_for_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = {**diamond(40, "anyOf"), "examples": ["text"]}
    for name, schema in (("a", hostile), ("b", {"$ref": "#"})):
        (tmp_path / f"{name}.json").write_text(json.dumps(schema))
    rows = [{"urn": f"{URN}-{name}", "schema": f"{name}.json"} for name in "ab"]
    (tmp_path / "registry.json").write_text(json.dumps({"schemas": rows}))
    assert main(["schema", "check", "--registry", str(tmp_path), "--json"]) == 1
    faults = json.loads(capsys.readouterr().out)["faults"]
    assert {fault["rule"] for fault in faults} == {
        "schema.intricate", "schema.time", "schema.circular",
    }  # fmt: skip
