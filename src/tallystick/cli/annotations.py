"""What a verb tells machines: `--json`, `--github` and `--junit`, the same on every verb.

Inside a GitHub workflow the files of the annotations are named from the root of the repository
(`GITHUB_WORKSPACE`), because that is where GitHub looks for them.

    python -m tallystick.cli.annotations check --registry registry.json

runs one verb of `tally schema` as `action.yml` does: whatever annotations the verb prints are
placed in the repository and, as a table, in the job summary (`GITHUB_STEP_SUMMARY`).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tallystick.cli.dispatch import write_fault
from tallystick.core.errors import Refused, Rejected, TallystickError, Unavailable, exit_code
from tallystick.schemas.outputs import Mark, github_annotations, junit_xml

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["add_outputs", "gate", "main", "tell_machines", "write_text"]

Run = Callable[[argparse.Namespace], int]

_COMMAND: Final = re.compile(r"::(error|warning|notice) ([^:]*)::(.*)")
_PLACE: Final = re.compile(r"(.+?):([0-9]+): ")
_MOST_ROWS: Final = 200


def add_outputs(parser: Any) -> None:
    """Add the three switches of a gate."""
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON object")
    output.add_argument("--github", action="store_true", help="print GitHub workflow annotations")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML as well")


def tell_machines(args: argparse.Namespace, suite: str, marks: Sequence[Mark]) -> None:
    """Print the annotations and write the XML that the switches ask for."""
    if args.github:
        placed = marks if hasattr(args, "placed_later") else map(_in_repository, marks)
        print(github_annotations(placed), end="")
    if args.junit:
        write_text(args.junit, junit_xml(suite, marks))


def gate(suite: str) -> Callable[[Run], Run]:
    """Make a verb tell what keeps it from its work in the format asked for, with exit 2."""

    def around(run: Run) -> Run:
        @wraps(run)
        def told(args: argparse.Namespace) -> int:
            try:
                return run(args)
            except TallystickError as error:
                _tell_fault(args, suite, error)
                if isinstance(error, Rejected | Refused):
                    raise Unavailable(str(error), code=error.code, hint=error.hint) from error
                raise

        return told

    return around


def _tell_fault(args: argparse.Namespace, suite: str, error: TallystickError) -> None:
    found = _PLACE.match(error.message)
    file, line = (_in_folder(args, found[1]), int(found[2])) if found else ("", 0)
    if getattr(args, "json", False):
        print(write_fault(error, file, line), end="")
        args.told = True
    if hasattr(args, "junit"):
        tell_machines(args, suite, [Mark(suite, "failed", str(error), str(error), file, line)])


def _in_folder(args: argparse.Namespace, file: str) -> str:
    """Name a file of the registry from here."""
    registry = getattr(args, "registry", None) or Path()
    inside = (registry if registry.is_dir() else registry.parent) / file
    return str(inside) if inside.exists() and not Path(file).exists() else file


def write_text(path: Path, text: str) -> None:
    """Write a file, or say in one line why it cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Unavailable(
            f"{path}: {error.strerror}",
            code="output.unwritable",
            hint="give a file that can be written",
        ) from error


def _in_repository(mark: Mark) -> Mark:
    return replace(mark, file=place_in_repository(mark.file)) if mark.file else mark


def place_in_repository(file: str) -> str:
    """Name a file from the root of the repository, where annotations are looked up."""
    root = os.environ.get("GITHUB_WORKSPACE")
    if not root:
        return file
    inside = os.path.relpath(Path(file).resolve(), Path(root).resolve())
    return file if inside.startswith("..") else inside


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb of `tally schema` for a workflow: annotations, summary, exit code."""
    from tallystick.cli import schema  # noqa: PLC0415 - the verbs import this module

    words = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(prog="tally schema")
    schema.register(parser)
    caught = io.StringIO()
    fault = ""
    with contextlib.redirect_stdout(caught):
        try:
            args = parser.parse_args(words)
            args.placed_later = True
            args.github = not (getattr(args, "json", False) or getattr(args, "mask", None))
            status = int(args.run(args))
        except TallystickError as error:
            fault, status = str(error), exit_code(error)
        except SystemExit as stop:  # argparse has said why on stderr
            fault = "" if not stop.code else "the arguments make no sense: see the log"
            status = int(stop.code or 0)
    lines = [_relocate(line) for line in caught.getvalue().splitlines()]
    print("".join(f"{line}\n" for line in lines), end="")
    if fault:
        if not any(line.startswith("::error ") for line in lines):  # else the verb has told it
            print(github_annotations([Mark("tally schema", "failed", fault)]), end="")
        print(f"tally schema: {fault}", file=sys.stderr)
    verdict = {0: "passed", 1: "failed"}.get(status, "could not run")
    headline = f"Schema {words[0] if words else 'gate'}: {verdict}"
    print(headline, file=sys.stderr)
    _summarise(headline, lines, fault)
    return status


def _relocate(line: str) -> str:
    found = _COMMAND.fullmatch(line)
    if not found:
        return line
    level, properties, message = found.groups()
    pairs = dict(pair.split("=", 1) for pair in properties.split(",") if "=" in pair)
    if "file" in pairs:
        pairs["file"] = place_in_repository(pairs["file"])
    return f"::{level} {','.join(f'{key}={value}' for key, value in pairs.items())}::{message}"


def _summarise(headline: str, lines: Sequence[str], fault: str) -> None:
    target = os.environ.get("GITHUB_STEP_SUMMARY")
    if not target:
        return
    rows = [f"### {headline}", ""]
    found = [match for line in lines if (match := _COMMAND.fullmatch(line))]
    if found:
        rows += ["| level | place | finding |", "| --- | --- | --- |"]
        rows += [_table_row(match) for match in found[:_MOST_ROWS]]
        if len(found) > _MOST_ROWS:
            rows.append(f"| | | and {len(found) - _MOST_ROWS} more |")
    plain = [line for line in lines if not line.startswith("::")]
    if plain and len("\n".join(plain)) < 60_000:
        rows += ["", "```", *plain, "```"]
    if fault:
        rows += ["", _cell(fault)]
    with Path(target).open("a", encoding="utf-8") as file:
        file.write("\n".join(rows) + "\n")


def _table_row(match: re.Match[str]) -> str:
    level, properties, message = match.groups()
    pairs = dict(pair.split("=", 1) for pair in properties.split(",") if "=" in pair)
    place = ":".join(pairs[key] for key in ("file", "line") if key in pairs)
    return f"| {level} | {_cell(_plain(place))} | {_cell(_plain(message))} |"


def _plain(text: str) -> str:
    for code, character in (("%0D", " "), ("%0A", " "), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, character)
    return text


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


if __name__ == "__main__":
    sys.exit(main())
