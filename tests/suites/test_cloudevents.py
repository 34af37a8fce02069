"""Where the CloudEvents cases come from, and what asks for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.events.layout import write_layout

from tallystick.core.errors import Unavailable, UsageError
from tallystick.events.official import load_own
from tallystick.suites.cloudevents import (
    CONFORMANCE,
    NAME,
    VARIABLE,
    conformance_in,
    count_official,
    load_cloudevents,
    official_folder,
    official_line,
)
from tallystick.suites.find import find_suites
from tallystick.suites.subjects import for_suite


@pytest.fixture(autouse=True)
def without_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def official(tmp_path: Path) -> Path:
    """Give a folder in the layout of the official cases."""
    return write_layout(tmp_path / "data" / CONFORMANCE)


def test_official_cases_and_our_own_make_one_suite(official: Path) -> None:
    suite = load_cloudevents(official, pytest.fail)
    assert suite.scopes == {
        "json": "official", "protobuf": "official", "xml": "official", "own": "own",
    }  # fmt: skip
    names = [case.name for case in suite.cases]
    assert "cloudevents/json/valid-events/minimal" in names
    assert "cloudevents/own/json/write/minimal" in names
    assert len(set(names)) == len(names)
    assert count_official(suite) == len(suite.cases) - len(load_own()) > 30
    assert official_line(suite) == f"official CloudEvents cases: {count_official(suite)} run"


def test_the_variable_names_the_folder_of_official_files(
    official: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = load_cloudevents(official, pytest.fail)
    for folder in (official.parent, official, official / "format"):
        monkeypatch.setenv(VARIABLE, str(folder))
        assert load_cloudevents(None, pytest.fail) == expected
    (official.parent / "junit-xsd").mkdir()
    monkeypatch.setenv(VARIABLE, str(official.parent))
    assert official_folder("junit-xsd") == official.parent / "junit-xsd"
    assert official_folder("qpid-interop") is None


@pytest.mark.parametrize("name", ["empty", "nowhere"])
def test_a_variable_that_names_no_official_files_is_an_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv(VARIABLE, str(tmp_path / name))
    with pytest.raises(UsageError, match=VARIABLE):
        load_cloudevents(None, pytest.fail)


@pytest.mark.parametrize("value", [None, ""])
def test_without_the_official_cases_our_own_run_and_a_line_says_so(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is not None:
        monkeypatch.setenv(VARIABLE, value)
    said: list[str] = []
    suite = load_cloudevents(None, said.append)
    assert set(suite.scopes) == {"own"}
    assert count_official(suite) == 0
    assert said == ["official CloudEvents cases: not run (see docs/guides/events.md)"]
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "events.md").read_text()
    assert VARIABLE in guide


def test_the_version_names_the_content_of_the_cases(official: Path) -> None:
    before = load_cloudevents(official, pytest.fail)
    assert before.version == load_cloudevents(official, pytest.fail).version
    path = official / "format" / "json" / "valid-events.json"
    path.write_text(path.read_text().replace('"id": "minimal"', '"id": "other"', 1))
    assert load_cloudevents(official, pytest.fail).version != before.version


def test_cases_may_name_a_folder_of_official_files(official: Path, tmp_path: Path) -> None:
    for folder in (official, official / "format", official.parent):
        assert [suite.name for suite in find_suites([], folder, pytest.fail)] == [NAME]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert conformance_in(empty) is None
    with pytest.raises(Unavailable):
        find_suites(["cloudevents/**"], empty, pytest.fail)


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
    assert [suite.name for suite in find_suites(patterns, None, print)] == names


def test_a_command_line_is_proved_with_every_suite_and_a_named_subject_with_its_own() -> None:
    given = ["tallystick-go", "cloudevents-go", "./mine", "tallystick-go"]
    assert for_suite("standard", given) == ["tallystick-go", "./mine"]
    assert for_suite("cloudevents", given) == ["cloudevents-go", "./mine"]
