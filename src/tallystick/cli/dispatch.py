"""Import the module of a noun, run its verb, and turn every error into one line and a hint.

Output is UTF-8 in every locale; characters that UTF-8 cannot carry are written with backslashes. If
the reader of the output closes it early, the exit code is 141, as in a shell; it is never 0, which
would mean that everything conforms. An unexpected exception is one line and exit 2. With `--json`
an error is also one JSON object on stdout, on one line; errors of argparse go to stderr only.
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
from tallystick.cli.config.arguments import resolve
from tallystick.core.errors import TallystickError, Unavailable, exit_code
from tallystick.core.extras import check_extra, explain_import
from tallystick.core.variables import TRACEBACK

__all__ = ["BROKEN_PIPE", "name_fault", "name_internal", "run", "write_fault"]

BROKEN_PIPE: Final = 141
"""128 + SIGPIPE: the reader has seen enough, and nobody can say how it would have ended."""

_HINTS: Final = {
    errno.ENOSPC: "the disk is full or the file cannot grow; the output is incomplete",
    errno.EACCES: "you have no permission to read or write there",
    errno.ENOENT: "check the name and that the folder exists",
    errno.EISDIR: "name a file, not a folder",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.ELOOP: "a symbolic link points to itself",
}


def run(argv: list[str], nouns: Mapping[str, str]) -> int:
    """Parse and run; 0 conforms, 1 a finding, 2 usage or I/O."""
    if not _prepare_output():
        return _fail("standard output is closed", "redirect it to a file or to /dev/null", 2)
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
        fault = name_internal(error)
    else:
        return code
    code = _fail(str(fault), fault.hint, exit_code(fault))
    as_object = getattr(arguments, "json", False) and not hasattr(arguments, "told")
    return code if _end_output(write_fault(fault) if as_object else "") else BROKEN_PIPE


def write_fault(error: TallystickError, file: str = "", line: int = 0) -> str:
    """Write an error for programs: one JSON object on one line."""
    fault = {
        "code": error.code, "message": error.message, "file": file, "line": line,
        "pointer": getattr(error, "pointer", None), "hint": error.hint,
    }  # fmt: skip
    return json.dumps({"error": fault}) + "\n"


def _end_output(text: str) -> bool:
    """Print the last output; return False if the reader has closed it (not on a full disk)."""
    try:
        print(text, end="", flush=True)
    except OSError as error:
        _drop_output()
        return not isinstance(error, BrokenPipeError)
    return True


def name_fault(error: OSError) -> Unavailable:
    """Describe an error of the operating system in one line, with a hint."""
    if isinstance(error, FileNotFoundError):
        return Unavailable(f"no such file: {error.filename}", code="io", hint="check the path")
    text = f"{error.strerror}: {error.filename or ''}".rstrip(": ")
    hint = "check the path" if error.filename else ""
    return Unavailable(text, code="io", hint=_HINTS.get(error.errno or 0, hint))


def name_internal(error: Exception) -> TallystickError:
    """Name the missing extra of a failed import; any other exception is an internal error."""
    absent = explain_import(error) if isinstance(error, ModuleNotFoundError) else None
    return absent or TallystickError(
        f"internal fault: {type(error).__name__}: {error}",
        code="internal",
        hint=f"set {TRACEBACK}=1 to see the traceback, and report this error",
    )


def _run(argv: list[str], nouns: Mapping[str, str], arguments: argparse.Namespace) -> int:
    if not argv or argv[0] in ("-h", "--help"):
        print(_overview(nouns))
        return 0 if argv else 2
    noun, rest = argv[0], argv[1:]
    if noun not in nouns:
        return _fail(f"unknown command {noun!r}", "`tally --help` lists the commands", 2)
    parser = argparse.ArgumentParser(prog=f"tally {noun}", description=nouns[noun])
    importlib.import_module(f"tallystick.cli.{noun}").register(parser)
    try:
        parser.parse_args(rest, arguments)
    except SystemExit as stop:  # argparse has already said why
        return int(stop.code or 0)
    if not hasattr(arguments, "run"):
        parser.print_help(sys.stderr)
        return 2
    if needed := getattr(arguments, "needs_extra", ""):
        check_extra(needed)
    resolve(arguments)
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
    """Discard unwritten output, so that the interpreter does not write it again at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _overview(nouns: Mapping[str, str]) -> str:
    width = max(map(len, nouns))
    lines = [f"  tally {noun:{width}}  {text}" for noun, text in nouns.items()]
    return "\n".join(
        [
            f"tally {__version__}: check that every message arrives exactly as it was sent",
            "",
            *lines,
            "",
            "`tally NOUN --help` shows the verbs of a noun.",
            "Exit codes: 0 conforms, 1 finding, 2 usage or I/O error.",
        ]
    )


def _fail(message: str, hint: str, code: int) -> int:
    from tallystick.cli.outputs.colour import Tone, paint  # noqa: PLC0415 (only trouble needs it)
    from tallystick.report.table import one_line  # noqa: PLC0415

    prefix = paint("tally:", Tone.BAD, sys.stderr)
    print(f"{prefix} {one_line(message)}", file=sys.stderr)
    if hint:
        print(f"  {paint('hint:', Tone.QUIET, sys.stderr)} {hint}", file=sys.stderr)
    return code
