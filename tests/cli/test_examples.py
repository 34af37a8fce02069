"""`tally examples`: the files of the guides, written where the reader is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tallystick.cli import main

EXAMPLES: Final = Path(__file__).parents[2] / "examples"


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_examples_are_those_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["examples"]) == 0
    assert capsys.readouterr().out == f"wrote {len(files(EXAMPLES))} files to examples\n"
    assert files(tmp_path / "examples") == files(EXAMPLES)
    assert main(["examples", "more", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["folder"], len(told["files"])) == ("more", len(files(EXAMPLES)))


def test_a_second_call_changes_nothing_and_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "examples"
    assert main(["examples", str(folder)]) == 0
    (folder / "note").write_text("mine")
    assert main(["examples", str(folder)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{folder} has all files already"
    changed = next(path for path in sorted(folder.rglob("*.json")))
    changed.write_text("{}")
    assert main(["examples", str(folder)]) == 2
    assert changed.read_text() == "{}"


def test_a_folder_that_exists_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "note").write_text("mine")
    assert main(["examples", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["note"]
