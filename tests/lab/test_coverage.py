"""Every requirement of the interop specification has a test, and the table says which."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import pytest

from tests.lab.company import ROOT

sys.path.insert(0, str(ROOT / "tools"))
coverage: Any = import_module("iop_coverage")


def test_all_57_requirements_have_a_test() -> None:
    covered = coverage.cover(ROOT / "tests")
    assert len(coverage.REQUIREMENTS) == 57
    assert [number for number in coverage.REQUIREMENTS if not covered[number]] == []
    assert set(covered) == set(coverage.REQUIREMENTS), "a test names one that was never printed"


def test_the_table_has_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert coverage.main() == 0
    printed = capsys.readouterr().out
    assert "57 of 57 (100 %)" in printed
    assert printed.count("| IOP-") == 57
