"""`tally journal show|diff`: read a run back, or say what changed between two.

`diff` matches cases by subject and name. Exit 1 when something that passed before does not pass
now, or is gone. A file that is no journal is exit 2: there is nothing to judge.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tallystick.core.errors import Rejected, UsageError
from tallystick.core.journal import Journal, read
from tallystick.report.diff import compare_journals, regressed, show_changes
from tallystick.report.table import show_journal, succeeded, summarize

__all__ = ["read_journals", "register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(metavar="VERB")
    show = verbs.add_parser("show", help="show a run; exit 1 when it failed or was cut short")
    show.add_argument("file", type=Path, metavar="FILE")
    show.add_argument("--json", action="store_true", help="one summary object on stdout")
    show.set_defaults(run=_show)
    diff = verbs.add_parser("diff", help="what changed between two runs; exit 1 on new failures")
    diff.add_argument("old", type=Path, metavar="OLD")
    diff.add_argument("new", type=Path, metavar="NEW")
    diff.add_argument("--json", action="store_true", help="one object of lists on stdout")
    diff.set_defaults(run=_diff)


def read_journals(path: Path) -> tuple[Journal, ...]:
    """Read every journal of a file; what is none is a mistake in the request."""
    try:
        with path.open(encoding="utf-8", newline="\n") as lines:
            return read(lines)
    except UnicodeDecodeError:
        why = "it is not UTF-8"
    except Rejected as rejection:
        why = str(rejection)
    raise UsageError(
        f"{path} is no journal: {why}",
        code="no_journal",
        hint="give one that `tally suite run --journal FILE` wrote",
    )


def _show(args: argparse.Namespace) -> int:
    journals = read_journals(args.file)
    if args.json:
        print(json.dumps(summarize(journals), indent=1))
    else:
        print("\n".join(show_journal(journal) for journal in journals), end="")
    return 0 if all(map(succeeded, journals)) else 1


def _diff(args: argparse.Namespace) -> int:
    changes = compare_journals(read_journals(args.old), read_journals(args.new))
    if args.json:
        print(json.dumps(changes, indent=1))
    else:
        print(show_changes(changes), end="")
    return 1 if regressed(changes) else 0
