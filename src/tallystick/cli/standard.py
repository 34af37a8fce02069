"""`tally standard check|sync`: the suite itself, and its vendored copies.

Exit 0 when the suite is sound and copies are in step; 1 when there is a fault or a drift.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tallystick import standard
from tallystick.suites.standard import check_standard
from tallystick.suites.standard_copies import Copy, compare_copy, replace_copy, vendored_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(metavar="VERB")
    checker = verbs.add_parser("check", help="validate the suite itself")
    checker.add_argument("--json", action="store_true", help="one object on stdout")
    checker.set_defaults(run=_check)
    syncer = verbs.add_parser("sync", help="copy the suite into projects")
    syncer.add_argument(
        "projects", nargs="+", type=Path, metavar="DIR",
        help="a project: Go gets testdata/conformance, Java src/test/resources/conformance, "
        "others tests/conformance",
    )  # fmt: skip
    syncer.add_argument("--check", action="store_true", help="change nothing; exit 1 on any drift")
    syncer.add_argument(
        "--force", action="store_true", help="replace a folder that holds other files, too"
    )
    syncer.add_argument("--json", action="store_true", help="one object on stdout")
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


def _sync(args: argparse.Namespace) -> int:
    folders = [vendored_folder(project) for project in args.projects]
    if args.check:
        copies = [compare_copy(folder) for folder in folders]
    else:
        copies = [replace_copy(folder, force=args.force) for folder in folders]
    if args.json:
        print(json.dumps({"checked_only": args.check, "copies": list(map(_as_json, copies))}))
    else:
        for copy in copies:
            print("\n".join(_lines(copy, put_right=not args.check)))
    drifted = sum(copy.drifted for copy in copies)
    if args.check and drifted:
        count = f"{drifted} of {len(copies)} copies" if len(copies) > 1 else "the copy"
        print(f"{count} drifted; `tally standard sync` puts it right", file=sys.stderr)
    return 1 if args.check and drifted else 0


_WRONG: Final = {"missing": "added", "extra": "removed", "changed": "replaced"}
"""What can be wrong with a file of a copy -> what puts it right."""


def _lines(copy: Copy, *, put_right: bool) -> Iterator[str]:
    if not copy.drifted:
        yield f"in step  {copy.folder}"
    elif put_right:
        done = [f"{len(getattr(copy, wrong))} {right}" for wrong, right in _WRONG.items()]
        yield f"synced   {copy.folder} ({', '.join(done)})"
    else:
        for wrong in _WRONG:
            yield from (f"{wrong:7}  {copy.folder / path}" for path in getattr(copy, wrong))


def _as_json(copy: Copy) -> dict[str, Any]:
    return {**asdict(copy), "folder": str(copy.folder), "drifted": copy.drifted}
