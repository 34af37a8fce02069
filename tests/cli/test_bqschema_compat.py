"""`bqschema compat`: the verdicts and the words of the reference, and what it misses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.reference import COMPATIBLE, TEXT, WHOLE, properties, run

pytestmark = pytest.mark.usefixtures("examples")


def compat(capsys: pytest.CaptureFixture[str], old: Any, new: Any) -> tuple[int, list[str]]:
    for name, schema in (("old.json", old), ("new.json", new)):
        text = schema if isinstance(schema, str) else json.dumps(schema)
        Path(name).write_text(text, encoding="utf-8")
    code, out, err = run(capsys, "compat", "old.json", "new.json")
    assert not err
    lines = out.splitlines()
    if code == 0:
        assert out == COMPATIBLE
        return 0, []
    head = f"{len(lines) - 1} breaking change(s) — mint a new URN instead (versioning-policy §3):"
    assert lines[0] == head
    assert all(line.startswith("  - ") for line in lines[1:])
    return code, [line.removeprefix("  - ") for line in lines[1:]]


# Every row of the README's table.
TABLE: list[tuple[str, Any, Any, list[str]]] = [
    ("add an optional field", properties(a=TEXT), properties(a=TEXT, b=WHOLE), []),
    ("make an optional field required", properties(a=TEXT), {**properties(a=TEXT),
     "required": ["a"]}, ['property "a" is now required']),
    ("add a new required field", properties(a=TEXT), {**properties(a=TEXT, b=WHOLE),
     "required": ["b"]}, ['property "b" is now required']),
    ("remove a field", properties(a=TEXT, b=TEXT), properties(a=TEXT), ["b: property removed"]),
    ("remove a field of a closed model", {**properties(a=TEXT, b=TEXT),
     "additionalProperties": False}, {**properties(a=TEXT), "additionalProperties": False},
     ['property "b" removed while additionalProperties is false']),
    ("rename a field", properties(a=TEXT), properties(c=TEXT), ["a: property removed"]),
    ("retype a field", properties(a=TEXT), properties(a=WHOLE),
     ['a: type changed "string" → "integer"']),
    ("retype a nested field", properties(a=properties(b={"type": "array", "items": TEXT})),
     properties(a=properties(b={"type": "array", "items": WHOLE})),
     ['a.b[]: type changed "string" → "integer"']),
    ("tighten additionalProperties", {**properties(a=TEXT), "additionalProperties": True},
     {**properties(a=TEXT), "additionalProperties": False},
     ["additionalProperties tightened to false"]),
    ("drop an enum value", properties(a={"enum": ["x", "y", 3]}), properties(a={"enum": ["x"]}),
     ["a: enum value 3 removed", "a: enum value y removed"]),
    ("add an enum where any value was allowed", properties(a=TEXT),
     properties(a={**TEXT, "enum": ["x"]}),
     ["a: enum constraint added where any value was allowed"]),
    ("widen an enum", properties(a={"enum": ["x"]}), properties(a={"enum": ["x", "y"]}), []),
    ("relax a constraint", properties(a={**TEXT, "minLength": 3}),
     properties(a={**TEXT, "minLength": 2}), []),
    ("drop a constraint", properties(a={**WHOLE, "minimum": 3}), properties(a=WHOLE), []),
    ("drop a required field", {**properties(a=TEXT), "required": ["a"]}, properties(a=TEXT), []),
    ("tighten minLength and minimum", properties(a={**TEXT, "minLength": 2}, b=WHOLE),
     properties(a={**TEXT, "minLength": 3}, b={**WHOLE, "minimum": 1}),
     ["a: minLength tightened", "b: minimum tightened"]),
    ("mark a field", properties(a=TEXT), properties(a={**TEXT, "x-gdpr-sensitive": True}), []),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "lines"), [row[1:] for row in TABLE],
                         ids=[row[0] for row in TABLE])  # fmt: skip
def test_every_row_of_the_table_gives_its_verdict_text_and_exit_code(
    old: Any, new: Any, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert compat(capsys, old, new) == (1 if lines else 0, lines)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (properties(a={"const": 1}), properties(a={"const": 2}), "a: "),
        (properties(a={"type": ["string", "null"]}), properties(a={"type": ["string"]}), "a: "),
        (properties(a={"type": "string"}), properties(a={"type": "string", "pattern": "^x"}),
         "a: "),
        ({"$ref": "#/definitions/x", "definitions": {"x": TEXT}},
         {"$ref": "#/definitions/x", "definitions": {"x": WHOLE}}, ""),
        (properties(a={"oneOf": [TEXT, WHOLE]}), properties(a={"oneOf": [TEXT]}), "a: "),
        (properties(a={"enum": [1, True, None]}), properties(a={"enum": ["1", "true", "<nil>"]}),
         "a: enum value "),
    ],
)  # fmt: skip
def test_a_break_that_the_reference_misses_is_found(
    old: Any, new: Any, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = compat(capsys, old, new)
    assert code == 1
    assert all(one.startswith(line) for one in lines)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (properties(a=WHOLE), properties(a={"type": "number"})),
        (properties(a=TEXT), properties(a={**TEXT, "minLength": 0})),
        (properties(a={"const": 1}), properties(a={"enum": [1, 2]})),
        (properties(a={"type": "boolean"}), properties(a={"enum": [True, False]})),
        ("null", properties()),
    ],
)  # fmt: skip
def test_a_change_that_breaks_nobody_is_compatible(
    old: Any, new: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    if old == "null":
        new = {}
    assert compat(capsys, old, new) == (0, [])


def test_a_schema_that_does_not_compile_is_judged_by_the_reference_rules(
    capsys: pytest.CaptureFixture[str],
) -> None:
    odd = {"type": "strnig"}
    assert compat(capsys, odd, odd) == (0, [])
    assert compat(capsys, odd, {"type": "blob"}) == (1, ['type changed "strnig" → "blob"'])


def test_references_to_other_files_are_followed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("one.json").write_text('{"type": "string"}')
    Path("two.json").write_text('{"type": "integer"}')
    code, lines = compat(capsys, properties(a={"$ref": "one.json"}),
                         properties(a={"$ref": "two.json"}))  # fmt: skip
    assert code == 1
    assert len(lines) == 1


def test_parts_of_different_dialects_are_undecided(capsys: pytest.CaptureFixture[str]) -> None:
    for name, kind in (("old.json", "string"), ("new.json", "integer")):
        dialect = "https://json-schema.org/draft/2020-12/schema"
        part = {"$schema": dialect, "prefixItems": [{"type": kind}]}
        Path(name).write_text(json.dumps({"properties": {"a": part}}), encoding="utf-8")
    code, out, _ = run(capsys, "compat", "old.json", "new.json")
    assert code == 1
    assert out.startswith("undecided: old.json:1: the dialect differs")


def test_a_field_is_removed_with_whatever_named_it(capsys: pytest.CaptureFixture[str]) -> None:
    inner = properties(x=TEXT)
    gone = (1, ["a.x: this field was removed"])
    assert compat(capsys, {"properties": {"a": inner}}, {"properties": {"a": True}}) == gone
    assert compat(capsys, {"allOf": [inner]}, {})[0] == 1
    assert compat(capsys, {"allOf": [inner]}, inner) == (0, [])
