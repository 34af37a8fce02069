from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tallystick.cli.bqschema import main

ROOT = Path(__file__).parents[2]
SCRIPT = Path(sys.executable).parent / "bqschema"
COMPATIBLE = "backward-compatible: no breaking changes.\n"


@pytest.fixture(autouse=True)
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lay the example registry out as the README of the reference names it."""
    shutil.copytree(ROOT / "examples" / "registry", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(words)
    said = capsys.readouterr()
    return code, said.out, said.err


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


def registry(schema: Any = None, urn: str = "u:a", **files: Any) -> None:
    """Write a registry of one URN, and other files beside it."""
    manifest = {"schemas": [{"urn": urn, "schema": "a.json", "colour": "ignored"}]}
    for name, content in {"registry": manifest, "a": schema, **files}.items():
        if content is not None:
            text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
            Path(f"{name}.json").write_text(text, encoding="utf-8")


def properties(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members}


TEXT = {"type": "string"}
WHOLE = {"type": "integer"}

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


def words_of(text: str) -> list[str]:
    return text.removeprefix("bqschema ").split()


README: list[tuple[str, int, str]] = [
    ("bqschema validate --registry examples/registry.json examples/messages/order-created.json", 0,
     "examples/messages/order-created.json [urn:babel:orders:created]: ok\n"),
    (("bqschema compat examples/schemas/orders-created.json "
     "examples/schemas/orders-created.v2-breaking.json"), 1,
     ("4 breaking change(s) — mint a new URN instead (versioning-policy §3):\n"
     "  - currency: enum value USD removed\n"
     "  - note: property removed\n"
     '  - order_id: type changed "integer" → "string"\n'
     '  - property "customer_id" is now required\n')),
    ("bqschema compat examples/schemas/orders-created.json examples/schemas/orders-created.json",
     0, COMPATIBLE),
    ("bqschema check --registry examples/registry.json", 0,
     "  ok urn:babel:orders:created\n  ok urn:babel:users:registered\n2 URN(s) in registry.\n"),
    ("bqschema gdpr --registry examples/registry.json", 0,
     ("  urn:babel:orders:created: no sensitive fields\n"
     "  urn:babel:users:registered: 5 sensitive field(s)\n"
     "    - addresses[].line\n    - email (email)\n    - phone\n    - profile.full_name\n"
     "    - profile.tckn (national_id)\n2 URN(s), 5 sensitive field(s).\n")),
    ("bqschema gdpr --registry examples/registry.json --require", 0,
     "ok: every PII-named field across 2 URN(s) is marked x-gdpr-sensitive.\n"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "code", "text"), README)
def test_every_command_of_the_readme_says_what_is_documented(
    command: str, code: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, *words_of(command)) == (code, text, "")
    single = [re.sub("^--", "-", word) for word in words_of(command)]
    assert run(capsys, *single) == (code, text, "")


def test_the_readme_masks_its_message(capsys: pytest.CaptureFixture[str]) -> None:
    command = ("gdpr --registry examples/registry.json --mask "
               "examples/messages/user-registered.json")  # fmt: skip
    code, out, err = run(capsys, *words_of(command))
    assert (code, err) == (0, "")
    data = json.loads(out)["data"]
    assert data["email"] == "a***"
    assert data["profile"] == {"full_name": "A***", "tckn": "1***"}
    assert data["addresses"] == [{"city": "Ankara", "line": "1***"}]
    assert list(json.loads(out)) == sorted(json.loads(out))
    assert out.startswith('{\n  "attempts": 0,\n')


def test_the_readme_exports_its_catalog(capsys: pytest.CaptureFixture[str]) -> None:
    command = "export-asyncapi --registry examples/registry.json -o asyncapi.json"
    assert run(capsys, *words_of(command)) == (0, "", "wrote asyncapi.json (2 URN(s))\n")
    document = json.loads(Path("asyncapi.json").read_text())
    assert document["asyncapi"] == "3.0.0"
    assert document["info"] == {"title": "BabelQueue Event Catalog", "version": "1.0.0"}
    name = "urn_babel_users_registered"
    assert document["channels"]["urn:babel:users:registered"] == {
        "address": "urn:babel:users:registered",
        "messages": {name: {"$ref": f"#/components/messages/{name}"}},
    }
    verbatim = json.loads(Path("examples/schemas/users-registered.json").read_text())
    message = {"name": "urn:babel:users:registered", "payload": verbatim}
    assert document["components"]["messages"][name] == message


def test_the_readme_serves_the_registry() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(SCRIPT), "serve", "--registry", "examples/registry.json", "--addr", f":{port}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            assert server.stderr.readline() == (
                f"bqschema serve: Confluent-compatible REST on :{port} "
                "(2 subject(s), compatibility=BACKWARD)\n"
            )
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/subjects", timeout=20) as answer:
                assert json.load(answer) == ["urn:babel:orders:created",
                                             "urn:babel:users:registered"]  # fmt: skip
            taken = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
            assert taken.returncode == 2
            assert taken.stderr == (
                f"bqschema: serve: listen tcp :{port}: bind: address already in use\n"
            )
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=20)


def test_the_console_script_is_installed() -> None:
    done = subprocess.run([SCRIPT, "help"], capture_output=True, text=True, check=True, timeout=60)
    head, *_, last = done.stdout.splitlines()
    assert head == "bqschema — file-based per-URN schema governance for BabelQueue"
    assert last == 'Schemas are draft-07 JSON Schema (subset) for the envelope\'s "data" block.'
    order = [done.stdout.index(f"bqschema {name}") for name in
             ("validate", "compat", "check", "export-asyncapi", "serve", "gdpr")]  # fmt: skip
    assert order == sorted(order)


@pytest.mark.parametrize(
    ("words", "code", "begins"),
    [
        ([], 2, "bqschema — file-based"),
        (["frob"], 2, 'bqschema: unknown command "frob"\n\nbqschema — file-based'),
        (["check", "-nope"], 2, "flag provided but not defined: -nope\nUsage of check:\n"),
        (["check", "-h"], 0, "Usage of check:\n  -registry string\n    \tpath"),
        (["check", "--registry"], 2, "flag needs an argument: -registry\nUsage of check:\n"),
        (["gdpr", "-require=maybe"], 2,
         'invalid boolean value "maybe" for -require: parse error\nUsage of gdpr:\n'),
        (["check", "-=x"], 2, "bad flag syntax: -=x\n"),
        (["validate"], 2, "bqschema: validate: pass one or more envelope JSON files\n"),
        (["compat", "a"], 2, "bqschema: compat: need exactly two schema files: <old> <new>\n"),
        (["compat", "x", "y"], 2, "bqschema: read x: open x: no such file or directory\n"),
        (["check"], 2,
         "bqschema: registry: read registry.json: open registry.json: no such file or directory\n"),
        (["validate", "-registry", "examples/registry.json", "none.json"], 2,
         "bqschema: read none.json: open none.json: no such file or directory\n"),
        (["gdpr", "-registry=examples/registry.json", "-require", "-pattern", "(?=a)"], 2,
         "bqschema: gdpr: invalid PII name pattern: error parsing regexp: "),
        (["gdpr", "-registry=examples/registry.json", "-require", "-pattern", "(a"], 2,
         "bqschema: gdpr: invalid PII name pattern: error parsing regexp: missing closing ): `(a`"),
        (["export-asyncapi", "-registry=examples/registry.json", "-o", "no/where"], 2,
         "bqschema: write no/where: open no/where: no such file or directory\n"),
        (["serve", "-registry=examples/registry.json", "-compatibility", "banana"], 2,
         "bqschema: 'banana' is no compatibility level"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_goes_to_stderr_with_the_right_code(
    words: list[str], code: int, begins: str, capsys: pytest.CaptureFixture[str]
) -> None:
    got, out, err = run(capsys, *words)
    assert (got, out) == (code, "")
    assert err.startswith(begins)


def test_a_flag_behind_the_first_word_is_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "compat", "a", "b", "--registry")
    assert (code, err) == (
        2, "bqschema: compat: need exactly two schema files: <old> <new>\n",
    )  # fmt: skip


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


def test_export_escapes_sorts_and_keeps_big_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    registry({"z": "<a&b>", "description": "é\u2028", "maximum": 9007199254740993, "minimum": 1e21})
    code, out, _ = run(capsys, "export-asyncapi", "-title", "<T>", "-doc-version=2")
    assert code == 0
    assert '"title": "\\u003cT\\u003e"' in out
    assert '"z": "\\u003ca\\u0026b\\u003e"' in out
    assert '"description": "é\\u2028"' in out
    assert '"maximum": 9007199254740993' in out
    assert '"minimum": 1e+21' in out
    assert out.endswith("}\n")


def test_an_exported_reference_leads_somewhere(capsys: pytest.CaptureFixture[str]) -> None:
    registry({"items": {"$ref": "#/definitions/A"}, "definitions": {"A": TEXT}})
    code, out, _ = run(capsys, "export-asyncapi")
    payload = json.loads(out)["components"]["messages"]["u_a"]["payload"]
    assert code == 0
    assert payload["items"] == {"$ref": "#/components/messages/u_a/payload/definitions/A"}


def test_urns_that_share_a_key_are_refused_on_export(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"urn": "a:b", "schema": "a.json"}, {"urn": "a_b", "schema": "a.json"}]
    registry({}, registry={"schemas": rows})
    code, out, err = run(capsys, "export-asyncapi")
    assert (code, out) == (2, "")
    assert err.startswith("bqschema: 'a_b' and 'a:b' would both be the message 'a_b'")


def test_the_name_pattern_of_the_reference_decides(capsys: pytest.CaptureFixture[str]) -> None:
    schema = properties(
        email=TEXT, phone={**TEXT, "x-gdpr-sensitive": True}, address=properties(birth=TEXT),
        iban={"$ref": "#/definitions/i"}, phones={"type": "array", "items": TEXT},
        mailbox_count=WHOLE,
    ) | {"definitions": {"i": {**TEXT, "x-gdpr-sensitive": "iban"}}}  # fmt: skip
    registry(schema)
    assert run(capsys, "gdpr", "-require") == (1, (
        '3 un-annotated PII field(s) — add "x-gdpr-sensitive": true '
        "(or mint the URN deliberately):\n"
        "  x u:a: address.birth\n  x u:a: email\n  x u:a: mailbox_count\n"
    ), "")  # fmt: skip
    code, out, _ = run(capsys, "gdpr", "-require", "-pattern", "^mailbox")
    assert (code, out.splitlines()[1:]) == (1, ["  x u:a: mailbox_count"])


@pytest.mark.parametrize(
    ("value", "shown"),
    [("alice", "a***"), ("al", "a***"), ("x", "***"), ("", "***"), (None, "***"), (7, "***"),
     ({"b": 1}, "***"), ([1], "***"), ("日本", "日***")],
)  # fmt: skip
def test_a_marked_value_is_masked(
    value: Any, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    registry(properties(s={"x-gdpr-sensitive": True}), m={"s": value, "n": 9007199254740993})
    code, out, _ = run(capsys, "gdpr", "-mask", "m.json", "-urn", "u:a")
    assert code == 0
    assert out == f'{{\n  "n": 9007199254740993,\n  "s": "{shown}"\n}}\n'


def test_a_mark_behind_a_reference_or_under_the_wrong_shape_does_not_leak(
    capsys: pytest.CaptureFixture[str],
) -> None:
    person = properties(line={**TEXT, "x-gdpr-sensitive": True})
    schema = properties(a={"$ref": "#/definitions/p"}, b={"type": "array", "items": person},
                        c={"oneOf": [person]}) | {"definitions": {"p": person}}  # fmt: skip
    data = {"a": {"line": "secret"}, "b": "secret", "c": {"line": "secret"}, "other": "kept"}
    registry(schema, m={"job": "u:a", "data": data, "note": "kept"})
    code, out, _ = run(capsys, "gdpr", "-mask", "m.json", "-urn", "something:else")
    assert code == 0
    assert "secret" not in out
    assert json.loads(out)["data"]["other"] == json.loads(out)["note"] == "kept"


def test_masking_needs_a_urn_that_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    registry({}, m={"a": 1})
    missing = "no URN — pass --urn, or use an envelope with a job/urn field"
    said = run(capsys, "gdpr", "-mask", "m.json")
    assert said == (2, "", f"bqschema: gdpr --mask: {missing}\n")
    said = run(capsys, "gdpr", "-mask", "m.json", "-urn", "nope")
    assert said == (1, "", 'bqschema: gdpr --mask: no schema registered for "nope"\n')
