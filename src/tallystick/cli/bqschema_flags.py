"""Read flags as Go's `flag` package does: `-x v`, `--x v`, `-x=v`, none after the first argument.

`-h` prints the flags and succeeds; an unknown flag prints them and fails with 2. All of this goes
to stderr.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from tallystick.cli.bqschema_json import quote

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Flag", "parse_flags"]

_TRUE: Final = ("1", "t", "T", "TRUE", "true", "True")
_FALSE: Final = ("0", "f", "F", "FALSE", "false", "False")


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag; a `default` of False makes it a switch."""

    name: str
    default: str | bool
    usage: str


def parse_flags(
    command: str, flags: Sequence[Flag], words: Sequence[str]
) -> tuple[dict[str, str | bool], list[str]]:
    """Give the flags and the words behind them, or exit as the reference does."""
    table = {flag.name: flag for flag in flags}
    values: dict[str, str | bool] = {flag.name: flag.default for flag in flags}
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        body = word[2:] if word.startswith("--") else word[1:]
        name, given, value = body.partition("=")
        if not name or name.startswith("-"):
            _stop(command, flags, f"bad flag syntax: {word}")
        flag = table.get(name)
        if flag is None:
            if name in ("h", "help"):
                _stop(command, flags, "")
            _stop(command, flags, f"flag provided but not defined: -{name}")
        if isinstance(flag.default, bool):
            if given and value not in _TRUE + _FALSE:
                why = f"invalid boolean value {quote(value)} for -{name}: parse error"
                _stop(command, flags, why)
            values[name] = value in _TRUE if given else True
        elif given:
            values[name] = value
        elif rest:
            values[name] = rest.pop(0)
        else:
            _stop(command, flags, f"flag needs an argument: -{name}")
    return values, rest


def _stop(command: str, flags: Sequence[Flag], fault: str) -> NoReturn:
    """Print the error, if any, and the flags; exit 2, or 0 for a request for help."""
    lines = [fault] if fault else []
    lines.append(f"Usage of {command}:")
    for flag in sorted(flags, key=lambda one: one.name):
        kind = "" if isinstance(flag.default, bool) else " string"
        told = f" (default {quote(flag.default)})" if isinstance(flag.default, str) else ""
        lines.append(f"  -{flag.name}{kind}\n    \t{flag.usage}{told if flag.default else ''}")
    print("\n".join(lines), file=sys.stderr)
    raise SystemExit(2 if fault else 0)
