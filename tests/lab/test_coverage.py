"""Every requirement of the interop specification has a test that pytest runs."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.lab.company import ROOT

sys.path.insert(0, str(ROOT / "tools"))
coverage: Any = import_module("iop_coverage")


def test_all_57_requirements_have_a_test_that_is_collected(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert len(coverage.REQUIREMENTS) == 57
    assert coverage.main(["--json"]) == 0, "one has no test, or a test names one never printed"
    table = json.loads(capsys.readouterr().out)
    assert [name for name, tests in table.items() if not tests] == []
    assert len(table) == 57


def test_a_mark_counts_only_where_pytest_runs_it(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    lines = ("def test_a(): '@1'", "def helper(): '@2'", "class TestB:", "  def test_c(self): '@3'")
    (tests / "test_x.py").write_text("\n".join(lines).replace("@", "IOP-"))
    marks = list(coverage.find_marks(tests))
    names = ["tests/test_x.py::test_a", "tests/test_x.py::helper", "tests/test_x.py::TestB::test_c"]
    assert [name for name, _ in marks] == names
    covered = coverage.cover(iter(marks), {names[0], names[2]})
    assert [number for number in covered if covered[number]] == [1, 3]
    assert not coverage.complete(covered)


@pytest.mark.parametrize("number", [32, 61])
def test_a_requirement_that_was_never_printed_is_a_fault(number: int) -> None:
    covered = {one: ["t"] for one in coverage.REQUIREMENTS}
    assert coverage.complete(covered)
    assert not coverage.complete({**covered, number: ["t"]})


def test_the_table_has_a_line_for_each() -> None:
    printed = coverage.show({one: ["t"] for one in coverage.REQUIREMENTS})
    assert "57 of 57 (100 %)" in printed
    assert printed.count("| IOP-") == 57
