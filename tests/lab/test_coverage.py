"""Every requirement of the interop specification has a test, and the table says which."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from tests.lab.company import ROOT

sys.path.insert(0, str(ROOT / "tools"))
coverage: Any = import_module("iop_coverage")


def test_all_57_requirements_have_a_test() -> None:
    covered = coverage.cover(ROOT / "tests")
    assert len(coverage.REQUIREMENTS) == 57
    assert [number for number in coverage.REQUIREMENTS if not covered[number]] == []
    assert set(covered) == set(coverage.REQUIREMENTS), "a test names one that was never printed"


def test_the_table_is_up_to_date() -> None:
    page = ROOT / "docs" / "reference" / "lab-coverage.md"
    assert coverage.main(["--check", str(page)]) == 0, "python tools/iop_coverage.py > that page"
