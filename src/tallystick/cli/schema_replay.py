"""`tally schema replay`: find the past messages that a changed schema would reject.

    tally schema replay candidate.json --urn urn:babel:orders:created --lake lake

It validates every accepted message of the URN in the lake against the candidate schema. It exits
with 1 if a message would be rejected, and shows the number, the first and last time, the producers,
and masked samples.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from typing import Any

from tallystick.cli.annotations import gate
from tallystick.cli.config.arguments import add_setting
from tallystick.cli.files import read_bytes

__all__ = ["register", "run"]


def register(subparsers: Any) -> None:
    """Add the verb."""
    parser = subparsers.add_parser(
        "replay",
        help="validate all past traffic against a candidate schema",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "candidate",
        metavar="CANDIDATE",
        help="file with the candidate schema, or - for standard input",
    )
    parser.add_argument("--urn", required=True, help="URN of the messages to validate")
    add_setting(parser, "lake", required=True, help="folder written by `tally pipeline run`")
    parser.add_argument("--master", default="", help="run on this Spark master")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run, needs_extra="capture")


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
