"""`tally schema compat`: two files, and what is said of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lxml import etree  # type: ignore[import-untyped]

from tallystick.core.errors import UsageError
from tallystick.schemas.witness import check_witness
from tests.report.junit_rules import JENKINS, check_junit
from tests.schemas.compat_command import tally

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "registry"
OLD = str(EXAMPLE / "schemas" / "orders-created.json")
NEW = str(EXAMPLE / "schemas" / "orders-created.v2-breaking.json")


def test_the_example_breaks_with_a_witness(capsys: pytest.CaptureFixture[str]) -> None:
    assert tally(OLD, NEW) == 1
    out = capsys.readouterr().out
    assert out.startswith("breaking\n")
    assert (
        "x /properties/order_id/type type-changed: the type changed from integer to string" in out
    )
    assert '{"order_id": 1, "amount": 0, "currency": "TRY"}' in out
    assert tally(OLD, OLD) == 0
    assert capsys.readouterr().out == "compatible\n"


def test_json_says_verdict_changes_and_witness(capsys: pytest.CaptureFixture[str]) -> None:
    assert tally(OLD, NEW, "--json", "--mode", "strict") == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["verdict"], report["mode"]) == ("breaking", "strict")
    assert check_witness(
        json.loads(Path(OLD).read_bytes()),
        json.loads(Path(NEW).read_bytes()),
        report["witness"]["data"],
    )


def test_an_unknown_fails_unless_allowed(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text('{"$ref": "#"}')
    new.write_text('{"type": "string"}')
    assert tally(str(old), str(new), "--mode", "strict") == 1
    assert tally(str(old), str(new), "--mode", "strict", "--allow-unknown") == 0


def test_annotations_point_at_the_line_and_junit_conforms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    junit = tmp_path / "junit.xml"
    assert tally(OLD, NEW, "--github", "--junit", str(junit)) == 1
    assert f"::error file={NEW},line=7," in capsys.readouterr().out
    check_junit(etree.parse(junit).getroot(), (JENKINS,))


@pytest.mark.parametrize("words", [(), (OLD,), (OLD, NEW, OLD), (OLD, NEW, "--against", "HEAD")])
def test_wrong_use_is_a_usage_error(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        tally(*words)


def test_the_witness_is_shown_once_however_many_rows_break(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text('{"type": "object"}')
    new.write_text('{"type": "object", "required": ["a", "b"], "minProperties": 9}')
    assert tally(str(old), str(new), "--github") == 1
    said = capsys.readouterr().out
    assert said.count("::error ") > 1
    assert said.count("witness, ") == 1
