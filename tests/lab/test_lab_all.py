"""Laws of `tally lab all`: every step runs, the worst is the exit code, and one page has all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tallystick.cli import lab_all, main
from tallystick.cli.lab_all import STEPS, Done, Step

GOOD = Step("good", "run-tier pairwise --broker vm", 1)
PLAIN = Step("plain", "clock local", 1, journal=False)
BROKEN = Step("broken", "fields 1.0 --broker rabbitmq", 1)


def run(out: Path, *words: str) -> int:
    return main(["lab", "all", "--out", str(out), *words])


def test_a_step_that_breaks_does_not_keep_the_others_from_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lab_all, "STEPS", (BROKEN, GOOD, PLAIN))
    assert run(tmp_path / "deep" / "er") == 2
    told = capsys.readouterr()
    assert [line.split()[:2] for line in told.out.splitlines() if line[0] != " "] == [
        ["BROKEN", "broken"], ["ok", "good"], ["ok", "plain"], ["2", "of"],
    ]  # fmt: skip
    assert "repeat with: tally lab fields 1.0 --broker rabbitmq" in told.out
    assert "18 passed" in told.out
    assert "[2/3] good, about " in told.err
    assert "tier/pairwise/vm" in (tmp_path / "deep/er/report.html").read_text(encoding="utf-8")
    assert (tmp_path / "deep/er/good.xml").is_file()


def test_it_is_0_when_all_is_well_and_json_says_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lab_all, "STEPS", (GOOD, PLAIN))
    assert run(tmp_path, "--only", "g*", "--json") == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    (row,) = told["steps"]
    assert (row["step"], row["exit"], row["figures"]) == ("good", 0, {"passed": 18})
    assert (told["not_run"], told["page"]) == (0, str(tmp_path / "report.html"))


def test_a_finding_is_1_and_what_could_not_be_run_is_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lab_all, "_do", lambda step, _: Done(step, int(step.name[-1]), 1.0))
    steps = {str(code): Step(f"step-{code}", "", 1) for code in range(3)}
    for names, code in (("0", 0), ("01", 1), ("10", 1), ("021", 2)):
        monkeypatch.setattr(lab_all, "STEPS", tuple(steps[name] for name in names))
        assert run(tmp_path) == code
        assert f"{names.count('0')} of {len(names)} steps" in capsys.readouterr().out


def test_a_step_that_leaves_half_a_summary_is_broken_and_the_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(words: Sequence[str]) -> tuple[int, str]:
        return 0, '{"passed": 1' if "cut" in words else '{"passed": 1}'

    monkeypatch.setattr(lab_all, "_call", call)
    monkeypatch.setattr(lab_all, "STEPS", (Step("cut", "cut", 1), Step("whole", "whole", 1)))
    assert run(tmp_path, "--json") == 2
    told = capsys.readouterr()
    assert [row["exit"] for row in json.loads(told.out)["steps"]] == [2, 0]
    assert "cut printed an incomplete summary" in told.err


def test_the_rest_is_judged_by_how_this_machine_compares() -> None:
    ahead = (Step("a", "", 100), Step("b", "", 50))
    assert lab_all._left((), ahead) == "about 2:30"
    assert lab_all._left((Done(Step("c", "", 10), 0, 20.0),), ahead) == "about 5:00"


def test_an_unknown_step_is_usage_and_the_list_has_every_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--only", "nothing") == 2
    assert "tally lab all --list" in capsys.readouterr().err
    assert run(tmp_path, "--list") == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == [one.name for one in STEPS]
    assert len(set(names)) == len(names)


def test_a_folder_that_cannot_be_made_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert run(tmp_path / "file" / "below") == 2
    assert "Not a directory" in capsys.readouterr().err
