"""`tally doctor` tells the truth: what was asked for, what is missing, and the exit code."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tallystick.brokers.servers import NAMES
from tallystick.cli import main
from tallystick.cli.doctor import examine
from tallystick.cli.doctor.areas import AREAS
from tallystick.cli.doctor.look import look_for_program
from tallystick.cli.doctor.things import THINGS
from tallystick.core.errors import Unavailable
from tallystick.core.extras import EXTRAS

ROOT: Final = Path(__file__).parents[2]
_FOUR: Final = ("python", "java", "git", "make")


def _ask(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["doctor", "--json", *words])
    return code, json.loads(capsys.readouterr().out)


def _program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def only_four(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a machine that has what `make prove` needs, and nothing else."""
    _program(tmp_path, "git", "echo git version 2.39.5")
    _program(tmp_path, "make", "echo GNU Make 4.3")
    _program(tmp_path, "java", """echo 'openjdk version "17.0.15"' >&2""")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("CC", raising=False)
    for extra in EXTRAS.values():
        for module in extra.modules:
            monkeypatch.setitem(sys.modules, module, None)
    return tmp_path


def test_a_machine_with_the_four_has_all_that_prove_needs(
    only_four: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor"]) == 0
    shown, said = capsys.readouterr()
    assert "MISSING" not in shown
    assert "absent  go" in shown
    assert "get it: pip install 'tallystick[redis]'" in shown
    absent = re.fullmatch(
        r"(\d+) optional things are missing; nothing that `make prove` needs is missing\n", said
    )
    assert absent
    assert int(absent[1]) == shown.count("absent  ")


@pytest.mark.parametrize("name", ["java", "git", "make"])
def test_each_of_the_four_is_missed(
    name: str, only_four: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (only_four / name).unlink()
    assert main(["doctor"]) == 1
    shown, said = capsys.readouterr()
    assert f"MISSING {name}" in shown
    assert said.endswith(f"missing for `make prove`: {name}\n")


def test_what_was_asked_for_and_is_missing_gives_one(
    only_four: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for area, lacking in (
        ("lab", ["awk", "grep", "[lab]"]),
        ("redis", ["[redis]"]),
        ("pipeline", ["bash", "[pipeline]"]),
        ("go", ["go"]),
        ("qpid", ["mvn"]),
    ):
        code, found = _ask(capsys, area)
        assert (code, found["missing"], found["complete"]) == (1, lacking, False), area
    assert _ask(capsys, "prove")[0] == 0
    assert _ask(capsys, "prove", "go")[0] == 1


def test_a_task_shows_what_it_uses_and_needs_it_not(
    only_four: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = _ask(capsys, "suite")
    rows = {row["name"]: row for row in found["checks"]}
    assert code == 0
    assert rows["cargo"]["missing"] == "not on the PATH"
    assert not rows["cargo"]["needed"]
    assert found["extras"] == {"events": False}


def test_every_extra_is_a_row_and_an_area_and_so_is_every_broker_and_tool(
    only_four: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, found = _ask(capsys)
    assert found["extras"] == dict.fromkeys(EXTRAS, False)
    assert [row["name"] for row in found["checks"]] == list(THINGS)
    assert all(row["used_for"] and row["get"] for row in found["checks"])
    assert {*EXTRAS, *NAMES, "prove", "test", "lab", "pipeline", "schemas", "brokers"} <= set(AREAS)
    for area in AREAS.values():
        assert {*area.needs, *area.uses} <= set(THINGS)


def test_prove_needs_the_four_and_test_needs_everything() -> None:
    assert AREAS["prove"].needs == _FOUR
    assert set(AREAS["test"].needs) == set(THINGS)


def test_every_program_that_a_shipped_script_needs_is_a_row() -> None:
    scripts = [*ROOT.glob("subjects/*/start"), *ROOT.glob("interop/*/client/start")]
    needed = {
        name
        for path in scripts
        for name in re.findall(r"^need (\w+)", path.read_text(), re.MULTILINE)
    }
    assert {"go", "node", "cargo", "mvn"} <= needed <= set(THINGS)


def test_an_area_that_nobody_knows_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "everything-else"]) == 2
    assert "use one of: python, java" in capsys.readouterr().err


def test_a_tool_that_is_old_or_broken_counts_as_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    _program(tmp_path, "old", "echo version 1.2.3")
    _program(tmp_path, "broken", "exit 1")
    assert look_for_program("old", ask="-v", oldest=(1, 2))() == "1.2.3"
    for name, said in (("old", "1.2.3 is older than 1.22"), ("broken", "does not run")):
        with pytest.raises(Unavailable, match=said):
            look_for_program(name, ask="-v", oldest=(1, 22))()


def test_room_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallystick.cli.doctor.look._DISK", 10**18)
    monkeypatch.setattr("tallystick.cli.doctor.look._MEMORY", 10**18)
    for name in ("disk", "memory"):
        assert "are needed" in examine(THINGS[name], needed=True).missing


def test_this_machine_has_all_that_make_test_needs(capsys: pytest.CaptureFixture[str]) -> None:
    _, found = _ask(capsys, "test")
    assert set(found["missing"]) <= {"disk", "memory"}, "room is a matter of the moment"
