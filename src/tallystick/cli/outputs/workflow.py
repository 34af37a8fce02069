"""Run one command of the gate for a GitHub workflow: annotations, job summary, exit code.

    python -m tallystick.cli.outputs.workflow --args='--strict' -- check

`action.yml` calls this. The command is a verb of `tally schema`, or `drift`, which is
`tally standard sync --check`. The findings go to annotations on the lines that they are about, to
a table in the job summary (`GITHUB_STEP_SUMMARY`) and, with `--sarif`, to a file.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tallystick.cli import schema, standard
from tallystick.cli.config.arguments import resolve
from tallystick.core.errors import TallystickError, UsageError, exit_code
from tallystick.schemas.outputs import LEVELS, Mark, github_annotations

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

_MOST_ROWS: Final = 200
_MOST_TEXT: Final = 60_000
_DRIFT: Final = "drift"
_WITHOUT_SARIF: Final = ("export-asyncapi",)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0 conforms, 1 a finding, 2 usage or I/O."""
    inputs = _read_inputs(argv)
    text = io.StringIO()
    marks: list[Mark] = []
    fault = hint = ""
    with contextlib.redirect_stdout(text):
        try:
            status = _run(inputs, marks)
        except TallystickError as error:
            fault, hint, status = str(error), error.hint, exit_code(error)
        except SystemExit as stop:  # argparse has written the reason to stderr
            fault = "wrong arguments: see the log" if stop.code else ""
            status = int(stop.code or 0)
    print(text.getvalue(), end="")
    if fault:
        if not any(mark.level == "failed" for mark in marks):  # else the command has told it
            marks.append(Mark(f"tally {inputs.command}", "failed", fault))
        print(f"tally: {fault}", file=sys.stderr)
        if hint:
            print(f"  hint: {hint}", file=sys.stderr)
    print(github_annotations(marks), end="")
    verdict = {0: "passed", 1: "failed"}.get(status, "could not run")
    headline = f"Schema {inputs.command}: {verdict}"
    print(headline, file=sys.stderr)
    _summarise(headline, marks, text.getvalue())
    return status


def _read_inputs(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tallystick.cli.outputs.workflow")
    for name in ("registry", "sarif", "args"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("command")
    return parser.parse_args(argv)


def _run(inputs: argparse.Namespace, marks: list[Mark]) -> int:
    try:
        words = shlex.split(inputs.args)
    except ValueError as error:
        raise UsageError(
            f"the input `args` cannot be read: {error}", code="args", hint="close every quote"
        ) from error
    parser = argparse.ArgumentParser(prog="tally")
    if inputs.command == _DRIFT:
        standard.register(parser)
        command = ["sync", "--check", *([] if _names_a_project(words) else ["."])]
    else:
        schema.register(parser)
        command = [inputs.command]
        command += ["--registry", inputs.registry] if inputs.registry else []
    if inputs.sarif and inputs.command not in _WITHOUT_SARIF:
        command += ["--sarif", inputs.sarif]
    args = parser.parse_args([*command, *words])
    resolve(args)
    args.collected = marks
    args.github = not (getattr(args, "json", False) or getattr(args, "mask", None))
    return int(args.run(args))


def _names_a_project(words: Sequence[str]) -> bool:
    return any(not word.startswith("-") for word in words)


def _summarise(headline: str, marks: Sequence[Mark], text: str) -> None:
    target = os.environ.get("GITHUB_STEP_SUMMARY")
    if not target:
        return
    rows = [f"### {headline}", ""]
    findings = [mark for mark in marks if mark.level in LEVELS]
    if findings:
        rows += ["| level | place | finding |", "| --- | --- | --- |"]
        rows += map(_table_row, findings[:_MOST_ROWS])
        if len(findings) > _MOST_ROWS:
            rows.append(f"| | | and {len(findings) - _MOST_ROWS} more |")
    if text and len(text) < _MOST_TEXT:
        rows += ["", "```", text.rstrip("\n"), "```"]
    with Path(target).open("a", encoding="utf-8") as file:
        file.write("\n".join(rows) + "\n")


def _table_row(mark: Mark) -> str:
    place = ":".join(filter(None, (mark.file, str(mark.line or ""))))
    return f"| {LEVELS[mark.level]} | {_cell(place)} | {_cell(mark.message)} |"


def _cell(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    return " ".join(escaped.splitlines())


if __name__ == "__main__":
    sys.exit(main())
