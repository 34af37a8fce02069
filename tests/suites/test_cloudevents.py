"""Where the CloudEvents cases come from, and what asks for them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tallystick.core.errors import Unavailable
from tallystick.suites.cloudevents import NAME, holds_official, load_cloudevents
from tallystick.suites.find import find_suites
from tallystick.suites.subjects import for_suite

OFFICIAL = Path(__file__).parents[3] / "shared" / "data" / "cloudevents-conformance"


def test_official_cases_and_our_own_make_one_suite() -> None:
    suite = load_cloudevents(OFFICIAL, pytest.fail)
    assert suite.scopes == {
        "json": "official", "protobuf": "official", "xml": "official", "own": "own",
    }  # fmt: skip
    names = [case.name for case in suite.cases]
    assert "cloudevents/json/valid-events/validMinimal" in names
    assert all(name.startswith("cloudevents/") and name.count("/") == 3 for name in names)
    assert len(set(names)) == len(names)


def test_the_folder_beside_the_repository_is_found_without_asking() -> None:
    assert load_cloudevents(None, pytest.fail) == load_cloudevents(OFFICIAL, pytest.fail)


def test_without_the_official_cases_our_own_run_and_a_line_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    suite = load_cloudevents(None, said.append, beside=tmp_path)
    assert set(suite.scopes) == {"own"}
    assert "--cases" in said[0]


def test_the_version_names_the_content_of_the_cases(tmp_path: Path) -> None:
    copy = tmp_path / "json"
    shutil.copytree(OFFICIAL / "format" / "json", copy)
    before = load_cloudevents(tmp_path, pytest.fail)
    assert before.version == load_cloudevents(tmp_path, pytest.fail).version
    path = copy / "valid-events.json"
    path.write_text(path.read_text().replace('"id": "minimal"', '"id": "other"', 1))
    assert load_cloudevents(tmp_path, pytest.fail).version != before.version


def test_cases_may_name_a_folder_of_official_files(tmp_path: Path) -> None:
    assert [suite.name for suite in find_suites([], OFFICIAL, pytest.fail)] == [NAME]
    assert [suite.name for suite in find_suites([], OFFICIAL / "format", pytest.fail)] == [NAME]
    assert not holds_official(tmp_path)
    with pytest.raises(Unavailable):
        find_suites(["cloudevents/**"], tmp_path, pytest.fail)


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        ([], ["standard"]),
        (["cloudevents/**"], ["cloudevents"]),
        (["cloudevents/json/**", "standard/trim"], ["standard", "cloudevents"]),
    ],
)
def test_the_cases_are_read_only_when_a_pattern_can_select_them(
    patterns: list[str], names: list[str]
) -> None:
    assert [suite.name for suite in find_suites(patterns, None, pytest.fail)] == names


def test_a_command_line_is_proved_with_every_suite_and_a_named_subject_with_its_own() -> None:
    given = ["go", "cloudevents-go", "./mine", "go"]
    assert for_suite("standard", given) == ["go", "./mine"]
    assert for_suite("cloudevents", given) == ["cloudevents-go", "./mine"]
