"""Impostors as text: one row is one function with one piece of its source changed.

    # a comment
    @ standard/bytes/** standard/make/**           the cases that must notice
    [core.canonical:number_text]                   the function
    minus-zero-kept :: return "0" ==> return "-0"  a name, the piece, what stands there instead

A line break inside a piece is written as the sign for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from tests.impostors.patches import Patches, find, rewrite
from tests.impostors.tables import Mutant

__all__ = ["FILES", "impostors_in", "read_rows", "rewriting", "row_mutants"]

FILES = tuple(sorted((Path(__file__).parent / "rows").glob("*.txt")))
_BREAK = "\u23ce"


def read_rows(text: str) -> Iterator[tuple[tuple[str, ...], str, str, str, str]]:
    """Give (globs, function, name, the piece, what stands instead) of each row."""
    globs: tuple[str, ...] = ()
    path = ""
    for line in text.splitlines():
        if line.startswith("@ "):
            globs = tuple(line[2:].split())
        elif line.startswith("["):
            path = line.strip("[]")
        elif line and not line.startswith("#"):
            name, _, change = line.partition(" :: ")
            old, _, new = change.replace(_BREAK, "\n").partition(" ==>")
            yield globs, path, name, old, new.removeprefix(" ")


def row_mutants() -> Iterator[Mutant]:
    """Give the impostor of each row of each file."""
    for file in FILES:
        for globs, path, name, old, new in read_rows(file.read_text(encoding="utf-8")):
            yield Mutant(f"{file.stem}/{name}", globs, rewriting(path, old, new))


def impostors_in(file: Path) -> dict[str, Callable[[Patches], None]]:
    """Give the impostors of a file of rows without globs, by name: its own test judges them."""
    rows = read_rows(file.read_text(encoding="utf-8"))
    return {name: rewriting(path, old, new) for _, path, name, old, new in rows}


def rewriting(path: str, old: str, new: str) -> Callable[[Patches], None]:
    """Give what puts the impostor of one row in place."""

    def apply(patches: Patches) -> None:
        module, name = find(path)
        patches.function(path, rewrite(getattr(module, name), old, new))

    return apply
