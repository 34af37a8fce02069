"""A registry against its own past: a manifest that moved, and versions that are broken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tallystick.cli import main
from tallystick.schemas.moves import Move, find_moves

WIDE, NARROW = {"type": "number"}, {"type": "integer"}


def git(home: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(home), *words], check=True, capture_output=True)


def write(folder: Path, schemas: dict[str, Any], name: str = "registry.json") -> None:
    """Write a registry and commit everything."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"urn": f"urn:babel:{one}:made", "schema": f"{one}.json"} for one in schemas]
    (folder / name).write_text(json.dumps({"schemas": rows}))
    for one, schema in schemas.items():
        (folder / f"{one}.json").write_text(json.dumps(schema))
    commit(folder)


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "version")


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a repository with a registry in `old`, tagged v1."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "a")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@example.com")
    git(tmp_path, "init", "-q", "-b", "main")
    write(tmp_path / "old", {"a": WIDE, "b": WIDE})
    git(tmp_path, "tag", "v1")
    return tmp_path


def compat(
    capsys: pytest.CaptureFixture[str], registry: Path, *words: str
) -> tuple[int, dict[str, tuple[str, str]]]:
    code = main(["schema", "compat", "--registry", str(registry), "--json", *words])
    rows = json.loads(capsys.readouterr().out).get("urns", [])
    return code, {row["urn"].split(":")[2]: (row["state"], row["verdict"]) for row in rows}


