"""`bqschema check` and `bqschema validate`: faults of a registry, violations of a message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.reference import TEXT, WHOLE, properties, registry, run

pytestmark = pytest.mark.usefixtures("examples")


@pytest.mark.parametrize(
    ("manifest", "text"),
    [
        ("{", "registry: parse registry.json: unexpected end of JSON input"),
        ("[]", ("registry: parse registry.json: json: cannot unmarshal array into Go value of type "
         "registry.manifest")),
        ('{"schemas": [{"schema": "a.json"}]}', "registry: entry 0 has an empty urn"),
        ('{"schemas": [{"urn": "u"}]}', 'registry: entry "u" has an empty schema path'),
        ('{"schemas": [{"urn": "u", "schema": "a"}, {"urn": "u", "schema": "a"}]}',
         'registry: urn "u" is declared more than once'),
    ],
)  # fmt: skip
def test_a_bad_manifest_is_told_in_the_words_of_the_reference(
    manifest: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    registry(registry=manifest)
    assert run(capsys, "check") == (2, "", f"bqschema: {text}\n")


@pytest.mark.parametrize("manifest", ["{}", '{"schemas": []}', "null", '{"Schemas": null}'])
def test_an_empty_registry_is_in_order(manifest: str, capsys: pytest.CaptureFixture[str]) -> None:
    registry(registry=manifest)
    assert run(capsys, "check") == (0, "0 URN(s) in registry.\n", "")


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (None, 'registry: read schema for "u:a" (a.json): open a.json: no such file or directory'),
        ("{", 'registry: "u:a": schema: parse: unexpected end of JSON input'),
        ("true", ('registry: "u:a": schema: parse: json: cannot unmarshal bool into Go value of '
         "type map[string]interface {}")),
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_read_fails_the_check(
    schema: str | None, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    registry(schema)
    assert run(capsys, "check") == (1, f"  x u:a: {text}\n1 URN(s) in registry.\n", "")
    Path("m.json").write_text('{"job": "u:a"}')
    assert run(capsys, "validate", "m.json") == (2, "", f"bqschema: {text}\n")


MESSAGES: list[tuple[Any, Any, int, list[str]]] = [
    (properties(), {}, 0, []),
    (properties(), None, 1, ["must be an object"]),
    (TEXT, 3, 1, ["must be a string"]),
    (WHOLE, 1.5, 1, ["must be an integer"]),
    (WHOLE, 1.0, 0, []),
    (WHOLE, True, 1, ["must be an integer"]),
    ({"type": "number"}, "x", 1, ["must be a number"]),
    ({"type": "array"}, {}, 1, ["must be an array"]),
    ({"type": "boolean"}, 0, 1, ["must be a boolean"]),
    ({"type": "null"}, 0, 1, ["must be null"]),
    ({"type": ["string", "null"]}, 3, 0, []),
    ({"type": "strnig"}, 3, 0, []),
    ({**properties(), "required": ["b", "b", "a"]}, {}, 1,
     ['missing required property "a"', 'missing required property "b"',
      'missing required property "b"']),
    ({**properties(a=TEXT), "additionalProperties": False}, {"a": "x", 'q"é\a': 1}, 1,
     [r'additional property "q\"é\a" is not allowed']),
    ({**properties(a=True), "additionalProperties": False}, {"a": "x"}, 0, []),
    (properties(l={"type": "array", "items": properties(c=TEXT)}), {"l": [{}, {"c": 1}]}, 1,
     ["l[1].c: must be a string"]),
    ({"enum": []}, 1, 1, ["value is not one of the allowed enum values"]),
    ({"enum": [{"k": [1]}]}, {"k": [1.0]}, 0, []),
    ({"enum": [1]}, True, 1, ["value is not one of the allowed enum values"]),
    ({"const": 1000000, "enum": ["x"], "type": "string"}, 5, 1,
     ["must be a string", "must equal const 1e+06",
      "value is not one of the allowed enum values"]),
    ({"const": {"a": [1, None, True]}}, 1, 1, ["must equal const map[a:[1 <nil> true]]"]),
    ({"const": 9007199254740992}, 9007199254740993, 1, ["must equal const 9.007199254740992e+15"]),
    ({**TEXT, "minLength": 3}, "日本", 1, ["must be at least 3 characters"]),
    ({**TEXT, "minLength": 2.5}, "ab", 0, []),
    ({"type": "number", "minimum": 0.1}, 0, 1, ["must be >= 0.1"]),
    ({"minimum": 5, "required": ["a"]}, 3, 0, []),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "data", "code", "lines"), MESSAGES)
def test_violations_are_worded_and_sorted_as_the_reference_does(
    schema: Any, data: Any, code: int, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    registry(schema, m={"job": "u:a", "data": data})
    head = f"m.json [u:a]: {f'{len(lines)} violation(s)' if lines else 'ok'}"
    expected = "\n".join([head, *(f"  - {line}" for line in lines)]) + "\n"
    assert run(capsys, "validate", "m.json") == (code, expected, "")


def test_a_message_without_a_schema_is_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    registry({}, m={"urn": "u:b", "job": ""}, n={"job": 3}, o="null")
    assert run(capsys, "validate", "m.json", "n.json", "o.json") == (0, (
        "m.json [u:b]: no schema registered — skipped\n"
        "n.json: no job/urn — skipped\n"
        "o.json: no job/urn — skipped\n"
    ), "")  # fmt: skip


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"\xef\xbb\xbf{}", "invalid character 'ï' looking for beginning of value"),
        (b"[]", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (b"", "unexpected end of JSON input"),
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        (b'{"a":[1 2]}', "invalid character '2' after array element"),
        (b"{'a':1}", r"invalid character '\'' looking for beginning of object key string"),
        (b"{}x", "invalid character 'x' after top-level value"),
        (b'{"a":nul}', "invalid character '}' in literal null (expecting 'l')"),
        (b'{"a":01}', "invalid character '1' after object key:value pair"),
        (b'{"a":1.}', "invalid character '}' after decimal point in numeric literal"),
        (b'{"a":1e}', "invalid character '}' in exponent of numeric literal"),
        (b'{"a":-}', "invalid character '}' in numeric literal"),
        (b'{"a":"\n"}', r"invalid character '\n' in string literal"),
        (b'{"a":"\\x"}', "invalid character 'x' in string escape code"),
        (b'{"a":"\\u12g4"}', r"invalid character 'g' in \u hexadecimal character escape"),
        (b'{"a":1e400}', "json: cannot unmarshal number 1e400 into Go value of type float64"),
        (b"[" * 100_000, "exceeded max depth"),
    ],
)  # fmt: skip
def test_a_message_that_is_not_json_stops_the_run(
    text: bytes, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    registry({}, good={"job": "u:a"})
    Path("m.json").write_bytes(text)
    code, out, err = run(capsys, "validate", "good.json", "m.json", "good.json")
    assert (code, out) == (2, "good.json [u:a]: ok\n")
    assert err == f"bqschema: m.json: invalid JSON: {fault}\n"
