"""The whole command line as one parser, with the words and files that each argument takes.

`tally` imports a noun's module when its noun is used; here all of them are imported. These parsers
are only read by `shtab`; no command line is parsed with them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Final

import shtab

from tallystick.brokers import BROKERS
from tallystick.brokers.servers import NAMES
from tallystick.cli import NOUNS
from tallystick.cli.bqschema import COMMANDS
from tallystick.cli.doctor.areas import AREAS
from tallystick.cli.lab_run import BROKERS as LAB_BROKERS
from tallystick.schemas.modes import MODES
from tallystick.suites.faults.table import SUBJECTS
from tallystick.suites.subjects import NAMES as IMPLEMENTATIONS

__all__ = ["PARSERS"]

_FOLDERS: Final = {"DIR", "FOLDER", "LAKE"}
_FILES: Final = {"FILE", "PATH", "JOURNAL", "OLD NEW", "CANDIDATE", "file"}
_WORDS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("broker", "names"): tuple(NAMES),
    ("doctor", "areas"): tuple(AREAS),
    ("capture", "url"): tuple(NAMES),
    ("redrive", "url"): tuple(NAMES),
    ("replay", "to"): tuple(NAMES),
    ("outbox", "broker"): tuple(NAMES),
    ("envelope", "broker"): tuple(BROKERS),
    ("faults", "broker"): (*SUBJECTS, "all"),
    ("lab", "broker"): LAB_BROKERS,
    ("schema", "mode"): tuple(MODES),
    ("suite", "subjects"): IMPLEMENTATIONS,
    ("prove", "subjects"): IMPLEMENTATIONS,
}
"""Noun and destination of an argument -> the words that it takes, where argparse has no choices."""


def tally_parser() -> argparse.ArgumentParser:
    """Build the parser of `tally` with every noun."""
    parser = argparse.ArgumentParser(prog="tally")
    parser.add_argument("--version", "-V", action="store_true", help="print the version")
    nouns = parser.add_subparsers(metavar="NOUN")
    for noun, text in NOUNS.items():
        added = nouns.add_parser(noun, help=text)
        import_module(f"tallystick.cli.{noun}").register(added)
        for action in _arguments(added):
            _complete(action, _WORDS.get((noun, action.dest), ()))
    return parser


def bqschema_parser() -> argparse.ArgumentParser:
    """Build a parser that has the commands and flags of `bqschema`."""
    parser = argparse.ArgumentParser(prog="bqschema")
    commands = parser.add_subparsers(metavar="COMMAND")
    for name, (flags, _) in COMMANDS.items():
        added = commands.add_parser(name, help=f"bqschema {name}")
        added.add_argument("files", nargs="*", metavar="FILE", help="a JSON file")
        for flag in flags:
            if isinstance(flag.default, bool):
                added.add_argument(f"--{flag.name}", action="store_true", help=flag.usage)
            else:
                added.add_argument(f"--{flag.name}", metavar="PATH", help=flag.usage)
        for action in _arguments(added):
            _complete(action, ())
    return parser


PARSERS: Final[Mapping[str, Callable[[], argparse.ArgumentParser]]] = {
    "tally": tally_parser,
    "bqschema": bqschema_parser,
}
"""Name of a program -> the function that builds its whole parser."""


def _arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Give the arguments of a parser and of the parsers of its verbs."""
    for action in parser._actions:  # noqa: SLF001 (argparse has no public list of them)
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for verb in action.choices.values():
                yield from _arguments(verb)
        else:
            yield action


def _complete(action: argparse.Action, words: tuple[str, ...]) -> None:
    """Tell `shtab` which words, folders or files an argument takes."""
    if action.choices is not None or action.nargs == 0:
        return
    if words:
        action.choices = words
    else:
        kind = str(action.metavar or action.dest)
        if kind in _FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif kind in _FILES or action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
