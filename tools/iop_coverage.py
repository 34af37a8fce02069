"""Print which test shows which requirement of the interop specification, as a Markdown table.

A test names a requirement anywhere in its text: `IOP-29`. Exit 1 when a requirement has no test, or
when a test names one that was never printed.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
REQUIREMENTS = tuple(number for number in range(1, 61) if number not in (32, 33, 40))
"""IOP-32, 33 and 40 were never printed."""
NAMED = re.compile(r"IOP-(\d+)")


def find_tests(folder: Path) -> Iterator[tuple[str, set[int]]]:
    """Give each test with the requirements it names."""
    for file in sorted(folder.rglob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                source = ast.get_source_segment(text, node) or ""
                named = {int(number) for number in NAMED.findall(source)}
                if named:
                    yield f"{file.relative_to(folder.parent)}::{node.name}", named


def cover(folder: Path) -> dict[int, list[str]]:
    """Give the tests of each requirement."""
    covered: dict[int, list[str]] = {number: [] for number in REQUIREMENTS}
    for name, named in find_tests(folder):
        for number in named:
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


def main() -> int:
    """Print the page."""
    covered = cover(ROOT / "tests")
    print(show(covered), end="")
    strange = set(covered) - set(REQUIREMENTS)
    return int(bool(strange) or not all(covered[number] for number in REQUIREMENTS))


if __name__ == "__main__":
    sys.exit(main())
