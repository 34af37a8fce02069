"""Print which test shows which requirement of the interop specification, as a Markdown table.

A test names a requirement anywhere in its text: `IOP-29`. Only tests that pytest collects count: a
name in a file that is not collected, or in a function that is no test, shows nothing. Exit 1 when a
requirement has no test, or when a test names one that was never printed. `--json` prints the table
for `tally report build --coverage`.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
REQUIREMENTS = tuple(number for number in range(1, 61) if number not in (32, 33, 40))
"""IOP-32, 33 and 40 were never printed."""
NAMED = re.compile(r"IOP-(\d+)")


def find_marks(folder: Path) -> Iterator[tuple[str, set[int]]]:
    """Give each function that names requirements: `tests/lab/test_x.py::test_y`, or in a class."""
    for file in sorted(folder.rglob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        if NAMED.search(text):
            place = file.relative_to(folder.parent).as_posix()
            yield from _marks(text, ast.parse(text), place)


def _marks(text: str, inside: ast.AST, place: str) -> Iterator[tuple[str, set[int]]]:
    for node in ast.iter_child_nodes(inside):
        if isinstance(node, ast.ClassDef):
            yield from _marks(text, node, f"{place}::{node.name}")
        elif isinstance(node, ast.FunctionDef):
            named = {
                int(number) for number in NAMED.findall(ast.get_source_segment(text, node) or "")
            }
            if named:
                yield f"{place}::{node.name}", named


def collect(files: set[str]) -> set[str]:
    """Ask pytest which tests of these files it would run, without their parameters."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *sorted(files)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"pytest collects nothing: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return {line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line}


def cover(marks: Iterator[tuple[str, set[int]]], collected: set[str]) -> dict[int, list[str]]:
    """Give the tests of each requirement."""
    covered: dict[int, list[str]] = {number: [] for number in REQUIREMENTS}
    for name, named in marks:
        for number in named if name in collected else ():
            covered.setdefault(number, []).append(name)
    return covered


def show(covered: dict[int, list[str]]) -> str:
    """Give the page."""
    shown = sum(bool(covered[number]) for number in REQUIREMENTS)
    lines = [
        "# Requirements of the interop specification and their tests",
        "",
        f"{shown} of {len(REQUIREMENTS)} ({100 * shown // len(REQUIREMENTS)} %) have a test.",
        "IOP-32, 33 and 40 were never printed.",
        "",
        "| requirement | tests |",
        "|---|---|",
    ]
    for number in REQUIREMENTS:
        tests = "<br>".join(f"`{name}`" for name in sorted(covered[number])) or "none"
        lines.append(f"| IOP-{number} | {tests} |")
    return "\n".join(lines) + "\n"


def complete(covered: dict[int, list[str]]) -> bool:
    """Say whether every requirement has a test, and none that does not exist is named."""
    return set(covered) == set(REQUIREMENTS) and all(covered.values())


def main(arguments: list[str]) -> int:
    """Print the page, or the table as JSON."""
    marks = list(find_marks(ROOT / "tests"))
    covered = cover(iter(marks), collect({name.partition("::")[0] for name, _ in marks}))
    if "--json" in arguments:
        print(json.dumps({f"IOP-{number}": sorted(names) for number, names in covered.items()}))
    else:
        print(show(covered), end="")
    return int(not complete(covered))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
