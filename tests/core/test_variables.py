"""Laws of the table of variables: nothing is read that it does not declare; the page shows it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallystick.core.variables import VARIABLES

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tallystick"
DECLARED = {variable.name for variable in VARIABLES}
PASSED_ON = {"PATH", "HOME", "LANG", "TZ", "TMPDIR"}
"""What every program has, and a broker is given unchanged."""
NO_VARIABLES = {"BROKEN_PIPE", "NO_CODEGEN"}
"""Strings in modules that read the environment which only look like names of variables."""
NAME = re.compile(r"_?[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")


def names_in(text: str) -> Iterator[str]:
    """Give the names of variables in a module that reads the environment.

    A name that is asked for directly counts in any spelling; of all other strings of the module
    those count that look like the name of a variable.
    """
    tree = ast.parse(text)
    if "os.environ" not in text and "getenv" not in text:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if NAME.fullmatch(node.value):
                yield node.value
        elif isinstance(node, ast.Subscript):
            if "environ" in ast.unparse(node.value) and isinstance(node.slice, ast.Constant):
                yield str(node.slice.value)
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            asks = called.startswith("os.environ.") or called.endswith("getenv")
            if asks and node.args and isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value)


def test_the_source_reads_only_declared_variables() -> None:
    read = {
        (str(path.relative_to(SOURCE)), name)
        for path in SOURCE.rglob("*.py")
        for name in names_in(path.read_text())
    }
    assert {name for _, name in read} > {"JAVA_HOME", "XDG_CACHE_HOME", "NO_COLOR"}
    assert {
        (path, name) for path, name in read if name not in DECLARED | PASSED_ON | NO_VARIABLES
    } == set()


@pytest.mark.parametrize(
    "line", ['os.environ.get("SECRET")', 'os.environ["SECRET"]', 'os.getenv("SECRET")']
)
def test_the_search_finds_every_way_to_read(line: str) -> None:
    assert list(names_in(f"import os\nx = {line}")) == ["SECRET"]


def test_our_variables_have_one_prefix_and_are_all_declared() -> None:
    kept = ["src", "docs", "examples", "subjects", "interop", "tools", ".ci", "ci", "tests"]
    files = [path for name in kept for path in (ROOT / name).rglob("*") if path.is_file()]
    files += [path for path in ROOT.iterdir() if path.is_file()]
    old, names = "TALLY" + "STICK_", set()
    for path in files:
        if path.suffix in {".md", ".py", ".yml", ".yaml", ".toml", ".mjs"} or not path.suffix:
            text = path.read_text("utf-8", "replace")
            assert path.name == "CHANGELOG.md" or old not in text, path
            if not path.is_relative_to(ROOT / "tests"):
                names |= set(re.findall(r"\bTALLY_[A-Z_]+\b", text))
    assert names
    assert names - DECLARED == set()


def test_the_page_shows_the_table() -> None:
    page = (ROOT / "docs" / "reference" / "environment.md").read_text()
    rows = [f"| `{one.name}` | {one.meaning} | {one.default} |" for one in VARIABLES]
    assert [line for line in page.splitlines() if line.startswith("| `")] == rows


def test_a_name_is_declared_once() -> None:
    assert len(DECLARED) == len(VARIABLES)
