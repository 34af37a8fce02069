"""`tally schema compat --against`: a registry and its own history in git."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tallystick.core.errors import Unavailable, UsageError
from tests.schemas.compat_command import tally


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a repository: three versions of one URN, and a URN that comes and goes."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("AUTHOR", "a"), ("COMMITTER", "a")):
        monkeypatch.setenv(f"GIT_{name}_NAME", value)
        monkeypatch.setenv(f"GIT_{name}_EMAIL", f"{value}@example.com")
    home = tmp_path / "repo" / "registry"
    home.mkdir(parents=True)
    git(home.parent, "init", "-q", "-b", "main")
    common = {"definitions": {"id": {"type": "integer", "minimum": 0}}}
    write(home, {"a": {"properties": {"id": {"$ref": "common.json#/definitions/id"}}}}, common)
    git(home, "tag", "v1")
    write(home, {"a": {"properties": {"id": {"type": "integer"}}}, "b": {"type": "null"}}, common)
    git(home, "tag", "v2")
    write(home, {"a": {"properties": {"id": {"type": "number"}}}, "c": {}}, common)
    return home


def git(home: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(home), *words], check=True, capture_output=True)


def write(home: Path, schemas: dict[str, Any], common: Any) -> None:
    rows = [{"urn": f"urn:{name}", "schema": f"{name}.json"} for name in schemas]
    (home / "registry.json").write_text(json.dumps({"schemas": rows}))
    (home / "common.json").write_text(json.dumps(common))
    for name, schema in schemas.items():
        (home / f"{name}.json").write_text(json.dumps(schema))
    git(home, "add", "-A")
    git(home, "commit", "-q", "-m", "version")


def report_of(
    capsys: pytest.CaptureFixture[str], home: Path, *words: str
) -> tuple[int, dict[str, tuple[str, str]]]:
    code = tally("--registry", str(home), "--json", *words)
    rows = json.loads(capsys.readouterr().out)["urns"]
    return code, {row["urn"]: (row["state"], row["verdict"]) for row in rows}


def test_a_registry_is_compared_with_any_commit(
    history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report_of(capsys, history, "--against", "HEAD") == (0, {})
    assert report_of(capsys, history, "--against", "v2", "--mode", "strict") == (1, {
        "urn:a": ("changed", "compatible"),
        "urn:b": ("removed", "breaking"),
        "urn:c": ("added", "compatible"),
    })  # fmt: skip
    assert report_of(capsys, history, "--against", "v1", "--mode", "FORWARD") == (1, {
        "urn:a": ("changed", "breaking"), "urn:c": ("added", "compatible"),
    })  # fmt: skip
    (history / "a.json").write_text('{"properties": {"id": {"type": "string"}}}')
    code, rows = report_of(capsys, history, "--against", "main", "--mode", "strict")
    assert (code, rows) == (1, {"urn:a": ("changed", "breaking")})


def test_a_transitive_mode_looks_at_every_version(
    history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow = {"properties": {"id": {"type": "number", "minimum": 0}}}
    common = {"definitions": {"id": {"type": "integer", "minimum": 0}}}
    write(history, {"a": narrow}, common)
    write(history, {"a": {**narrow, "title": "an order"}}, common)
    assert report_of(capsys, history, "--against", "HEAD~1", "--mode", "BACKWARD")[0] == 0
    code, rows = report_of(capsys, history, "--against", "HEAD", "--mode", "BACKWARD_TRANSITIVE")
    assert code == 1
    assert rows["urn:a"] == ("changed", "breaking")
    assert rows["urn:c"] == ("removed", "breaking")


def test_a_transitive_mode_looks_between_the_reference_and_head_and_names_the_commit(
    history: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("--registry", str(history), "--against", "v1", "--mode", "BACKWARD_TRANSITIVE")
    second = _commit(history, "v2")
    assert tally(*words[:-1], "BACKWARD") == 0
    capsys.readouterr()
    junit = tmp_path / "junit.xml"
    assert tally(*words, "--junit", str(junit)) == 1
    assert f"removed urn:b: breaking against commit {second}" in capsys.readouterr().out
    assert f"against commit {second}" in junit.read_text()
    assert tally(*words, "--github") == 1
    assert f"against commit {second}" in capsys.readouterr().out


def _commit(home: Path, name: str) -> str:
    words = ["git", "-C", str(home), "rev-parse", "--short=12", name]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def test_a_version_that_cannot_be_read_is_reported(
    history: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    good = (history / "registry.json").read_text()
    (history / "registry.json").write_text('{"schemas": [')
    git(history, "commit", "-qam", "a slip")
    slip = _commit(history, "HEAD")
    (history / "registry.json").write_text(good)
    git(history, "commit", "-qam", "mended")
    words = ("--registry", str(history), "--against", "HEAD", "--mode", "FORWARD_TRANSITIVE")
    assert tally(*words) == 1
    assert f"unread commit {slip}: registry/registry.json:1: " in capsys.readouterr().out
    tally(*words, "--json")
    (unread,) = json.loads(capsys.readouterr().out)["unread"]
    assert unread["commit"].startswith(slip)
    junit = tmp_path / "junit.xml"
    tally(*words, "--github", "--junit", str(junit))
    assert f"title=commit {slip}::cannot be read: " in capsys.readouterr().out
    assert f"commit {slip}" in junit.read_text()


def test_a_shallow_clone_cannot_answer_for_the_whole_history(history: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{history.parent}", str(clone))
    with pytest.raises(Unavailable, match="shallow"):
        tally("--registry", str(clone / "registry"), "--against", "HEAD",
              "--mode", "FULL_TRANSITIVE")  # fmt: skip


@pytest.mark.parametrize("mode", ["FORWARD", "NONE"])
def test_a_removed_urn_breaks_no_reader_of_the_old_schemas(
    mode: str, history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tally("--registry", str(history), "--json", "--against", "v2", "--mode", mode)
    rows = {row["urn"]: row for row in json.loads(capsys.readouterr().out)["urns"]}
    assert rows["urn:b"]["verdict"] == "compatible"
    assert [row["effect"] for row in rows["urn:b"]["changes"]] == ["compatible"]


def test_nothing_is_ever_checked_out(history: Path) -> None:
    before = {path.name: path.read_bytes() for path in history.iterdir()}
    tally("--registry", str(history), "--against", "v1")
    assert {path.name: path.read_bytes() for path in history.iterdir()} == before


def test_the_text_names_state_and_verdict(
    history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tally("--registry", str(history), "--against", "v2") == 1
    lines = capsys.readouterr().out.splitlines()
    assert "removed urn:b: breaking" in lines
    assert lines[-1] == "3 URN(s) differ: 1 breaking, 2 compatible."


@pytest.mark.parametrize("reference", ["no-such-branch", "--help", ""])
def test_a_reference_git_does_not_know_is_refused(history: Path, reference: str) -> None:
    with pytest.raises((Unavailable, UsageError)):
        tally("--registry", str(history), f"--against={reference}")


def test_a_folder_outside_git_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    (tmp_path / "registry.json").write_text("{}")
    with pytest.raises(Unavailable, match="not inside a git repository"):
        tally("--registry", str(tmp_path), "--against", "HEAD")
