"""The repository is whole: nothing in it names a folder beside the clone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("src", "tests", "bench", "docs", "Makefile")
NAME = "sha" + "red"  # so that this file does not name it
BESIDE = re.compile(
    rf"""\.\./{NAME}\b | \b{NAME}/(data|facts)\b | parents?(\[\d+\])?\s*/\s*["']{NAME}["']""",
    re.VERBOSE,
)


def files() -> Iterator[Path]:
    for place in (ROOT / name for name in PLACES):
        for path in [place] if place.is_file() else place.rglob("*"):
            if path.is_file() and path.suffix not in (".pyc", ".png", ".gz"):
                yield path


def test_no_file_names_a_folder_beside_the_repository() -> None:
    paths = list(files())
    assert len(paths) > 500
    named = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in paths
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
        if NAME in line and BESIDE.search(line)
    ]
    assert named == []


@pytest.mark.parametrize(
    "line",
    [
        f'XSD = ROOT.parent / "{NAME}" / "data" / "a.xsd"',
        f"Path(__file__).parents[4] / '{NAME}'",
        f"else from `{NAME}/data/cloudevents-conformance` beside the repository",
        f"see ../{NAME}/DESIGN.md",
    ],
)
def test_a_line_that_does_is_found(line: str) -> None:
    assert BESIDE.search(line)


@pytest.mark.parametrize("line", [f"a {NAME} file system", f"--input /{NAME}/captures"])
def test_the_word_in_another_meaning_is_left_alone(line: str) -> None:
    assert not BESIDE.search(line)
