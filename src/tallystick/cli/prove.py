"""`tally prove`: the standard on every subject at hand, and the scoreboard.

Exit 0 when Tallystick itself conforms. What the other subjects do is a finding about them.
"""

from __future__ import annotations

import argparse
import json
import uuid
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tallystick.cli.progress import Progress, end_in_order
from tallystick.report.table import identical_bytes, scoreboard, summarize_all
from tallystick.suites.find import load_standard
from tallystick.suites.prove import Proof, prove
from tallystick.suites.session import Plan
from tallystick.suites.subjects import NAMES

if TYPE_CHECKING:
    from collections.abc import Callable

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
    suite = load_standard()
    subjects = list(dict.fromkeys(args.subjects or NAMES))
    plan = Plan(
        suite.cases,
        {suite.name: suite.version},
        run=str(uuid.uuid4()),
        time=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    )
    with ExitStack() as stack:
        stack.enter_context(end_in_order())
        write: Callable[[str], object] = len
        if args.journal:
            write = stack.enter_context(args.journal.open("w", encoding="utf-8")).write
        bar = stack.enter_context(Progress(len(suite.cases) * len(subjects), subjects[0]))
        proof = prove(
            plan, subjects, begin=bar.rename, write=write, advance=bar.advance, talk=bar.talk
        )
    print(_as_json(proof) if args.json else _as_text(proof))
    return 0 if proof.conforms else 1


def _as_text(proof: Proof) -> str:
    verdict = "conforms" if proof.conforms else "does NOT conform"
    return f"{scoreboard(proof.journals, proof.missing)}\ntallystick {verdict}"


def _as_json(proof: Proof) -> str:
    summary = summarize_all(proof.journals)
    for journal in proof.journals:
        right, every = identical_bytes(journal)
        about = {"byte_vectors": every, "identical": right}
        summary["subjects"][journal.head.subject] |= about
    return json.dumps({**summary, "missing": dict(proof.missing), "conforms": proof.conforms})
