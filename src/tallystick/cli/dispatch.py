"""Find the noun's module, run its verb, and turn every error into one clear line and a hint.

Output is UTF-8 whatever the locale says; what UTF-8 cannot carry is written with backslashes. A
reader that goes away before the end gives exit 141, as it does in a shell: never 0, which would
say that everything conforms. What nobody foresaw is a fault of ours: one line, and exit 2. With
`--json` an error is an object on stdout, too, on one line; what argparse refuses is on stderr only.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tallystick import __version__
from tallystick.core.errors import TallystickError, Unavailable, exit_code

__all__ = ["BROKEN_PIPE", "TRACEBACK", "name_fault", "run", "write_fault"]

BROKEN_PIPE: Final = 141
"""128 + SIGPIPE: the reader has seen enough, and nobody can say how it would have ended."""

TRACEBACK: Final = "TALLY_TRACEBACK"
"""Set this in the environment, and an internal fault is raised with its traceback."""

_HINTS: Final = {
    errno.ENOSPC: "the disk is full, or the file takes nothing; what was written is not whole",
    errno.EACCES: "you may not read or write there",
    errno.ENOENT: "is the name right, and the folder there?",
    errno.EISDIR: "a file is due, not a folder",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.ELOOP: "a link leads to itself",
}


def run(argv: list[str], nouns: Mapping[str, str]) -> int:
    """Parse and run; 0 conforms, 1 a finding, 2 usage or I/O."""
    if not _prepare_output():
        return _fail("standard output is closed", "Send it to a file, or to /dev/null.", 2)
    arguments = argparse.Namespace()
    try:
        code = _run(argv, nouns, arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return _fail("stopped", "", 130)
    except TallystickError as error:
        fault = error
    except OSError as error:
        _drop_output()
        fault = name_fault(error)
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        fault = TallystickError(
            f"internal fault: {type(error).__name__}: {error}",
            code="internal",
            hint=f"Set {TRACEBACK}=1 for the traceback, and report it.",
        )
    else:
        return code
    code = _fail(str(fault), fault.hint, exit_code(fault))
    as_object = getattr(arguments, "json", False) and not hasattr(arguments, "told")
    return code if _end_output(write_fault(fault) if as_object else "") else BROKEN_PIPE


def write_fault(error: TallystickError, file: str = "", line: int = 0) -> str:
    """Write for a program what kept a command from its work: one object on a line."""
    fault = {
        "code": error.code, "message": error.message, "file": file, "line": line,
        "pointer": getattr(error, "pointer", None), "hint": error.hint,
    }  # fmt: skip
    return json.dumps({"error": fault}) + "\n"


def _end_output(text: str) -> bool:
    """Print the last of it; tell whether the reader stayed. A full disk is no reader that left."""
    try:
        print(text, end="", flush=True)
    except OSError as error:
        _drop_output()
        return not isinstance(error, BrokenPipeError)
    return True


def name_fault(error: OSError) -> Unavailable:
    """Say in one line what the system refused, with a hint."""
    if isinstance(error, FileNotFoundError):
        return Unavailable(f"no such file: {error.filename}", code="io", hint="Check the path.")
    text = f"{error.strerror}: {error.filename or ''}".rstrip(": ")
    hint = "Check the path." if error.filename else ""
    return Unavailable(text, code="io", hint=_HINTS.get(error.errno or 0, hint))


def _run(argv: list[str], nouns: Mapping[str, str], arguments: argparse.Namespace) -> int:
    if not argv or argv[0] in ("-h", "--help"):
        print(_overview(nouns))
        return 0 if argv else 2
    noun, rest = argv[0], argv[1:]
    if noun not in nouns:
        return _fail(f"there is no command {noun!r}", "Run `tally --help` for the list.", 2)
    parser = argparse.ArgumentParser(prog=f"tally {noun}", description=nouns[noun])
    importlib.import_module(f"tallystick.cli.{noun}").register(parser)
    try:
        parser.parse_args(rest, arguments)
    except SystemExit as stop:  # argparse has already said why
        return int(stop.code or 0)
    if not hasattr(arguments, "run"):
        parser.print_help(sys.stderr)
        return 2
    code: int = arguments.run(arguments)
    return code


def _prepare_output() -> bool:
    """Write UTF-8 everywhere; tell whether there is a standard output at all."""
    if sys.stderr is None:  # or talk would go to stdout, in between the data
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (to the very end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    return sys.stdout is not None


def _drop_output() -> None:
    """Forget what could not be written, so that the interpreter does not try again at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
    from tallystick.report.table import one_line  # noqa: PLC0415 (only trouble needs it)

    print(f"tally: {one_line(message)}", file=sys.stderr)
    if hint:
        print(f"  hint: {hint}", file=sys.stderr)
    return code
