"""How the tests call `tally`, and a subject that lies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tallystick.cli import main

LIAR = Path(__file__).parents[1] / "suites" / "liar.py"


def liar(mode: str) -> str:
    return f"'{sys.executable}' '{LIAR}' {mode}"


def tally(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    said = capsys.readouterr()
    return code, said.out, said.err
