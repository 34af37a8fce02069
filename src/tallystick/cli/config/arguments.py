"""Options whose default is a setting: `--registry`, `--mode`, `--broker`, `--lake`, `--store`.

The default is a `Deferred` value. The settings are looked up after the command line was read, so
that `--help` works beside a wrong `tally.toml`, and commands without these options read no file.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tallystick.cli.config.settings import SETTINGS, find_values, name_sources
from tallystick.core.errors import UsageError

__all__ = ["Deferred", "add_setting", "resolve"]


@dataclass(frozen=True, slots=True)
class Deferred:
    """The default of an option: the value of a setting, to be looked up later."""

    key: str
    option: str
    convert: Callable[[str], Any]
    required: bool

    def __str__(self) -> str:
        return SETTINGS[self.key].default


def add_setting(
    parser: Any, key: str, *, option: str = "", required: bool = False, **how: Any
) -> None:
    """Add the option of a setting; `required` means that a value must come from somewhere."""
    setting = SETTINGS[key]
    flag = option or f"--{key}"
    convert: Callable[[str], Any] = Path if setting.is_path else str
    parser.add_argument(
        flag, type=convert, default=Deferred(key, flag, convert, required),
        **{"help": setting.meaning, **how},
    )  # fmt: skip


def resolve(arguments: argparse.Namespace) -> None:
    """Replace every deferred default by the value of its setting."""
    deferred = {name: one for name, one in vars(arguments).items() if isinstance(one, Deferred)}
    if not deferred:
        return
    values = find_values(os.environ, Path.cwd())
    for name, default in deferred.items():
        text = values[default.key].text
        if default.required and not text:
            raise UsageError(
                f"{default.option} is missing",
                code="setting.missing",
                hint=f"give {default.option}, {name_sources(default.key)}",
            )
        setattr(arguments, name, default.convert(text) if text else None)
