"""The package holds what a user runs: code that only tests or benches use is not in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
LOADED_BY_NAME = {
    "tallystick.__main__": "python -m tallystick",
    "tallystick.brokers.*.transport": "runtime/address.py, by the scheme of a URL",
    "tallystick.brokers.reference": "writes docs/reference/bindings.md",
    "tallystick.cli.*": "cli/__init__.py, by the noun of a command",
    "tallystick.events.formats.*": "events/formats/__init__.py, by the name of a format",
    "tallystick.runtime.claims.*": "runtime/claims/__init__.py, by the kind of a store",
}
"""Modules that no import statement names, and what loads each of them."""


def modules() -> dict[str, Path]:
    """Give the modules of the package by name; a package's own file is left out."""
    return {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts): path
        for path in SOURCE.rglob("*.py")
        if path.name != "__init__.py"
    }


def named_in(source: str) -> Iterator[str]:
    """Give what a file imports, and the modules that it names in a text (`python -m MODULE`)."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def unused(files: dict[str, str]) -> list[str]:
    """Give the modules that no other file names, from the text of every file by its name."""
    users: dict[str, set[str]] = {}
    for name, text in files.items():
        for target in named_in(text):
            users.setdefault(target, set()).add(name)
    return [
        name
        for name in files
        if not users.get(name, set()) - {name}
        and not any(fnmatch(name, pattern) for pattern in LOADED_BY_NAME)
    ]


def test_every_module_has_a_user_in_the_package() -> None:
    files = {str(path): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    names = {str(path): name for name, path in modules().items()}
    assert len(names) > 300
    texts = {names.get(path, path): text for path, text in files.items()}
    assert [name for name in unused(texts) if name in names.values()] == []


def test_a_module_that_only_names_itself_is_reported() -> None:
    texts = {
        "tallystick.pipeline.a": "from tallystick.pipeline.b import make",
        "tallystick.pipeline.b": "",
        "tallystick.pipeline.c": 'NAME = "tallystick.pipeline.c"',
        "tallystick.cli.a": 'START = "tallystick.pipeline.a"',
    }
    assert unused(texts) == ["tallystick.pipeline.c"]


def test_every_row_of_the_table_has_a_module() -> None:
    rows = [row for row in LOADED_BY_NAME if not any(fnmatch(name, row) for name in modules())]
    assert rows == []
