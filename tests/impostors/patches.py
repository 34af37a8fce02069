"""Make a wrong implementation out of the right one, for a moment.

A function is replaced wherever the package has imported it or put it into a table. `rewrite` takes
the function's own source and changes one piece of it, so an impostor is one line in a table.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable, MutableMapping
from contextlib import ExitStack
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any, Self, cast

__all__ = ["Patches", "find", "rewrite"]

_PACKAGE = "tallystick"


def find(path: str) -> tuple[ModuleType, str]:
    """Give the module and the name of `core.canonical:number_text`."""
    module, _, name = path.partition(":")
    return import_module(f"{_PACKAGE}.{module}"), name


def rewrite(function: FunctionType, old: str, new: str) -> FunctionType:
    """Give the function with one piece of its source changed; the piece must be there once."""
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(old) != 1:
        raise LookupError(f"{function.__name__} holds {old!r} {source.count(old)} times, not once")
    names: dict[str, Any] = {}
    code = compile(
        "from __future__ import annotations\n" + source.replace(old, new), "<impostor>", "exec"
    )
    exec(code, function.__globals__, names)
    return cast("FunctionType", names[function.__name__])


class Patches:
    """Changes to the package that are all undone at the end, last first."""

    def __init__(self) -> None:
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def set(self, holder: Any, name: str, value: Any) -> None:
        """Set an attribute of a module."""
        self._undo.callback(setattr, holder, name, getattr(holder, name))
        setattr(holder, name, value)

    def put(self, table: Any, key: Any, value: Any) -> None:
        """Set an entry of a table."""
        changed = cast("MutableMapping[Any, Any]", table)
        self._undo.callback(changed.__setitem__, key, changed[key])
        changed[key] = value

    def take(self, table: Any, key: Any) -> None:
        """Remove an entry of a table; its place in the order is given back at the end."""
        changed = cast("MutableMapping[Any, Any]", table)
        before = dict(changed)
        self._undo.callback(changed.update, before)
        self._undo.callback(changed.clear)
        del changed[key]

    def constant(self, path: str, value: Any) -> None:
        """Change a constant wherever it was imported under its name, and where a table holds it."""
        module, name = find(path)
        old = getattr(module, name)
        for each in _modules():
            if vars(each).get(name) is old:
                self.set(each, name, value)
        self._in_tables(old, value, shared=isinstance(old, tuple))

    def function(self, path: str, made: Callable[..., Any]) -> None:
        """Change a function wherever it was imported, under any name, and in tables."""
        module, name = find(path)
        old = getattr(module, name)
        for each in _modules():
            for alias in [alias for alias, value in vars(each).items() if value is old]:
                self.set(each, alias, made)
        self._in_tables(old, made, shared=True)

    def _in_tables(self, old: Any, new: Any, *, shared: bool) -> None:
        tables = (value for each in _modules() for value in list(vars(each).values()))
        for table in [table for table in tables if shared and type(table) is dict]:
            for key, value in list(table.items()):
                if value is old:
                    self.put(table, key, new)
                elif type(value) is tuple and any(item is old for item in value):
                    self.put(table, key, tuple(new if item is old else item for item in value))


def _modules() -> list[ModuleType]:
    return [module for name, module in list(sys.modules.items()) if name.startswith(_PACKAGE)]