@pytest.mark.parametrize("mode", ["strict", "BACKWARD_TRANSITIVE"])
@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("name", ["registry.json", "events.json"])
def test_a_manifest_that_moved_is_compared_with_what_it_was(
    name: str, committed: bool, mode: str, top: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.move(top / "old", top / "new")
    (top / "new" / "a.json").write_text(json.dumps(NARROW))
    (top / "new" / "registry.json").rename(top / "new" / name)
    if committed:
        commit(top)
    code, rows = compat(capsys, top / "new" / name, "--against", "v1", "--mode", mode)
    assert (code, rows) == (1, {"a": ("changed", "breaking")})


def test_a_registry_that_was_split_keeps_its_part_of_the_past(
    top: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(top / "old", {"a": WIDE})
    write(top / "new", {"b": NARROW})
    assert compat(capsys, top / "new", "--against", "v1", "--mode", "strict") == (
        1, {"b": ("changed", "breaking")},
    )  # fmt: skip


def test_registries_that_were_joined_are_compared_with_both(
    top: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(top / "other", {"c": WIDE})
    git(top, "tag", "v2")
    shutil.rmtree(top / "old")
    shutil.rmtree(top / "other")
    write(top / "new", {"a": NARROW, "c": NARROW, "d": WIDE})
    assert compat(capsys, top / "new", "--against", "v2", "--mode", "strict") == (1, {
        "a": ("changed", "breaking"), "b": ("removed", "breaking"),
        "c": ("changed", "breaking"), "d": ("added", "compatible"),
    })  # fmt: skip


@pytest.mark.parametrize("mode", ["strict", "BACKWARD_TRANSITIVE"])
@pytest.mark.parametrize("against", ["v2", "HEAD"])
def test_a_registry_that_took_in_another_is_compared_with_both(
    against: str, mode: str, top: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(top / "other", {"c": WIDE, "d": WIDE, "e": WIDE})
    git(top, "tag", "v2")
    shutil.rmtree(top / "other")
    write(top / "old", {"a": WIDE, "b": WIDE, "c": NARROW, "d": WIDE})
    code, rows = compat(capsys, top / "old", "--against", against, "--mode", mode)
    if against == "HEAD" and mode == "strict":
        assert (code, rows) == (0, {})
    else:
        assert (code, rows) == (1, {"c": ("changed", "breaking"), "e": ("removed", "breaking")})


def test_what_another_registry_dropped_by_itself_is_its_own_affair(
    top: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(top / "other", {"c": WIDE, "d": WIDE})
    git(top, "tag", "v2")
    write(top / "other", {"d": WIDE})
    write(top / "old", {"a": WIDE, "b": WIDE, "z": WIDE})
    code, rows = compat(capsys, top / "old", "--against", "v2")
    assert (code, rows) == (0, {"z": ("added", "compatible")})


def test_a_new_registry_beside_another_is_all_new_and_says_so(
    top: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(top / "new", {"z": WIDE})
    words = ["schema", "compat", "--registry", str(top / "new"), "--against", "v1"]
    assert main(words) == 0
    told = capsys.readouterr()
    assert "added urn:babel:z:made" in told.out
    assert "v1 has no URNs: all are new" in told.err


def test_the_old_manifest_may_be_named_outright(
    top: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(top / "new", {"a": NARROW, "b": WIDE})  # the old one is still there: nothing was lost
    assert compat(capsys, top / "new", "--against", "v1")[0] == 0
    code, rows = compat(capsys, top / "new", "--against", "v1:old/registry.json")
    assert (code, rows) == (1, {"a": ("changed", "breaking")})
    assert compat(capsys, top / "new", "--against", "v1:no.json") == (2, {})


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("a.json", '{\n"type": "strnig"}', "old/a.json:2: the schema is malformed"),
        ("a.json", '{\n"$ref": "http://e.org"}', "old/a.json:2: $ref"),
        ("registry.json", '{"schemas":\n [', "old/registry.json:2: "),
    ],
)
def test_a_broken_old_version_is_named_with_its_commit_and_is_unknown(
    file: str, text: str, reason: str, top: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = (top / "old" / file).read_bytes()
    (top / "old" / file).write_text(text)
    commit(top)
    git(top, "tag", "broken")
    (top / "old" / file).write_bytes(good)
    words = ["schema", "compat", "--registry", str(top / "old"), "--against", "broken"]
    assert main([*words, "--allow-unknown"]) == 0
    assert main(words) == 1
    assert f": broken:{reason}" in capsys.readouterr().out.replace("because", ":")


def test_a_gap_in_the_history_leaves_the_verdict_unknown(
    top: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = (top / "old" / "registry.json").read_bytes()
    (top / "old" / "registry.json").write_text("{")
    commit(top)
    (top / "old" / "registry.json").write_bytes(good)
    commit(top)
    words = ["schema", "compat", "--registry", str(top / "old"), "--against", "HEAD", "--json"]
    assert main([*words, "--mode", "BACKWARD"]) == 0
    capsys.readouterr()
    for more, code in (([], 1), (["--allow-unknown"], 0)):
        assert main([*words, "--mode", "BACKWARD_TRANSITIVE", *more]) == code
        report = json.loads(capsys.readouterr().out)
        assert (report["verdict"], report["urns"], len(report["unread"])) == ("unknown", [], 1)


def test_annotations_name_the_file_behind_a_reference(
    top: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (top / "old" / "a.json").write_text('{"properties": {"id": {"$ref": "x/id.json"}}}')
    (top / "old" / "x").mkdir()
    (top / "old" / "x" / "id.json").write_text('{"title": "id",\n"type": "number"}')
    commit(top)
    (top / "old" / "x" / "id.json").write_text('{"title": "id",\n\n"type": "integer"}')
    main(["schema", "compat", "--registry", str(top / "old"), "--against", "HEAD", "--github"])
    assert f"::error file={top}/old/x/id.json,line=3," in capsys.readouterr().out


class Trees:
    """Two trees held in memory."""

    def __init__(self, before: dict[str, bytes], after: dict[str, bytes]) -> None:
        self.trees = {"1": before, "": after}

    def manifests(self, commit: str) -> list[str]:
        return list(self.trees[commit])

    def find(self, commit: str, path: str) -> bytes | None:
        return self.trees[commit].get(path)


def rows(*urns: str) -> bytes:
    return json.dumps({"schemas": [{"urn": urn, "schema": "s.json"} for urn in urns]}).encode()


@pytest.mark.parametrize(
    ("before", "after", "moves"),
    [
        ({"a/r.json": rows("1", "2")}, {}, {"a/r.json": ("", "12")}),
        ({"a/r.json": rows("1", "2")}, {"a/r.json": rows("1")}, {"a/r.json": ("1", "")}),
        ({"a/r.json": rows("1")}, {"a/r.json": rows("1")}, {}),
        ({"r.json": rows("1"), "a/r.json": rows("2")}, {}, {}),
        ({"r.json": b"{}", "a/r.json": rows("2")}, {}, {"a/r.json": ("", "2")}),
        ({"r.json": b"{", "a/r.json": rows("2")}, {}, {}),
        ({"a/r.json": b"{"}, {}, {"a/r.json": ("", "")}),
        ({"a/other.json": b"{"}, {}, {}),
        ({"a/package.json": b'{"schemas": 1}'}, {}, {}),
        (
            {"r.json": rows("1"), "a/r.json": rows("2", "3")},
            {"r.json": rows("1", "2"), "a/r.json": rows("3")},
            {"a/r.json": ("3", "2")},
        ),
        (
            {"r.json": rows("1"), "a/r.json": rows("2", "3")},
            {"r.json": rows("1", "2")},
            {"a/r.json": ("", "23")},
        ),
        ({"r.json": rows("1"), "a/r.json": rows("2")}, {"r.json": rows("1", "3")}, {}),
        ({"r.json": rows("1"), "a/r.json": rows("1")}, {"r.json": rows("1")}, {}),
    ],
)
def test_a_manifest_came_from_where_urns_were_lost(
    before: dict[str, bytes], after: dict[str, bytes], moves: dict[str, tuple[str, str]]
) -> None:
    found = find_moves(Trees(before, after), "1", "", "r.json")
    assert found == {path: Move(*map(frozenset, move)) for path, move in moves.items()}


def test_a_registry_in_a_folder_with_a_space_is_followed(
    top: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.move(top / "old", top / "my schemas")
    write(top / "my schemas", {"a": NARROW, "b": WIDE})
    code, urns = compat(capsys, top / "my schemas" / "registry.json", "--against", "v1")
    assert (code, urns) == (1, {"a": ("changed", "breaking")})


def test_a_file_whose_name_is_no_text_breaks_no_comparison(
    top: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open(os.fsencode(top) + b"/caf\xe9.json", "w") as other:  # noqa: PTH123 (no text, no Path)
        other.write('{"schemas": []}')
    commit(top)
    git(top, "tag", "v2")
    shutil.move(top / "old", top / "new")
    write(top / "new", {"a": NARROW, "b": WIDE})
    code, urns = compat(capsys, top / "new" / "registry.json", "--against", "v2")
    assert (code, urns) == (1, {"a": ("changed", "breaking")})
