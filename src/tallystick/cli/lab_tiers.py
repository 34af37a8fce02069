"""`tally lab combinations|expected|run-tier|fields|clock`: the thorough procedure and its tools.

Exit 0 if everything matches the broker's profile, 1 if something differs, 2 if it could not be run.
Every difference is printed with its parameters, the expected and the found result, and the command
that repeats this one circuit.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tallystick import __version__
from tallystick.brokers.servers import Talk
from tallystick.cli.numbers import above_zero, seconds
from tallystick.cli.outputs.colour import paint_first_words
from tallystick.cli.progress import Progress, end_in_order, run_in_order
from tallystick.core.errors import UsageError
from tallystick.core.journal import (
    Foot,
    Head,
    Journal,
    Record,
    count,
    write_foot,
    write_head,
    write_record,
)
from tallystick.lab.combinations import as_mapping, read_name
from tallystick.lab.covering import count_tuples
from tallystick.lab.expected import expected_results
from tallystick.lab.profiles import PROFILES, find_profile
from tallystick.lab.tier_table import DEPARTS, LANES, TIERS, VM, tier_cases
from tallystick.report.junit import junit
from tallystick.report.table import show_journal, succeeded, summarize

if TYPE_CHECKING:
    from tallystick.core.verdict import Verdict

__all__ = ["Logbook", "add_outputs", "register_tiers"]

_STRENGTHS = {"pairwise": 2, "3way": 3, "4way": 4}


def register_tiers(verbs: Any) -> None:
    """Add the verbs to those of `tally lab`."""
    from tallystick.cli.lab_tools import register_tools  # noqa: PLC0415 (uses the names below)

    listed = verbs.add_parser("combinations", help="list the parameter sets of a tier")
    listed.add_argument(
        "tier", nargs="?", default="full", choices=list(TIERS), help="(default: full)"
    )
    listed.add_argument(
        "--count", action="store_true", help="print only the number of sets and what they cover"
    )
    listed.add_argument("--json", action="store_true", help="print a JSON list of objects")
    listed.set_defaults(run=_combinations)
    told = verbs.add_parser(
        "expected", help="show the result that the broker's profile expects for one set"
    )
    told.add_argument("name", help="name of the set, as `tally lab combinations` prints it")
    told.add_argument(
        "--broker",
        choices=list(PROFILES),
        default="vm",
        help="(default: vm, the in-process broker)",
    )
    told.add_argument("--version", default="", help="version of the broker (default: the newest)")
    told.add_argument("--local", action="store_true", help="both ends use one connection")
    told.add_argument("--json", action="store_true", help="print one JSON object")
    told.set_defaults(run=_expected)
    run = verbs.add_parser("run-tier", help="run a tier on a broker and judge every circuit")
    run.add_argument(
        "tier",
        choices=list(TIERS),
        help="a set of circuits; `tally lab combinations TIER` lists them",
    )
    run.add_argument("--broker", choices=list(PROFILES), required=True, help="broker to test")
    run.add_argument("--url", help="URL of a running broker (default: start one)")
    run.add_argument("--only", default="", metavar="NAME", help="name of a case, or a part of it")
    run.add_argument(
        "--lanes", type=above_zero, default=LANES, help="number of circuits at a time (%(default)s)"
    )
    run.add_argument(
        "--limit", type=seconds, default=30.0, help="maximum seconds for a circuit (30)"
    )
    add_outputs(run)
    run.set_defaults(run=_run)
    register_tools(verbs)


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where the verdicts go."""
    parser.add_argument("--journal", type=Path, metavar="FILE", help="write the journal to FILE")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML to FILE")
    parser.add_argument("--json", action="store_true", help="print one JSON summary")


def _combinations(args: argparse.Namespace) -> int:
    sets = list(TIERS[args.tier]())
    if args.count:
        cases = len(tier_cases(args.tier, "any"))
        about: dict[str, Any] = {"tier": args.tier, "circuits": cases}
        if args.tier in _STRENGTHS:
            covered, every = count_tuples(sets, _STRENGTHS[args.tier])
            about |= {"covered": covered, "tuples": every}
        print(json.dumps(about) if args.json else " ".join(f"{k} {v}" for k, v in about.items()))
    elif args.json:
        print(json.dumps([as_mapping(one) for one in sets], indent=1))
    else:
        for case in tier_cases(args.tier, "any"):
            print(case.name.split("/", 3)[3])
    return 0


