"""`tally suite list|run|implementations`: run the conformance suite on any implementation.

Exit 0 when nothing failed, errored or raised an alarm; 1 when something did; 2 for a usage error or
when an implementation cannot be started.
"""

from __future__ import annotations

import argparse
import json
import sys
import uuid
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tallystick.cli.numbers import seconds
from tallystick.cli.outputs.colour import paint_first_words
from tallystick.cli.progress import Progress, end_in_order
from tallystick.core.errors import UsageError
from tallystick.core.journal import Journal
from tallystick.report.junit import junit
from tallystick.report.results import results
from tallystick.report.table import scoreboard, show_journal, succeeded, summarize
from tallystick.suites.find import find_suites
from tallystick.suites.known import check_known, read_known
from tallystick.suites.select import select
from tallystick.suites.session import Plan, run_plan
from tallystick.suites.subject import Deadlines
from tallystick.suites.subjects import NAMES, OURS, subject_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from tallystick.core.verdict import Case
    from tallystick.suites.load import Suite

__all__ = ["add_implementations", "register"]

_USUAL: Final = Deadlines()


def register(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(metavar="VERB")
    lister = verbs.add_parser("list", help="list the names of the cases")
    _add_selection(lister)
    lister.add_argument("--json", action="store_true", help="print a JSON list of names")
    lister.set_defaults(run=_list)
    runner = verbs.add_parser("run", help="run cases on one or more implementations")
    _add_selection(runner)
    _add_run_options(runner)
    runner.set_defaults(run=_run)
    named = verbs.add_parser(
        "implementations", help="list the implementations that ship with Tallystick"
    )
    for verb in (named, verbs.add_parser("subjects")):  # its former name: no help, so not listed
        verb.add_argument("--json", action="store_true", help="print a JSON list of names")
        verb.set_defaults(run=_subjects)


def _add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "patterns", nargs="*", metavar="GLOB",
        help="case names; * matches one part, ** matches several (default: 'standard/**')",
    )  # fmt: skip
    parser.add_argument(
        "--cases", type=Path, metavar="DIR", help="folder with the cases and a manifest.json"
    )


def add_implementations(parser: argparse.ArgumentParser, about: str) -> None:
    """Add `--implementation`, and `--subject`, its former name, which `--help` does not show."""
    for name, shown in (("--implementation", about), ("--subject", argparse.SUPPRESS)):
        parser.add_argument(
            name, action="append", metavar="NAME|COMMAND", dest="subjects", help=shown
        )


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    add_implementations(parser, f"{', '.join(NAMES)}, or a command line; repeatable")
    parser.add_argument("--known", type=Path, metavar="FILE", help="known failures, JSON or TOML")
    parser.add_argument("--journal", type=Path, metavar="FILE", help="write the journal to FILE")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML to FILE")
    parser.add_argument(
        "--results",
        type=Path,
        metavar="FILE",
        help="write results.json (format of suite 1.8.0) to FILE",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON summary")
    parser.add_argument(
        "--deadline", type=seconds, default=_USUAL.run, metavar="S",
        help="maximum seconds for each call (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--start-deadline", type=seconds, default=_USUAL.start, metavar="S",
        help="maximum seconds for the start, which may include a build (default: %(default)s)",
    )  # fmt: skip


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _choose(args: argparse.Namespace) -> tuple[list[Suite], list[Case]]:
    suites = find_suites(args.patterns, args.cases, _say)
    cases = select([case for suite in suites for case in suite.cases], args.patterns)
    if not cases:
        raise UsageError(
            "no case was selected",
            code="no_cases",
            hint="check the case names: `tally suite list` lists them",
        )
    return suites, cases


def _list(args: argparse.Namespace) -> int:
    _, cases = _choose(args)
    names = [case.name for case in cases]
    if args.json:
        print(json.dumps(names, indent=1))
    else:
        print("\n".join(names))
    if not args.patterns and args.cases is None:
        _say("this list leaves out the public suite: `tally suite list 'public/**'` shows it")
    return 0


def _subjects(args: argparse.Namespace) -> int:
    print(json.dumps(NAMES) if args.json else "\n".join(NAMES))
    return 0


def _run(args: argparse.Namespace) -> int:
    suites, cases = _choose(args)
    subjects = list(dict.fromkeys(args.subjects or [OURS]))
    if args.results and len(subjects) > 1:
        raise UsageError(
            "--results takes one implementation only",
            code="several_subjects",
            hint="run the implementations one by one, or use --journal",
        )
    known = {subject: _known(args.known, subject, subjects, suites) for subject in subjects}
    plan = Plan(
        cases,
        {suite.name: suite.version for suite in suites},
        run=str(uuid.uuid4()),
        time=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        deadlines=Deadlines(start=args.start_deadline, run=args.deadline),
    )
    with ExitStack() as stack:
        stack.enter_context(end_in_order())
        write: Callable[[str], object] = len
        if args.journal:
            write = stack.enter_context(args.journal.open("w", encoding="utf-8")).write
        bar = stack.enter_context(Progress(len(cases) * len(subjects), subject_name(subjects[0])))
        journals = []
        for subject in subjects:
            bar.rename(subject_name(subject))
            started = partial(run_plan, plan, subject, known=known[subject], talk=bar.talk)
            journals.append(started(write=write, advance=bar.advance))
    _write_reports(args, journals, suites)
    _print_reports(args, journals)
    return 0 if all(map(succeeded, journals)) else 1


def _known(
    path: Path | None, subject: str, chosen: list[str], suites: list[Suite]
) -> dict[str, str]:
    if path is None:
        return {}
    known = read_known(
        path.read_bytes(),
        toml=path.suffix == ".toml",
        subject=subject_name(subject),
        subjects={*NAMES, *map(subject_name, chosen)},
    )
    check_known(known, [case for suite in suites for case in suite.cases])
    return known


def _write_reports(args: argparse.Namespace, journals: list[Journal], suites: list[Suite]) -> None:
    if args.junit:
        args.junit.write_text(junit(journals, _repeat_options(args)), encoding="utf-8")
    if args.results:
        text = json.dumps(results(journals[0], suites[-1]), indent=2)
        args.results.write_text(text + "\n", encoding="utf-8")


def _repeat_options(args: argparse.Namespace) -> list[str]:
    return [part for name in ("cases", "known") for part in _given(args, name)]


def _given(args: argparse.Namespace, name: str) -> list[str]:
    """Give an option with a file as it stood on the command line, if it was there."""
    path: Path | None = getattr(args, name)
    return [f"--{name}", str(path)] if path else []


def _print_reports(args: argparse.Namespace, journals: list[Journal]) -> None:
    if args.json:
        summary: dict[str, Any] = summarize(journals)
        print(json.dumps(summary, indent=1))
        return
    options = _repeat_options(args)
    parts = [paint_first_words(show_journal(journal, options)) for journal in journals]
    print("\n".join(parts if len(parts) == 1 else [*parts, scoreboard(journals, {})]), end="")
