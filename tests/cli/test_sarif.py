"""Laws of `--sarif`: valid SARIF 2.1.0, a rule with help, a place and a fingerprint a finding.

The schema in this file is our own, written from the specification for the part that we write; it is
closed, so that a misspelt property fails. The official schema judges too, where TALLY_OFFICIAL has
a folder `sarif` with it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator  # type: ignore[import-untyped]
from jsonschema.validators import validator_for  # type: ignore[import-untyped]

from tallystick.cli.outputs.sarif import write_sarif
from tallystick.cli.outputs.sarif_rules import FAMILIES, RULES
from tallystick.core.variables import OFFICIAL
from tallystick.schemas.outputs import Mark

from .calls import tally

ROOT = Path(__file__).parents[2]
OFFICIAL_SCHEMA = Path(os.environ.get(OFFICIAL, "none"), "sarif", "sarif-schema-2.1.0.json")


def closed(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """Give the schema of an object that has these properties and no others."""
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
    }


TEXT = {"type": "string", "minLength": 1}
FROM_ONE = {"type": "integer", "minimum": 1}
MESSAGE = closed({"text": TEXT})
LOCATION = closed(
    {
        "physicalLocation": closed(
            {"artifactLocation": closed({"uri": TEXT}, {"uriBaseId": TEXT})},
            {"region": closed({"startLine": FROM_ONE}, {"startColumn": FROM_ONE})},
        )
    }
)
RESULT = closed(
    {
        "ruleId": TEXT,
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": {"enum": ["note", "warning", "error"]},
        "message": MESSAGE,
        "locations": {"type": "array", "items": LOCATION},
        "partialFingerprints": {
            "type": "object", "minProperties": 1, "additionalProperties": TEXT,
        },
    }
)  # fmt: skip
RULE = closed({"id": TEXT, "shortDescription": MESSAGE, "help": MESSAGE})
DRIVER = closed(
    {"name": TEXT, "version": TEXT, "rules": {"type": "array", "items": RULE, "uniqueItems": True}}
)
RUN = closed(
    {
        "tool": closed({"driver": DRIVER}),
        "automationDetails": closed({"id": TEXT}),
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "results": {"type": "array", "items": RESULT},
    }
)
LOG = closed(
    {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "items": RUN},
    }
)


def judge(text: str) -> dict[str, Any]:
    """Give the only run of a log, known to be valid and to name its own rules."""
    log = json.loads(text)
    Draft7Validator(LOG).validate(log)
    if OFFICIAL_SCHEMA.is_file():
        schema = json.loads(OFFICIAL_SCHEMA.read_text())
        validator_for(schema)(schema).validate(log)
    run: dict[str, Any] = log["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [rules[one["ruleIndex"]] for one in run["results"]] == [
        one["ruleId"] for one in run["results"]
    ]
    prints = [json.dumps(one["partialFingerprints"]) for one in run["results"]]
    assert len(set(prints)) == len(prints), "no two results have one fingerprint"
    return run


def places(run: dict[str, Any]) -> set[tuple[str, str, int, int]]:
    """Give rule, file, line and column of every result that has a place."""
    rows = set()
    for result in run["results"]:
        for location in result["locations"]:
            place = location["physicalLocation"]
            region = place.get("region", {})
            rows.add(
                (
                    result["ruleId"],
                    place["artifactLocation"]["uri"],
                    region.get("startLine", 0),
                    region.get("startColumn", 0),
                )
            )
    return rows


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand beside a copy of the example registry."""
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    shutil.copytree(ROOT / "examples" / "registry", tmp_path / "contracts")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "contracts"


