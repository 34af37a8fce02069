"""Output for machines: `--json`, `--github`, `--junit`, `--sarif`, `--code-quality`.

Inside a GitHub workflow the files of the annotations are named from the root of the repository
(`GITHUB_WORKSPACE`), because that is where GitHub looks for them.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tallystick.cli.dispatch import write_fault
from tallystick.core.errors import Refused, Rejected, TallystickError, Unavailable
from tallystick.schemas.outputs import Mark, github_annotations, junit_xml

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "add_outputs",
    "gate",
    "in_repository",
    "place_in_repository",
    "tell_machines",
    "wants_marks",
    "write_text",
]

Run = Callable[[argparse.Namespace], int]

_PLACE: Final = re.compile(r"(.+?):([0-9]+): ")


def add_outputs(parser: Any) -> None:
    """Add the options of a gate."""
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON object")
    output.add_argument("--github", action="store_true", help="print GitHub workflow annotations")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML as well")
    parser.add_argument("--sarif", type=Path, metavar="FILE", help="write SARIF 2.1.0 as well")
    parser.add_argument(
        "--code-quality", type=Path, metavar="FILE", help="write a GitLab report as well"
    )


def wants_marks(args: argparse.Namespace) -> bool:
    """Tell whether an option asks for an output that is made of marks."""
    return bool(args.github or args.junit or args.sarif or args.code_quality)


def tell_machines(args: argparse.Namespace, suite: str, marks: Sequence[Mark]) -> None:
    """Give the marks to every output that the options ask for."""
    collected: list[Mark] | None = getattr(args, "collected", None)
    if collected is not None:  # a workflow prints them itself, and needs them for its summary
        collected += map(in_repository, marks)
    elif args.github:
        print(github_annotations(map(in_repository, marks)), end="")
    if args.junit:
        write_text(args.junit, junit_xml(suite, marks))
    if args.sarif:
        from tallystick.cli.outputs.sarif import write_sarif  # noqa: PLC0415 (rarely asked for)

        write_text(args.sarif, write_sarif(suite, marks))
    if args.code_quality:
        from tallystick.cli.outputs.code_quality import write_code_quality  # noqa: PLC0415

        registry = str(getattr(args, "registry", None) or ".")
        write_text(args.code_quality, write_code_quality(marks, registry))


def gate(suite: str) -> Callable[[Run], Run]:
    """Make a verb report its errors in the requested format, with exit 2."""

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
        text, pointer = str(error), getattr(error, "pointer", "") or ""
        mark = Mark(suite, "failed", text, text, file, line, f"run/{error.code}", pointer)
        tell_machines(args, suite, [mark])


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
            hint="name a file that you can write",
        ) from error


def in_repository(mark: Mark) -> Mark:
    """Name the file of a mark from the root of the repository."""
    return replace(mark, file=place_in_repository(mark.file)) if mark.file else mark


def place_in_repository(file: str) -> str:
    """Name a file from the root of the repository, where annotations are looked up."""
    root = os.environ.get("GITHUB_WORKSPACE")
    if not root:
        return file
    inside = os.path.relpath(Path(file).resolve(), Path(root).resolve())
    return file if inside.startswith("..") else inside
