"""`tally faults run BROKER|all`: break a real broker and its workers, and count lost messages.

Every broker is started with empty data and stopped at the end. Exit 0 if no message was lost,
invented or handled twice and every fault happened; 1 if not; 2 for a usage error, or if a broker
cannot be started.
"""

from __future__ import annotations

import argparse
import json
import uuid
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tallystick.cli.numbers import from_zero
from tallystick.cli.progress import Progress, end_in_order
from tallystick.core.errors import UsageError
from tallystick.core.extras import EXTRAS, check_extra
from tallystick.core.journal import Journal, write_foot, write_head, write_record
from tallystick.report.table import align, succeeded
from tallystick.suites.faults.judge import Account, account
from tallystick.suites.faults.record import record
from tallystick.suites.faults.run import Plan, run
from tallystick.suites.faults.table import SUBJECTS, Subject, find_subject

__all__ = ["register"]

_MOST_WORKERS: Final = 64
_COLUMNS: Final = (
    "sent", "effects", "lost", "unexpected", "doubled", "duplicated", "absorbed", "recovered",
)  # fmt: skip


def register(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(metavar="VERB")
    listing = verbs.add_parser(
        "list", help="list the brokers, and whether they can be killed and cut off"
    )
    listing.add_argument("--json", action="store_true", help="print one JSON object")
    listing.set_defaults(run=_list)
    runner = verbs.add_parser(
        "run", help="run the faults on one broker, or on all of them one after the other"
    )
    runner.add_argument("broker", metavar="BROKER|all", nargs="+", help=", ".join(SUBJECTS))
    options: tuple[tuple[str, int, str], ...] = (
        ("--messages", 20_000, "number of messages to send"),
        (
            "--kill-broker",
            3,
            "number of times to kill the broker (kill -9) and restart it with its data",
        ),
        (
            "--kill-worker",
            3,
            "number of times to kill a worker (kill -9) while it handles a message",
        ),
        ("--stop-broker", 0, "number of times to pause the broker for 3 s (SIGSTOP, SIGCONT)"),
        ("--cut", 0, "number of times to reset all connections"),
        ("--hang", 0, "number of times to leave connections half open for 3 s, then reset them"),
        ("--workers", 2, "number of worker processes"),
        ("--seed", 1, "seed of the fault schedule"),
    )
    for name, default, text in options:
        runner.add_argument(
            name, type=from_zero, default=default, metavar="N", help=f"{text} (default {default})"
        )
    runner.add_argument("--journal", type=Path, metavar="FILE", help="write the journal to FILE")
    runner.add_argument("--json", action="store_true", help="print one JSON object")
    runner.set_defaults(run=_run)


def _list(args: argparse.Namespace) -> int:
    rows = {name: {"durable": one.durable, "cut": one.proxied} for name, one in SUBJECTS.items()}
    if args.json:
        print(json.dumps(rows, indent=1))
    else:
        said = {True: "yes", False: "no"}
        cells = [[name, said[row["durable"]], said[row["cut"]]] for name, row in rows.items()]
        print("\n".join(align([["broker", "killed", "cut"], *cells])))
    return 0


def _run(args: argparse.Namespace) -> int:
    subjects = _choose(args.broker)
    if not args.messages or args.workers not in range(1, _MOST_WORKERS + 1):
        raise UsageError(
            "a run needs at least one message and one worker",
            code="nothing",
            hint=f"set --messages above 0 and --workers from 1 to {_MOST_WORKERS}",
        )
    for subject in subjects:
        if subject.name in EXTRAS:
            check_extra(subject.name)
    results: list[tuple[Journal, Account]] = []
    with ExitStack() as stack:
        stack.enter_context(end_in_order())
        file = (
            stack.enter_context(args.journal.open("w", encoding="utf-8")) if args.journal else None
        )
        bar = stack.enter_context(Progress(args.messages * len(subjects), "faults"))
        for subject in subjects:
            bar.rename(subject.name)
            journal, figures = _run_one(args, subject, bar)
            results.append((journal, figures))
            for note in journal.foot.notes if journal.foot else ():
                bar.say(f"{subject.name}: {note}")
            if file is not None:
                file.write(write_head(journal.head))
                file.writelines(map(write_record, journal.records))
                file.write(write_foot(journal.foot) if journal.foot else "")
                file.flush()
    _show(results, as_json=args.json)
    return 0 if all(succeeded(journal) for journal, _ in results) else 1


def _choose(names: list[str]) -> list[Subject]:
    return list(SUBJECTS.values()) if names == ["all"] else [find_subject(name) for name in names]


def _plan(args: argparse.Namespace, subject: Subject) -> Plan:
    faults = {
        "kill_broker": args.kill_broker if subject.durable else 0,
        "kill_worker": args.kill_worker,
        "stop_broker": args.stop_broker,
        "cut": args.cut if subject.proxied else 0,
        "hang": args.hang if subject.proxied else 0,
    }
    return Plan(
        subject=subject,
        messages=args.messages,
        faults=faults,
        seed=args.seed,
        workers=args.workers,
    )


def _run_one(args: argparse.Namespace, subject: Subject, bar: Progress) -> tuple[Journal, Account]:
    shown = 0

    def advance(count: int) -> None:
        nonlocal shown
        for _ in range(min(count, args.messages) - shown):
            bar.advance()
        shown = max(shown, min(count, args.messages))

    plan = _plan(args, subject)
    done = run(plan, advance=advance)
    figures = account(done.evidence)
    time = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return record(plan, done, figures, run_id=str(uuid.uuid4()), time=time), figures


def _show(results: list[tuple[Journal, Account]], *, as_json: bool) -> None:
    if as_json:
        told: dict[str, Any] = {
            journal.head.subject: {
                "conforms": succeeded(journal),
                "seed": int(journal.head.versions["seed"]),
                "version": journal.head.versions["subject.version"],
                "seconds": round(journal.foot.milliseconds / 1000, 1) if journal.foot else 0.0,
                **figures.figures(),
                "not_passed": [one.verdict.case for one in journal.records if one.verdict.reason],
            }
            for journal, figures in results
        }
        print(json.dumps(told, indent=1))
        return
    rows = [["broker", *_COLUMNS, "seconds", "verdict"]]
    for journal, figures in results:
        numbers = figures.figures()
        seconds = journal.foot.milliseconds / 1000 if journal.foot else 0.0
        verdict = "conforms" if succeeded(journal) else "FAILS"
        rows.append(
            [
                journal.head.subject,
                *(str(numbers[name]) for name in _COLUMNS),
                f"{seconds:.0f}",
                verdict,
            ]
        )
    print("\n".join(align(rows)))
    for journal, _ in results:
        for one in journal.records:
            if one.verdict.reason:
                print(f"{one.verdict.case}: {one.verdict.reason}")
