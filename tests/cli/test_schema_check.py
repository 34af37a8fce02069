from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from lxml import etree  # type: ignore[import-untyped]

from tallystick.cli import schema
from tallystick.cli.config.arguments import resolve
from tallystick.core.errors import Unavailable
from tests.report.junit_rules import JENKINS, check_junit

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "registry"


def tally_schema(*words: str) -> int:
    parser = argparse.ArgumentParser()
    schema.register(parser)
    args = parser.parse_args(words)
    resolve(args)
    return int(args.run(args))


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """Give a registry with one error and one warning."""
    (tmp_path / "a.json").write_text('{\n  "type": "strnig",\n  "minLenght": 1\n}')
    manifest = {"schemas": [{"urn": "urn:babel:a:one", "schema": "a.json"}]}
    (tmp_path / "registry.json").write_text(json.dumps(manifest))
    return tmp_path


def test_the_example_registry_is_sound(capsys: pytest.CaptureFixture[str]) -> None:
    assert tally_schema("check", "--registry", str(EXAMPLE)) == 0
    assert capsys.readouterr().out == "2 urns, 2 files, 2 examples, 0 errors, 0 warnings.\n"


def test_a_fault_is_printed_with_file_line_pointer_and_rule(
    faulty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tally_schema("check", "--registry", str(faulty / "registry.json")) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        f"{faulty}/a.json:2: error: /type: 'strnig' is not a type: did you mean 'string'? "
        "[schema.meta]"
    )
    assert lines[-1] == "1 urns, 1 files, 0 examples, 1 errors, 1 warnings."


def test_warnings_fail_only_when_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.json").write_text('{"minLenght": 1}')
    (tmp_path / "registry.json").write_text(
        '{"schemas": [{"urn": "urn:babel:a:one", "schema": "a.json"}]}'
    )
    assert tally_schema("check", "--registry", str(tmp_path)) == 0
    assert tally_schema("check", "--registry", str(tmp_path), "--strict") == 1
    assert "minLength" in capsys.readouterr().out


def test_json_says_what_the_text_says(faulty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tally_schema("check", "--registry", str(faulty), "--json") == 1
    out = json.loads(capsys.readouterr().out)
    assert (out["sound"], out["errors"], out["warnings"]) == (False, 1, 1)
    assert out["faults"][0]["pointer"] == "/type"


def test_annotations_name_the_file_from_the_root_of_the_repository(
    faulty: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(faulty.parent))
    monkeypatch.chdir(faulty)
    assert tally_schema("check", "--github") == 1
    out = capsys.readouterr().out
    assert out.startswith(f"::error file={faulty.name}/a.json,line=2,")
    assert f"::warning file={faulty.name}/a.json,line=3," in out


def test_junit_conforms_to_its_schema_and_counts_the_faults(faulty: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.xml"
    assert tally_schema("check", "--registry", str(faulty), "--junit", str(target)) == 1
    document = etree.parse(target)
    check_junit(document.getroot(), (JENKINS,))
    assert document.getroot().get("failures") == "1"


def test_a_registry_that_is_not_there_is_no_finding(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        tally_schema("check", "--registry", str(tmp_path / "none.json"))
