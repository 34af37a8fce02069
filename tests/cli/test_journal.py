"""Laws of `tally journal` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calls import tally


def run_journal(own: str, path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    tally(capsys, "suite", "run", "--cases", own, "--journal", str(path), *more)
    return str(path)


def test_diff_says_what_appeared_and_what_is_gone(
    own: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = run_journal(own, tmp_path / "whole", capsys)
    part = run_journal(own, tmp_path / "part", capsys, "own/**/good")
    assert tally(capsys, "journal", "diff", whole, whole)[:2] == (0, "nothing changed\n")
    code, out, _ = tally(capsys, "journal", "diff", whole, part, "--json")
    changes: dict[str, Any] = json.loads(out)
    assert code == 1
    assert len(changes["gone"]) == 2
    code, out, _ = tally(capsys, "journal", "diff", part, whole)
    assert code == 1, "a failure that was not there before is a new one"
    assert {line.split()[0] for line in out.splitlines()} == {"new", "appeared"}


def test_a_truncated_journal_is_shown_and_exits_1(
    own: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "journal"
    run_journal(own, path, capsys, "own/**/good")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    code, out, _ = tally(capsys, "journal", "show", str(path))
    assert code == 1
    assert "cut short" in out
