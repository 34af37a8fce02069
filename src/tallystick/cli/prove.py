"""`tally prove`: the standard and the CloudEvents cases on every subject at hand; the scoreboards.

The exit code is about Tallystick: 0 when it conforms, 1 when it does not. What the other subjects
do is a finding about them, and when Tallystick is not among the chosen nothing is said about it:
that is exit 0, or 2 when none of them could be run.
"""

from __future__ import annotations

import argparse
import json
import sys
import uuid
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallystick.cli.progress import Progress, end_in_order
from tallystick.report.events_table import count_parts, event_scoreboard
from tallystick.report.table import identical_bytes, scoreboard, summarize_all
from tallystick.suites.cloudevents import load_cloudevents
from tallystick.suites.find import CLOUDEVENTS, STANDARD, load_standard
from tallystick.suites.prove import Proof, prove
from tallystick.suites.session import Plan
from tallystick.suites.subjects import NAMES, OURS, for_suite, subject_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from tallystick.suites.load import Suite

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options; there is one verb, and it is the noun."""
    parser.add_argument(
        "--subject", action="append", metavar="NAME|COMMAND", dest="subjects",
        help=f"only these (default: {', '.join(NAMES)})",
    )  # fmt: skip
    parser.add_argument("--journal", type=Path, metavar="FILE", help="write the journals there")
    parser.add_argument("--json", action="store_true", help="one summary object on stdout")
    parser.set_defaults(run=_prove)


def _prove(args: argparse.Namespace) -> int:
    chosen = args.subjects or NAMES
    suites = [load_standard(), load_cloudevents(None, _say)]
    work = [(suite, subjects) for suite in suites if (subjects := for_suite(suite.name, chosen))]
    total = sum(len(suite.cases) * len(subjects) for suite, subjects in work)
    proofs: dict[str, Proof] = {}
    with ExitStack() as stack:
        stack.enter_context(end_in_order())
        write: Callable[[str], object] = len
        if args.journal:
            write = stack.enter_context(args.journal.open("w", encoding="utf-8")).write
        bar = stack.enter_context(Progress(total, subject_name(chosen[0])))
        for suite, subjects in work:
            proofs[suite.name] = prove(
                _plan(suite),
                subjects,
                begin=lambda one: bar.rename(subject_name(one)),
                write=write,
                advance=bar.advance,
                talk=bar.talk,
            )
    conforms = all(proof.conforms for proof in proofs.values()) if OURS in chosen else None
    print(_as_json(proofs, conforms) if args.json else _as_text(proofs, conforms))
    if not any(proof.journals for proof in proofs.values()):
        return 2
    return 1 if conforms is False else 0


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _plan(suite: Suite) -> Plan:
    return Plan(
        suite.cases,
        {suite.name: suite.version},
        run=str(uuid.uuid4()),
        time=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    )


_VERDICTS = {True: "conforms", False: "does NOT conform", None: "was not run"}


def _as_text(proofs: dict[str, Proof], conforms: bool | None) -> str:
    boards = {STANDARD: scoreboard, CLOUDEVENTS: event_scoreboard}
    parts = [boards[name](proof.journals, proof.missing) for name, proof in proofs.items()]
    return "\n".join([*parts, f"{OURS} {_VERDICTS[conforms]}"])


def _as_json(proofs: dict[str, Proof], conforms: bool | None) -> str:
    summary: dict[str, Any] = {}
    for name, proof in proofs.items():
        about = {**_summaries[name](proof), "missing": dict(proof.missing)}
        summary |= about if name == STANDARD else {name: about}
    return json.dumps({**summary, "conforms": conforms})


def _standard(proof: Proof) -> dict[str, Any]:
    summary = summarize_all(proof.journals)
    for journal in proof.journals:
        right, every = identical_bytes(journal)
        summary["subjects"][journal.head.subject] |= {"byte_vectors": every, "identical": right}
    return summary


def _events(proof: Proof) -> dict[str, Any]:
    summary = summarize_all(proof.journals)
    for journal in proof.journals:
        summary["subjects"][journal.head.subject] |= {"parts": count_parts(journal)}
    return summary


_summaries = {STANDARD: _standard, CLOUDEVENTS: _events}