def test_check_places_a_fault_at_its_line_and_column(
    registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = registry / "schemas" / "orders-created.json"
    text = schema.read_text().replace('"type": "number"', '"type": "nubmer"')
    schema.write_text(text)
    code, _, _ = tally(capsys, "schema", "check", "--registry", "contracts", "--sarif", "a.sarif")
    assert code == 1
    line = next(row for row in text.splitlines() if "nubmer" in row)
    run = judge(Path("a.sarif").read_text())
    assert places(run) == {
        ("check/schema.meta", "contracts/schemas/orders-created.json",
         text.splitlines().index(line) + 1, line.index('"nubmer"') + 1),
    }  # fmt: skip
    assert run["automationDetails"]["id"] == "tally-schema-check/"


def test_validate_gives_one_result_a_violation_also_inside_a_line(
    registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("schema", "validate", "--registry", "contracts", "--sarif", "a.sarif")
    wrong = registry / "messages" / "order-invalid.json"
    assert tally(capsys, *words, str(wrong.relative_to(Path.cwd())))[0] == 1
    whole = judge(Path("a.sarif").read_text())
    found = places(whole)
    assert len(found) == len(whole["results"]) > 2
    text = wrong.read_text().splitlines()
    row = next(number for number, line in enumerate(text, 1) if '"amount"' in line)
    column = text[row - 1].index('"12"') + 1
    assert ("validate/type", "contracts/messages/order-invalid.json", row, column) in found

    one_line = json.dumps(json.loads(wrong.read_text()))
    Path("stream.jsonl").write_text(f"{one_line}\nnot JSON\n")
    assert tally(capsys, *words, "--jsonl", "stream.jsonl")[0] == 1
    found = places(judge(Path("a.sarif").read_text()))
    assert ("validate/type", "stream.jsonl", 1, one_line.index('"12"') + 1) in found
    assert any(rule == "validate/json" and line == 2 for rule, _, line, _ in found)


def test_compat_and_gdpr_name_their_rules(
    registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schemas = registry / "schemas"
    code, _, _ = tally(
        capsys, "schema", "compat", str(schemas / "orders-created.json"),
        str(schemas / "orders-created.v2-breaking.json"), "--sarif", "a.sarif",
    )  # fmt: skip
    assert code == 1
    rules = {one["ruleId"] for one in judge(Path("a.sarif").read_text())["results"]}
    assert "compat/enum-array-narrowed" in rules
    users = schemas / "users-registered.json"
    users.write_text(users.read_text().replace(', "x-gdpr-sensitive": "email"', ""))
    words = ("schema", "gdpr", "--require", "--registry", "contracts", "--sarif", "b.sarif")
    assert tally(capsys, *words)[0] == 1
    assert {one["ruleId"] for one in judge(Path("b.sarif").read_text())["results"]} == {
        "gdpr/unmarked"
    }


def test_a_sound_registry_gives_no_result_and_trouble_gives_one(
    registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("schema", "gdpr", "--require", "--sarif", "a.sarif", "--registry")
    assert tally(capsys, *words, "contracts")[0] == 0
    assert judge(Path("a.sarif").read_text())["results"] == []
    assert tally(capsys, *words, "none.json")[0] == 2
    (result,) = judge(Path("a.sarif").read_text())["results"]
    assert result["ruleId"].startswith("run/")


def test_a_fingerprint_stays_when_lines_move_and_changes_with_the_place(tmp_path: Path) -> None:
    def prints(mark: Mark) -> Any:
        return judge(write_sarif("tally", [mark]))["results"][0]["partialFingerprints"]

    file = tmp_path / "a.json"
    file.write_text('{"a": 1}')
    mark = Mark("n", "failed", "m", "", str(file), 1, "check/urn.form", "/a")
    before = prints(mark)
    file.write_text('\n\n{"a": 1}')
    moved = Mark("n", "failed", "another text", "", str(file), 3, "check/urn.form", "/a")
    assert prints(moved) == before
    assert prints(Mark("n", "failed", "m", "", str(file), 1, "check/urn.form", "/b")) != before


def test_a_path_is_a_uri_and_standard_input_is_no_place(tmp_path: Path) -> None:
    marks = [
        Mark("n", "failed", "m", "", "a folder/ü.json", 2, "check/urn.form"),
        Mark("n", "failed", "m", "", str(tmp_path / "b.json"), 2, "check/urn.form"),
        Mark("n", "warning", "m", "", "-", 0, "validate/unknown"),
        Mark("n", "passed", rule="check/urn.form"),
    ]
    run = judge(write_sarif("tally", marks))
    assert places(run) == {
        ("check/urn.form", "a%20folder/%C3%BC.json", 2, 0),
        ("check/urn.form", (tmp_path / "b.json").as_uri(), 2, 0),
    }
    assert [one["level"] for one in run["results"]] == ["error", "error", "warning"]


def test_every_rule_of_check_has_a_text_of_its_own() -> None:
    source = "".join(
        path.read_text() for path in (ROOT / "src/tallystick/schemas").glob("check*.py")
    )
    named = {rule.removeprefix("check/") for rule in RULES if rule.startswith("check/")}
    assert {name for name in named if f'"{name}"' not in source} == set(), "no text without a rule"
    assert {rule.partition("/")[0] for rule in RULES} <= set(FAMILIES)


def test_marks_without_a_known_family_do_not_pass() -> None:
    with pytest.raises(KeyError):
        write_sarif("tally", [Mark("n", "failed", "m", rule="nonsense/x")])


def test_compat_against_a_commit_places_a_removed_urn_in_the_manifest(
    registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    manifest = registry / "registry.json"
    rows = json.loads(manifest.read_text())
    gone = rows["schemas"].pop()["urn"]
    manifest.write_text(json.dumps(rows))
    code, _, _ = tally(
        capsys, "schema", "compat", "--registry", "contracts", "--against", "HEAD",
        "--sarif", "a.sarif",
    )  # fmt: skip
    run = judge(Path("a.sarif").read_text())
    assert code == 1
    assert [gone in one["message"]["text"] for one in run["results"]] == [True]
    assert {(file, line) for _, file, line, _ in places(run)} == {("contracts/registry.json", 1)}
