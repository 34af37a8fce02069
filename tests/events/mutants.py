"""Readers of events made wrong on purpose: rows of our own, and mutants made from the source.

The quick ways through a JSON event learn from what they read, so they are switched off while a
reader is wrong: every body goes through the full reader, and nothing wrong is learned.
"""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

from tallystick.events.formats import find_format, json_format
from tests.impostors.patches import Patches
from tests.impostors.rows import read_rows, rewriting

__all__ = ["EventMutant", "generated_mutants", "impostors", "wrong_reader"]

ROWS = Path(__file__).parent / "impostors.txt"
ALL = ("json", "protobuf", "xml")
MODULES = {
    "events.event": ALL, "events.values": ALL, "events.timestamp": ALL, "events.extensions": ALL,
    "events.stream": ("json",), "events.formats.json_format": ("json",),
    "events.formats.protobuf_format": ("protobuf",), "events.formats.xml_format": ("xml",),
    "events.formats.xml_tree": ("xml",),
}  # fmt: skip
"""The modules of which mutants are made, and the formats that read with them."""
HARNESS = {"read_base64", "write_base64"}
"""The cases themselves travel in base64: what breaks these breaks every case."""
OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
    ast.GtE: ast.Gt, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class EventMutant:
    """A reader that breaks one rule; `formats` must notice it, no others than `reached` can."""

    name: str
    apply: Callable[[Patches], None]
    formats: tuple[str, ...] = ()
    reached: tuple[str, ...] = ALL


def impostors() -> list[EventMutant]:
    """Give the mutants of the rows."""
    rows = read_rows(ROWS.read_text(encoding="utf-8"))
    return [
        EventMutant(f"{path.rpartition('.')[2]}/{name}", rewriting(path, old, new), formats)
        for formats, path, name, old, new in rows
    ]


@contextmanager
def wrong_reader(mutant: EventMutant) -> Iterator[None]:
    """Put a mutant in place of the reader; the formats are looked up anew before and after."""
    with Patches() as patches:
        for name in ("read_shape", "read_typed", "learn"):
            patches.set(json_format, name, lambda _: None)
        mutant.apply(patches)
        find_format.cache_clear()
        try:
            yield
        finally:
            find_format.cache_clear()


def generated_mutants() -> Iterator[EventMutant]:
    """Change every condition, comparison and branch of the readers' functions, one at a time."""
    for module, reached in MODULES.items():
        functions = {
            name: function
            for name, function in vars(import_module(f"tallystick.{module}")).items()
            if isinstance(function, FunctionType)
            and function.__module__ == f"tallystick.{module}"
            and name not in HARNESS
        }
        for name, function in functions.items():
            for change, apply in _mutants_of(f"{module}:{name}", function):
                yield EventMutant(change, apply, (), reached)


def _mutants_of(
    path: str, function: FunctionType
) -> Iterator[tuple[str, Callable[[Patches], None]]]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except SyntaxError:  # a lambda inside a table
        return
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        return
    for index, node in enumerate(ast.walk(tree)):
        for what, change in _changes(node):
            wrong = copy.deepcopy(tree)
            change(list(ast.walk(wrong))[index])
            name = f"{path}, line {getattr(node, 'lineno', 0)}: {what}"
            yield name, _replacing(path, function, wrong)


def _replacing(path: str, function: FunctionType, tree: ast.Module) -> Callable[[Patches], None]:
    def apply(patches: Patches) -> None:
        names: dict[str, Any] = {}
        source = (
            f"from __future__ import annotations\n{ast.unparse(ast.fix_missing_locations(tree))}"
        )
        exec(compile(source, "<mutant>", "exec"), function.__globals__, names)
        patches.function(path, names[function.__name__])

    return apply


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[[Any], None]]]:
    if isinstance(node, ast.If | ast.IfExp):
        yield "always", lambda each: setattr(each, "test", ast.Constant(True))
        yield "never", lambda each: setattr(each, "test", ast.Constant(False))
    elif isinstance(node, ast.Compare):
        opposite = [OPPOSITES[type(operator)]() for operator in node.ops]
        yield "opposite", lambda each: setattr(each, "ops", opposite)
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and/or", lambda each: setattr(each, "op", other)
        for place in range(len(node.values)):
            yield f"without part {place}", _dropping(place, isinstance(node.op, ast.And))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        yield f"{node.value!r:.20} changed", lambda each: setattr(each, "value", each.value + "x")


def _dropping(place: int, neutral: bool) -> Callable[[Any], None]:
    def change(node: Any) -> None:
        node.values[place] = ast.Constant(neutral)

    return change
