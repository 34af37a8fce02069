"""Find the noun's module, run its verb, and turn every error into one clear line and a hint."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Mapping

from tallystick import __version__
from tallystick.core.errors import TallystickError, exit_code

__all__ = ["run"]


def run(argv: list[str], nouns: Mapping[str, str]) -> int:
    """Parse and run; 0 conforms, 1 a finding, 2 usage or I/O."""
    if not argv or argv[0] in ("-h", "--help"):
        print(_overview(nouns))
        return 0 if argv else 2
    noun, rest = argv[0], argv[1:]
    if noun not in nouns:
        return _fail(f"there is no command {noun!r}", "Run `tally --help` for the list.", 2)
    parser = argparse.ArgumentParser(prog=f"tally {noun}", description=nouns[noun])
    importlib.import_module(f"tallystick.cli.{noun}").register(parser)
    try:
        arguments = parser.parse_args(rest)
    except SystemExit as stop:  # argparse has already said why
        return int(stop.code or 0)
    if not hasattr(arguments, "run"):
        parser.print_help(sys.stderr)
        return 2
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except TallystickError as error:
        return _fail(str(error), error.hint, exit_code(error))
    except FileNotFoundError as error:
        return _fail(f"no such file: {error.filename}", "Check the path.", 2)
    except OSError as error:
        if isinstance(error, BrokenPipeError):  # the reader (head, less) has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        return _fail(f"{error.strerror}: {error.filename or ''}".rstrip(": "), "", 2)
    except KeyboardInterrupt:
        return _fail("stopped", "", 130)
    return code


def _overview(nouns: Mapping[str, str]) -> str:
    width = max(map(len, nouns))
    lines = [f"  tally {noun:{width}}  {text}" for noun, text in nouns.items()]
    return "\n".join(
        [
            f"tally {__version__}: prove that what one program sent is what another received",
            "",
            *lines,
            "",
            "`tally NOUN --help` shows its verbs. Exit 0 conforms, 1 a finding, 2 usage or I/O.",
        ]
    )


def _fail(message: str, hint: str, code: int) -> int:
    print(f"tally: {message}", file=sys.stderr)
    if hint:
        print(f"  hint: {hint}", file=sys.stderr)
    return code