def _expected(args: argparse.Namespace) -> int:
    profile = find_profile(args.broker, args.version or "999")
    found = expected_results(read_name(args.name), profile, local=args.local)
    about = {
        "result": found.result.kind.value,
        "code": found.result.code,
        "level": found.result.level,
        "departs": found.departs,
        "sight": {name: getattr(found.sight, name) for name in found.sight.__slots__},
    }
    if args.json:
        print(json.dumps(about))
        return 0
    print(
        " ".join(
            filter(None, (found.result.kind, found.result.level, str(found.result.code or "")))
        )
    )
    if found.departs:
        print(f"differs from AMQP 0-9-1: {found.departs}")
    for name in found.sight.__slots__:
        print(f"  {name:16} {json.dumps(getattr(found.sight, name))}")
    return 0


class Logbook:
    """Writes a journal as the verdicts come, keeps them, and gives the reports at the end."""

    def __init__(self, args: argparse.Namespace, total: int, subject: str, **versions: str) -> None:
        self._args = args
        self._stack = ExitStack()
        self._records: list[Record] = []
        self._began = perf_counter()
        time = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        about = {"tallystick": __version__, "subject.name": subject, **versions}
        self.run = uuid.uuid4().hex[:8]
        self._head = Head(self.run, time, "lab", subject, about)
        self._write: Callable[[str], object] = len
        if args.journal:
            # line by line: also a run that is killed leaves what it has judged
            file = args.journal.open("w", 1, encoding="utf-8")
            self._write = self._stack.enter_context(file).write
        self._bar = self._stack.enter_context(Progress(total, subject))
        self._write(write_head(self._head))

    def tell(self, verdict: Verdict) -> None:
        """Take one verdict."""
        record = Record(verdict)
        self._records.append(record)
        self._write(write_record(record))
        self._bar.advance()

    def end(self) -> int:
        """Write the foot and the reports; give the exit code."""
        milliseconds = (perf_counter() - self._began) * 1000
        foot = Foot(count(self._records), milliseconds, self._departures())
        self._write(write_foot(foot))
        self._stack.close()
        journal = Journal(self._head, tuple(self._records), foot)
        if self._args.junit:
            self._args.junit.write_text(junit([journal]), encoding="utf-8")
        if self._args.json:
            summary = summarize([journal])
            results = Counter(one.verdict.reason.partition(";")[0] for one in self._records)
            about = {"seconds": round(milliseconds / 1000, 3), "results": dict(results)}
            print(json.dumps({**summary, **about}, indent=1))
        else:
            print(paint_first_words(show_journal(journal)), end="")
        return 0 if succeeded(journal) else 1

    def _departures(self) -> tuple[str, ...]:
        """Print each difference of the broker from AMQP once, with the number of circuits."""
        reasons = (one.verdict.reason.partition(DEPARTS)[2] for one in self._records)
        counted = Counter(reason for reason in reasons if reason)
        return tuple(f"{number} circuits: {reason}" for reason, number in counted.items())


def _run(args: argparse.Namespace) -> int:
    # these need the extra `lab`
    from tallystick.lab.tiers import run_here, run_restart, run_tier  # noqa: PLC0415
    from tallystick.lab.tiers_broker import ask_version, at_url, own_broker  # noqa: PLC0415

    cases = tier_cases(args.tier, args.broker, args.only)
    if args.broker == VM and not args.url:
        book = Logbook(args, len(cases), args.broker, **{"subject.version": __version__})
        run_here(cases, find_profile(args.broker, __version__), book.tell)
        return book.end()
    with ExitStack() as stack:
        stack.enter_context(end_in_order())
        own = own_broker(args.broker, Talk(_say, lambda *_: None)) if not args.url else None
        broker = stack.enter_context(own) if own else at_url(args.url)
        if args.tier == "restart" and broker.restart is None:
            raise UsageError(
                "this tier restarts the broker, so it cannot use one given by --url",
                code="restart",
                hint="leave out --url: a broker is then started for the tier",
            )
        version = asyncio.run(ask_version(broker.address))
        profile = find_profile(args.broker, version)
        book = Logbook(args, len(cases), args.broker, **{"subject.version": version})
        if args.tier == "restart" and broker.restart:
            work = run_restart(
                cases, broker.address, profile, broker.restart, run=book.run, tell=book.tell
            )
        else:
            work = run_tier(
                cases, broker.address, profile, run=book.run, tell=book.tell,
                lanes=args.lanes, limit=args.limit,
            )  # fmt: skip
        run_in_order(work)
        return book.end()


def _say(text: str) -> None:
    print(text, file=sys.stderr)
