"""`tally report build JOURNAL... -o page.html`: write one HTML page about runs; it opens from disk.

With `--against OLD` it shows what changed since an earlier run; with `--coverage FILE` (JSON:
requirement -> list of names) it shows which cases cover which requirement. Exit 0 when the page is
written: it judges nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tallystick.cli.journal import read_journals
from tallystick.core.errors import UsageError
from tallystick.report.diff import compare_journals
from tallystick.report.page import build_page

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(metavar="VERB")
    build = verbs.add_parser("build", help="write one offline HTML page from journals")
    build.add_argument("journals", nargs="+", type=Path, metavar="JOURNAL", help="journal to show")
    build.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="write the page to FILE"
    )
    build.add_argument(
        "--against", type=Path, metavar="OLD", help="journal of an earlier run to compare with"
    )
    build.add_argument(
        "--coverage",
        type=Path,
        metavar="FILE",
        help="JSON file that maps each requirement to case names",
    )
    build.set_defaults(run=_build)


def _build(args: argparse.Namespace) -> int:
    journals = [journal for path in args.journals for journal in read_journals(path)]
    changes = compare_journals(read_journals(args.against), journals) if args.against else None
    page = build_page(journals, changes, _coverage(args.coverage) if args.coverage else None)
    args.output.write_text(page, encoding="utf-8")
    cases = sum(len(journal.records) for journal in journals)
    print(f"{args.output}: {len(journals)} runs, {cases} cases", file=sys.stderr)
    return 0


def _coverage(path: Path) -> dict[str, list[str]]:
    try:
        held = json.loads(path.read_bytes())
        return {str(name): [str(one) for one in names] for name, names in held.items()}
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise UsageError(
            f"{path} is not a coverage file: {error}",
            code="coverage",
            hint='write {"IOP-1": ["name of a case", ...], ...}',
        ) from error
