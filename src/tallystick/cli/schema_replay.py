"""`tally schema replay`: what a changed schema would have broken.

    tally schema replay candidate.json --urn urn:babel:orders:created --lake lake

Every accepted message of the URN in the lake is validated against the candidate. It ends with 1
when one would break, and says how many, since when, from which programs, with masked samples.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tallystick.cli.annotations import gate
from tallystick.cli.files import read_bytes

__all__ = ["register", "run"]


def register(subparsers: Any) -> None:
    """Add the verb."""
    parser = subparsers.add_parser(
        "replay",
        help="a candidate schema against all past traffic",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("candidate", metavar="CANDIDATE", help="a schema file, or -")
    parser.add_argument("--urn", required=True)
    parser.add_argument("--lake", type=Path, required=True, help="made by `tally pipeline run`")
    parser.add_argument("--master", default="", help="spread the work over this Spark master")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(run=run)


@gate("tally schema replay")
def run(args: argparse.Namespace) -> int:
    """Replay and give 1 when a message would break."""
    from tallystick.pipeline.replay import replay  # noqa: PLC0415 - Arrow loads when used
    from tallystick.schemas.catalog import parse_schema  # noqa: PLC0415

    schema = parse_schema(read_bytes(args.candidate), args.candidate)
    if args.master:
        from tallystick.pipeline.session import open_session  # noqa: PLC0415

        with open_session(args.master) as session:
            told = replay(args.lake, args.urn, schema, session=session)
    else:
        told = replay(args.lake, args.urn, schema)
    if args.json:
        print(json.dumps(told.as_json(), indent=1, ensure_ascii=False))
        return 1 if told.broken else 0
    print(f"{told.broken} of {told.messages} messages of {told.urn} would break")
    for one in told.producers:
        print(f"  {one.broken:>8} from {one.node or '?'} ({one.lang or '?'}), "
              f"{_time(one.first)} to {_time(one.last)}")  # fmt: skip
    for pointer, keyword, times in told.rules:
        print(f"  {times:>8} {pointer}: {keyword}")
    for sample in told.samples:
        print(f"  e.g. {sample['source']}:{sample['position']}: {sample['masked']}")
    if not told.messages:
        print("tally: no message of this URN is in the lake", file=sys.stderr)
    return 1 if told.broken else 0


def _time(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "?"
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms"
