"""Laws of the settings: their order, the search for the files, and errors that name the place."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tallystick.cli.config.settings import SETTINGS, find_values
from tallystick.core.errors import UsageError
from tallystick.core.variables import VARIABLES

from .calls import tally

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a repository with a registry in `contracts` and stand in a folder below its root."""
    for setting in SETTINGS.values():
        monkeypatch.delenv(setting.variable, raising=False)
    home = tmp_path / "project"
    (home / ".git").mkdir(parents=True)
    (home / "src").mkdir()
    shutil.copytree(ROOT / "examples" / "registry", home / "contracts")
    monkeypatch.chdir(home / "src")
    return home


def test_the_order_is_option_variable_tally_toml_pyproject_default(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def shown() -> list[str]:
        code, out, _ = tally(capsys, "config", "--json")
        assert code == 0
        return list(json.loads(out)["mode"].values())

    assert shown() == ["babelqueue", "default"]
    (project / "pyproject.toml").write_text('[tool.tally]\nmode = "FULL"\nbroker = "redis"\n')
    assert shown() == ["FULL", "../pyproject.toml"]
    (project / "tally.toml").write_text('mode = "FORWARD"\n')
    assert shown() == ["FORWARD", "../tally.toml"]
    monkeypatch.setenv("TALLY_MODE", "BACKWARD")
    assert shown() == ["BACKWARD", "TALLY_MODE"]
    schemas = project / "contracts" / "schemas"
    words = ["schema", "compat", str(schemas / "orders-created.json"),
             str(schemas / "orders-created.json"), "--json"]  # fmt: skip
    assert json.loads(tally(capsys, *words)[1])["mode"] == "BACKWARD"
    assert json.loads(tally(capsys, *words, "--mode", "NONE")[1])["mode"] == "NONE"
    _, out, _ = tally(capsys, "config")
    assert "broker    redis" in out, "what tally.toml leaves out still comes from pyproject.toml"


def test_a_path_in_a_file_is_relative_to_that_file(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tally(capsys, "schema", "check")[0] == 2, "no registry.json stands here"
    (project / "tally.toml").write_text('registry = "contracts/registry.json"\n')
    code, out, _ = tally(capsys, "schema", "check")
    assert code == 0
    assert "0 errors" in out
    assert find_values({}, project / "src")["registry"].text == "../contracts/registry.json"


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (("pipeline", "show", "messages"), "lake"),
        (("pipeline", "page"), "lake"),
        (("pipeline", "clean"), "lake"),
        (("pipeline", "run", "--input", "none"), "lake"),
        (("schema", "replay", "c.json", "--urn", "urn:a:b:c"), "lake"),
        (("envelope", "project", "m.json"), "broker"),
        (("outbox", "relay", "--store", "sqlite:///a.db"), "broker"),
        (("outbox", "status"), "store"),
    ],
)
def test_a_setting_that_is_needed_and_nowhere_given_is_one_line_with_the_places(
    project: Path, words: tuple[str, ...], key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = tally(capsys, *words)
    assert (code, out) == (2, "")
    assert " is missing\n" in err
    assert f'set {SETTINGS[key].variable}, or write {key} = "..." in tally.toml' in err


def test_the_lake_of_the_file_is_used_by_the_pipeline(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "tally.toml").write_text('lake = "build/lake"\n')
    code, _, err = tally(capsys, "pipeline", "show", "messages")
    assert code == 2
    assert "../build/lake" in err


@pytest.mark.parametrize(
    ("name", "text", "message", "hint"),
    [
        ("tally.toml", '# a\nregistri = "a"\n', "tally.toml:2: there is no setting 'registri'",
         "did you mean 'registry'?"),
        ("tally.toml", 'colour = "a"\n', "tally.toml:1: there is no setting 'colour'",
         "the settings are registry, mode,"),
        ("tally.toml", "mode = 1\n", "tally.toml:1: mode must be a string with text, found an int",
         'write mode = "babelqueue"'),
        ("tally.toml", 'lake = ""\n', "lake must be a string with text, found an empty string",
         'write lake = "..."'),
        ("tally.toml", "mode = \n", "tally.toml is not valid TOML", "line 1"),
        ("pyproject.toml", '[tool.x]\nmode = 2\n[tool.tally]\nmode = ["FULL"]\n',
         "pyproject.toml:4: mode must be a string with text, found an array", "write mode"),
        ("pyproject.toml", "[tool]\ntally = 1\n", "[tool.tally] must be a table", "write"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_an_error_with_its_line_and_a_suggestion(
    project: Path, name: str, text: str, message: str, hint: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (project / name).write_text(text)
    for words in (["config"], ["schema", "check"]):
        code, out, err = tally(capsys, *words)
        assert (code, out) == (2, "")
        assert message in err
        assert hint in err
    assert tally(capsys, "schema", "check", "--help")[0] == 0, "help never reads the file"


def test_the_search_ends_at_the_root_of_the_repository(project: Path) -> None:
    (project.parent / "tally.toml").write_text('mode = "FULL"\n')
    assert find_values({}, project / "src")["mode"].source == "default"
    shutil.rmtree(project / ".git")
    assert find_values({}, project / "src")["mode"].source == "default", "and without one, here"
    (project / "src" / "tally.toml").write_text('mode = "FULL"\n')
    assert find_values({}, project / "src")["mode"].source == "tally.toml"


def test_a_pyproject_of_others_is_not_our_problem(project: Path) -> None:
    for text in ("[tool.ruff]\nline-length = 1\n", "[broken\n", ""):
        (project / "pyproject.toml").write_text(text)
        assert find_values({}, project)["mode"].source == "default"
    (project / "pyproject.toml").write_text("[tool.tally\n")
    with pytest.raises(UsageError, match="not valid TOML"):
        find_values({}, project)


def test_every_setting_has_a_declared_variable() -> None:
    declared = {variable.name: variable.default for variable in VARIABLES}
    for setting in SETTINGS.values():
        assert declared[setting.variable] == (setting.default or "none")


def test_a_command_without_settings_reads_no_file(project: Path) -> None:
    (project / "src" / "tally.toml").write_text("mode =")
    done = subprocess.run(
        [sys.executable, "-m", "tallystick", "suite", "subjects"],
        capture_output=True, text=True, check=False, env=dict(os.environ),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_the_page_lists_every_setting() -> None:
    page = (ROOT / "docs" / "reference" / "configuration.md").read_text()
    for setting in SETTINGS.values():
        shown = f"`{setting.default}`" if setting.default else "none"
        assert f"| `{setting.key}` | `{setting.variable}` | {shown} | {setting.meaning} |" in page
