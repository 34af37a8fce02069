"""`tally standard check|sync`: check the conformance suite itself, and update its copies.

Exit 0 if the suite is valid and the copies are current; 1 if there is a problem or a copy differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tallystick import standard
from tallystick.cli.annotations import add_outputs, gate, tell_machines
from tallystick.schemas.outputs import Mark
from tallystick.suites.standard import check_standard
from tallystick.suites.standard_copies import Copy, compare_copy, replace_copy, vendored_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(metavar="VERB")
    checker = verbs.add_parser("check", help="check the conformance suite itself")
    checker.add_argument("--json", action="store_true", help="print one JSON object")
    checker.set_defaults(run=_check)
    syncer = verbs.add_parser("sync", help="copy the suite into projects")
    syncer.add_argument(
        "projects", nargs="+", type=Path, metavar="DIR",
        help="project folder; the copy goes to testdata/conformance (Go), "
             "src/test/resources/conformance (Java), else tests/conformance",
    )  # fmt: skip
    syncer.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 if a copy differs"
    )
    syncer.add_argument(
        "--force", action="store_true", help="replace the folder even if it holds other files"
    )
    add_outputs(syncer)
    syncer.set_defaults(run=_sync)


def _check(args: argparse.Namespace) -> int:
    checked = check_standard(standard.paths(), standard.read)
    if args.json:
        print(json.dumps(asdict(checked), indent=1))
    else:
        for problem in checked.problems:
            print(": ".join(filter(None, (problem.path, problem.place, problem.fault))))
        print(
            f"standard {checked.version}: {checked.files} files, {checked.fixtures} fixtures, "
            f"{checked.vectors} byte vectors, {checked.cases} cases, {checked.clauses} clauses, "
            f"{len(checked.problems)} problems"
        )
    return 1 if checked.problems else 0


@gate("tally standard sync")
def _sync(args: argparse.Namespace) -> int:
    folders = [vendored_folder(project) for project in args.projects]
    if args.check:
        copies = [compare_copy(folder) for folder in folders]
    else:
        copies = [replace_copy(folder, force=args.force) for folder in folders]
    if args.json:
        print(json.dumps({"checked_only": args.check, "copies": list(map(_as_json, copies))}))
    elif not args.github:
        for copy in copies:
            print("\n".join(_lines(copy, put_right=not args.check)))
    tell_machines(args, "tally standard sync", [*_marks(copies, checked=args.check)])
    drifted = sum(copy.drifted for copy in copies)
    if args.check and drifted:
        count = f"copies out of date: {drifted} of {len(copies)}"
        print(f"{count}; `tally standard sync` updates them", file=sys.stderr)
    return 1 if args.check and drifted else 0


_WRONG: Final = {"missing": "added", "extra": "removed", "changed": "replaced"}
"""What can be wrong with a file of a copy -> what puts it right."""


def _lines(copy: Copy, *, put_right: bool) -> Iterator[str]:
    if not copy.drifted:
        yield f"current  {copy.folder}"
    elif put_right:
        done = [f"{len(getattr(copy, wrong))} {right}" for wrong, right in _WRONG.items()]
        yield f"synced   {copy.folder} ({', '.join(done)})"
    else:
        for wrong in _WRONG:
            yield from (f"{wrong:7}  {copy.folder / path}" for path in getattr(copy, wrong))


_DRIFTS: Final = {
    "missing": "the copy lacks this file of the suite",
    "extra": "this file is not in the suite",
    "changed": "this file differs from the one in the suite",
}
"""What can be wrong with a file of a copy -> the text of the finding."""


def _marks(copies: Sequence[Copy], *, checked: bool) -> Iterator[Mark]:
    for copy in copies:
        wrong = [(drift, path) for drift in _DRIFTS for path in getattr(copy, drift)]
        if not checked or not wrong:
            yield Mark(str(copy.folder), "passed")
            continue
        for drift, path in wrong:
            file, text = str(copy.folder / path), _DRIFTS[drift]
            yield Mark(file, "failed", text, text, file, 1, f"drift/{drift}")


def _as_json(copy: Copy) -> dict[str, Any]:
    return {**asdict(copy), "folder": str(copy.folder), "drifted": copy.drifted}
