"""A vendored copy is exactly the standard, and drift is found and put right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tallystick import standard
from tallystick.cli import main
from tallystick.core.errors import UsageError
from tallystick.suites.standard_copies import Copy, compare_copy, replace_copy, vendored_folder


def files(folder: Path) -> dict[str, bytes]:
    every = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in every}


WHOLE = {path: standard.read(path) for path in standard.paths()}


@pytest.mark.parametrize(
    ("mark", "place"),
    [
        ("go.mod", "testdata/conformance"),
        ("pom.xml", "src/test/resources/conformance"),
        ("build.gradle", "src/test/resources/conformance"),
        ("build.gradle.kts", "src/test/resources/conformance"),
        ("package.json", "tests/conformance"),
        ("composer.json", "tests/conformance"),
    ],
)
def test_the_place_follows_from_the_kind_of_project(tmp_path: Path, mark: str, place: str) -> None:
    (tmp_path / mark).touch()
    assert main(["standard", "sync", str(tmp_path)]) == 0
    assert files(tmp_path / place) == WHOLE
    assert {path.name for path in tmp_path.iterdir()} == {mark, place.split("/", maxsplit=1)[0]}


def test_a_copy_holds_data_only(tmp_path: Path) -> None:
    replace_copy(tmp_path / "copy")
    assert not [name for name in files(tmp_path / "copy") if name.endswith((".py", ".pyc"))]


def test_a_fresh_copy_is_in_step_and_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    replace_copy(folder)
    inode = folder.stat().st_ino
    assert not replace_copy(folder).drifted
    assert folder.stat().st_ino == inode


def test_every_kind_of_drift_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = vendored_folder(tmp_path)
    replace_copy(folder)
    (folder / "manifest.json").write_text("{}", encoding="utf-8")
    (folder / "bytes/keys.json").unlink()
    (folder / "bytes/more.json").write_text("{}", encoding="utf-8")
    before = files(folder)
    assert main(["standard", "sync", "--check", str(tmp_path)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out == [
        f"missing  {folder}/bytes/keys.json",
        f"extra    {folder}/bytes/more.json",
        f"changed  {folder}/manifest.json",
    ]
    assert files(folder) == before
    assert main(["standard", "sync", str(tmp_path)]) == 0
    assert files(folder) == WHOLE
    assert main(["standard", "sync", "--check", str(tmp_path)]) == 0


def test_one_drifted_copy_of_two_is_a_drift(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    for project in (good, bad):
        project.mkdir()
    assert main(["standard", "sync", str(good)]) == 0
    capsys.readouterr()
    assert main(["standard", "sync", "--check", "--json", str(good), str(bad)]) == 1
    copies = json.loads(capsys.readouterr().out)["copies"]
    assert [copy["drifted"] for copy in copies] == [False, True]
    assert copies[1]["missing"] == standard.paths()


def test_a_folder_with_other_files_is_not_replaced_unless_forced(tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    folder.mkdir()
    (folder / "mine.txt").write_text("precious", encoding="utf-8")
    with pytest.raises(UsageError) as refusal:
        replace_copy(folder)
    assert refusal.value.code == "not_a_copy"
    assert files(folder) == {"mine.txt": b"precious"}
    replace_copy(folder, force=True)
    assert files(folder) == WHOLE


def test_an_older_copy_of_ours_is_replaced_with_its_stale_files(tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    folder.mkdir()
    (folder / "manifest.json").write_text('{"suite":"tallystick"}', encoding="utf-8")
    (folder / "old.json").write_text("{}", encoding="utf-8")
    replace_copy(folder)
    assert files(folder) == WHOLE


def test_a_failed_copy_leaves_the_old_one_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "copy"
    replace_copy(folder)
    (folder / "manifest.json").unlink()
    before = files(folder)

    def fail(path: str) -> bytes:
        raise OSError(28, "no space left", path)

    missing = Copy(folder, ("manifest.json",), (), ())
    monkeypatch.setattr("tallystick.suites.standard_copies.compare_copy", lambda _: missing)
    monkeypatch.setattr("tallystick.suites.standard_copies.standard.read", fail)
    with pytest.raises(OSError, match="no space"):
        replace_copy(folder)
    assert files(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]


def test_a_symlinked_copy_is_followed(tmp_path: Path) -> None:
    real = tmp_path / "real"
    replace_copy(real)
    (real / "manifest.json").unlink()
    link = tmp_path / "link"
    link.symlink_to(real, target_is_directory=True)
    replace_copy(link)
    assert link.is_symlink()
    assert not compare_copy(real).drifted


def test_a_project_that_is_not_there_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["standard", "sync", str(tmp_path / "none")]) == 2
    assert "is not a folder" in capsys.readouterr().err
