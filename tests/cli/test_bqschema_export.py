"""`bqschema export-asyncapi` and `bqschema gdpr`: nothing is bent, nothing marked leaks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.reference import TEXT, WHOLE, properties, registry, run

pytestmark = pytest.mark.usefixtures("examples")


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
    assert err.startswith("bqschema: 'a_b' and 'a:b' would get the same message name 'a_b'")


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
