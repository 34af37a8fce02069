"""`tally standard check` finds each kind of fault, named with its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tallystick import standard
from tallystick.cli import main
from tallystick.suites.standard import Checked, check_standard

FILES = {path: standard.read(path) for path in standard.paths()}
KEYS = "bytes/keys.json"
Change = Callable[[dict[str, Any]], object]


def check(files: dict[str, bytes]) -> Checked:
    def read(path: str) -> bytes:
        if path not in files:
            raise FileNotFoundError(2, "no such file", path)
        return files[path]

    return check_standard(sorted(files), read)


def faults(path: str, change: Change) -> str:
    document = json.loads(FILES[path])
    change(document)
    checked = check({**FILES, path: json.dumps(document).encode()})
    return "\n".join(f"{one.path} {one.place} {one.fault}" for one in checked.problems)


def test_the_standard_as_it_is_has_none() -> None:
    assert check(FILES).problems == ()


def first(document: dict[str, Any], section: str) -> dict[str, Any]:
    case: dict[str, Any] = document[section]["cases"][0]
    return case


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda m: m.update(schema_version=2), "/schema_version must be 1"),
        (lambda m: m.update(conformance_version="one"), "must have the form 1.2.3"),
        (lambda m: m.update(suite="other"), "/suite must be"),
        (
            lambda m: m["sections"].update(ghost={"scope": "core"}),
            "listed in `sections` but missing",
        ),
        (lambda m: m.update(stray={"cases": []}), "/stray is not listed in `sections`"),
        (lambda m: m["sections"].pop("trim"), "/trim is not listed in `sections`"),
        (lambda m: first(m, "trim").pop("clause"), "names an unknown clause: None"),
        (
            lambda m: first(m, "trim").update(clause="none/such"),
            "names an unknown clause: 'none/such'",
        ),
        (lambda m: m["clauses"].update({"new/rule": "x"}), "/clauses/new/rule has no case"),
        (lambda m: first(m, "trim").update(name="make-trims-tab"), "two cases have the name"),
        (lambda m: first(m, "trim").pop("expect"), "cannot read case"),
        (
            lambda m: m["sqs"]["counts"]["cases"][0].update(expect={}),
            "has a call without expectations",
        ),
        (
            lambda m: m["sqs"]["counts"]["cases"][0].update(expect={"luck": 1}),
            "unknown rule 'luck'",
        ),
        (lambda m: m["cases"][0]["expect"].pop("urn"), "does not expect urn"),
        (lambda m: m["cases"][0].update(file="fixtures/gone.json"), "fixtures/gone.json"),
        (
            lambda m: m["cases"][0].update(producer_schema_valid=False),
            "matches the envelope schema",
        ),
        (lambda m: m["cases"][-1].pop("producer_schema_valid"), "breaks the envelope schema"),
        (lambda m: m["bytes"]["keys"].update(file="bytes/order.json"), "must be bytes/keys.json"),
        (lambda m: m["bytes"]["keys"]["cases"].pop(), "must list the same vectors as"),
        (lambda m: m["bytes"]["keys"]["cases"].reverse(), "must list the same vectors as"),
        (lambda m: m.update(sections=[]), "has no `sections`"),
    ],
)
def test_a_fault_of_the_manifest_is_found(change: Change, fault: str) -> None:
    assert fault in faults("manifest.json", change)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda v: v.pop("input"), "needs either `input`"),
        (lambda v: v.update(input_base64="e30="), "needs either `input`"),
        (lambda v: v.pop("expect"), "needs either `expect`"),
        (lambda v: v.update(rejected={"code": "x"}), "needs either `expect`"),
        (lambda v: v.update(expect="{"), "expects a text that is not a message"),
        (lambda v: (v.pop("expect"), v.update(rejected={})), "not a code with an optional pointer"),
        (lambda v: v.update(note="x"), "unknown members: note"),
        (lambda v: (v.pop("input"), v.update(input_base64="e30")), "not standard padded base64"),
        (lambda v: v.update(name="other"), "must list the same vectors as"),
    ],
)
def test_a_fault_of_a_vector_is_found(change: Change, fault: str) -> None:
    assert fault in faults(KEYS, lambda document: change(document["vectors"][0]))


def test_a_file_that_is_no_json_is_found() -> None:
    checked = check({**FILES, "fixtures/empty-data.json": b'{"job":NaN}'})
    assert any("is not strict JSON" in one.fault for one in checked.problems)


def test_a_file_that_nobody_names_is_found() -> None:
    checked = check({**FILES, "fixtures/alone.json": b"{}"})
    assert any("is not named by any case" in one.fault for one in checked.problems)


def test_a_missing_schema_or_manifest_is_found() -> None:
    for path in ("schema/message-envelope.schema.json", "manifest.json"):
        checked = check({name: text for name, text in FILES.items() if name != path})
        assert any(one.path == path for one in checked.problems)


def test_the_command_prints_the_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["standard", "check"]) == 0
    assert capsys.readouterr().out.endswith(" 0 problems\n")
    assert main(["standard", "check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["problems"] == []
