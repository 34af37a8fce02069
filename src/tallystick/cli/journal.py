"""`tally journal show|diff`: show one run, or compare two.

`diff` matches cases by implementation and name. Exit 1 if a case that passed before does not pass
now, or is gone. A file that is not a journal is exit 2.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tallystick.cli.outputs.colour import paint_first_words
from tallystick.core.errors import Rejected, UsageError
from tallystick.core.journal import Journal, read
from tallystick.report.diff import compare_journals, regressed, show_changes
from tallystick.report.table import show_journal, succeeded, summarize

__all__ = ["read_journals", "register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(metavar="VERB")
    show = verbs.add_parser("show", help="show a run; exit 1 if it failed or did not finish")
    show.add_argument("file", type=Path, metavar="FILE", help="the journal")
    show.add_argument("--json", action="store_true", help="print one JSON summary")
    show.set_defaults(run=_show)
    diff = verbs.add_parser(
        "diff", help="show what changed between two runs; exit 1 on new failures"
    )
    diff.add_argument("old", type=Path, metavar="OLD", help="journal of the earlier run")
    diff.add_argument("new", type=Path, metavar="NEW", help="journal of the later run")
    diff.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object with a list for each kind of change",
    )
    diff.set_defaults(run=_diff)


def read_journals(path: Path) -> tuple[Journal, ...]:
    """Read every journal of a file; a file that is not a journal is a usage error."""
    try:
        with path.open(encoding="utf-8", newline="\n") as lines:
            return read(lines)
    except UnicodeDecodeError:
        why = "the file is not UTF-8"
    except Rejected as rejection:
        why = str(rejection)
    raise UsageError(
        f"{path} is not a journal: {why}",
        code="no_journal",
        hint="name a file written by `tally suite run --journal FILE`",
    )


def _show(args: argparse.Namespace) -> int:
    journals = read_journals(args.file)
    if args.json:
        print(json.dumps(summarize(journals), indent=1))
    else:
        print(paint_first_words("\n".join(map(show_journal, journals))), end="")
    return 0 if all(map(succeeded, journals)) else 1


def _diff(args: argparse.Namespace) -> int:
    changes = compare_journals(read_journals(args.old), read_journals(args.new))
    if args.json:
        print(json.dumps(changes, indent=1))
    else:
        print(show_changes(changes), end="")
    return 1 if regressed(changes) else 0
