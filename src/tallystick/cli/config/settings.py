"""The settings that a project can give once: registry, mode, broker, lake and store.

A value comes from the first of: the option on the command line, the `TALLY_` variable,
`tally.toml`, `[tool.tally]` of `pyproject.toml`, the built-in default. The files are searched from
the working directory upwards to the root of the git repository; outside a repository only the
working directory is searched. A path in a file is relative to the folder of that file.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tallystick.core import variables
from tallystick.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["SETTINGS", "Setting", "Value", "find_values", "name_sources"]

_OWN: Final = "tally.toml"
_SHARED: Final = "pyproject.toml"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its key in a file, its variable, its default, and whether it names a path."""

    key: str
    meaning: str
    variable: str
    default: str = ""
    is_path: bool = False


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a setting and the place that it comes from."""

    setting: Setting
    text: str
    source: str


SETTINGS: Final = {
    setting.key: setting
    for setting in (
        Setting("registry", "the schema registry: a manifest, or the folder with it",
                variables.REGISTRY, "registry.json", is_path=True),
        Setting("mode", "the mode of `tally schema compat`", variables.MODE, "babelqueue"),
        Setting("broker", "the broker of `outbox relay` and `envelope`: a name or a URL",
                variables.BROKER),
        Setting("lake", "the folder with the tables of `tally pipeline`", variables.LAKE,
                is_path=True),
        Setting("store", "the store of `tally outbox`: a URL", variables.STORE),
    )
}  # fmt: skip
"""Key -> setting."""


def find_values(environment: Mapping[str, str], folder: Path) -> dict[str, Value]:
    """Give the value of every setting, seen from this folder; a wrong file raises."""
    files = [*_read_files(folder)]
    return {
        key: _find_value(setting, environment, files, folder) for key, setting in SETTINGS.items()
    }


def name_sources(key: str) -> str:
    """Say where a value can be given, for a hint."""
    setting = SETTINGS[key]
    return f'set {setting.variable}, or write {key} = "..." in {_OWN}'


def _find_value(
    setting: Setting,
    environment: Mapping[str, str],
    files: list[tuple[Path, dict[str, str]]],
    folder: Path,
) -> Value:
    if text := environment.get(setting.variable):
        return Value(setting, text, setting.variable)
    for path, table in files:
        if setting.key in table:
            text = table[setting.key]
            if setting.is_path:
                text = os.path.relpath(path.parent / text, folder)
            return Value(setting, text, os.path.relpath(path, folder))
    return Value(setting, setting.default, "default")


def _read_files(folder: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """Give the nearest file of each name that has settings, `tally.toml` first."""
    for name in (_OWN, _SHARED):
        for parent in _search_path(folder.resolve()):
            path = parent / name
            if path.is_file() and (table := _read(path)) is not None:
                yield path, table
                break


def _search_path(folder: Path) -> Iterator[Path]:
    """Give the folder and its parents up to the root of the repository, if there is one."""
    parents = (folder, *folder.parents)
    root = next((one for one in parents if (one / ".git").exists()), folder)
    for parent in parents:
        yield parent
        if parent == root:
            return


def _read(path: Path) -> dict[str, str] | None:
    """Read the settings of one file; None when a `pyproject.toml` has no `[tool.tally]`."""
    import tomllib  # noqa: PLC0415 (only where there is a file)

    try:
        text = path.read_text(encoding="utf-8")
        document: dict[str, Any] = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        if path.name == _SHARED and "tally" not in path.read_text("utf-8", "replace"):
            return None  # another tool's problem: it has no settings for us
        raise UsageError(
            f"{path.name} is not valid TOML: {error}", code="config.toml", hint=f"correct {path}"
        ) from error
    table: Any = document
    if path.name == _SHARED:
        tools = document.get("tool")
        table = tools.get("tally") if isinstance(tools, dict) else None
        if table is None:
            return None
        if not isinstance(table, dict):
            message = "[tool.tally] must be a table"
            raise _wrong(path, text, "tally", message, "write [tool.tally]")
    return _check_table(path, text, table)


def _check_table(path: Path, text: str, table: dict[str, Any]) -> dict[str, str]:
    for key, value in table.items():
        if key not in SETTINGS:
            raise _wrong(path, text, key, f"there is no setting {key!r}", _suggest(key))
        if not isinstance(value, str) or not value:
            kind = "an empty string" if value == "" else _TOML_NAMES.get(type(value), "a table")
            raise _wrong(
                path, text, key, f"{key} must be a string with text, found {kind}",
                f'write {key} = "{SETTINGS[key].default or "..."}"',
            )  # fmt: skip
    return table


_TOML_NAMES: Final = {
    bool: "a boolean", int: "an integer", float: "a number", list: "an array", str: "a string",
}  # fmt: skip


def _suggest(key: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 (only a mistake needs it)

    near = get_close_matches(key, SETTINGS, 1)
    return f"did you mean {near[0]!r}?" if near else f"the settings are {', '.join(SETTINGS)}"


def _wrong(path: Path, text: str, key: str, message: str, hint: str) -> UsageError:
    place = f"{path.name}:{_line_of(text, key, shared=path.name == _SHARED)}"
    return UsageError(f"{place}: {message}", code="config.setting", hint=hint)


def _line_of(text: str, key: str, *, shared: bool) -> int:
    """Find the line of a key, in its table; line 1 when it is written in an unusual way."""
    start = 0
    if shared and (table := re.search(r"^\s*\[tool\.tally\]", text, re.MULTILINE)):
        start = table.end()
    name = re.escape(key)
    match = re.compile(rf"^[\s\[\"']*{name}\b", re.MULTILINE).search(text, start)
    return text.count("\n", 0, match.end()) + 1 if match else 1
