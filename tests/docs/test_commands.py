"""Every command in a `console` block of the docs is run, and its output compared.

A line that starts with `$ ` is a command; the lines under it are its output, where `...` stands
for anything (doctest's ELLIPSIS). A block starts in a fresh copy of `examples/`.
"""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    return [
        (
            f"{page.relative_to(ROOT)}:{page.read_text()[: match.start()].count(chr(10)) + 1}",
            match[1],
        )
        for page in PAGES
        for match in BLOCK.finditer(page.read_text())
    ]


def commands(block: str) -> list[tuple[str, str]]:
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts]


@pytest.mark.parametrize(("place", "block"), blocks(), ids=[place for place, _ in blocks()])
def test_the_docs_show_what_the_commands_print(place: str, block: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copytree(ROOT / "subjects", tmp_path / "subjects")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for command, shown in commands(block):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env={**environment, "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        expected, found = (text.rstrip("\n") + "\n" for text in (shown, done.stdout + done.stderr))
        same = doctest.OutputChecker().check_output(expected, found, doctest.ELLIPSIS)
        assert same, f"{place}: $ {command}\nexpected:\n{expected}\nfound:\n{found}"


def test_there_are_commands_to_run() -> None:
    assert any(place.startswith("README.md") for place, _ in blocks())
