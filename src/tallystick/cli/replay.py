"""`tally replay CAPTURE... --to BROKER`: send captured messages again, byte for byte.

Everything is read and checked before anything is sent; `--dry-run` stops there. After Ctrl-C, or
when the broker becomes unreachable, it prints the `--skip` that continues.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from math import inf
from threading import Event
from typing import Any, Final

from tallystick.cli.counter import CountLine
from tallystick.cli.numbers import from_zero, per_second
from tallystick.cli.urls import URL_HELP
from tallystick.core.capture_columns import DIRECTIONS
from tallystick.core.errors import UsageError
from tallystick.runtime.address import link_to
from tallystick.runtime.ids import new_uuid
from tallystick.runtime.replay import Choice, Survey, replay, survey
from tallystick.runtime.shutdown import Signals

__all__ = ["register"]

_STOPPED: Final = 130
_NANOSECONDS: Final = 10**9
_DIGITS: Final = 19
"""Of nanoseconds since the epoch, for some 300 years."""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add = parser.add_argument
    add("captures", nargs="+", metavar="CAPTURE", help="a capture file, or a folder of them")
    add("--to", metavar="BROKER", help=URL_HELP)
    add(
        "--queue",
        default="",
        help="send all messages to this queue (default: the queue of each message)",
    )
    add(
        "--direction",
        choices=DIRECTIONS,
        default="",
        help="direction to send; required if the captures have several",
    )
    add("--from-queue", default="", metavar="QUEUE", help="send only messages captured on QUEUE")
    add(
        "--only",
        action="append",
        default=[],
        metavar="URN",
        help="send only messages with this URN; repeatable",
    )
    add(
        "--since",
        type=_time,
        default=0,
        metavar="TIME",
        help="send only messages seen at or after TIME: RFC 3339, or ns since 1970",
    )
    add(
        "--until",
        type=_time,
        default=inf,
        metavar="TIME",
        help="send only messages seen before TIME",
    )
    add(
        "--rate",
        type=per_second,
        default=inf,
        metavar="N",
        help="send at most N messages per second",
    )
    add(
        "--skip",
        type=from_zero,
        default=0,
        metavar="N",
        help="skip the first N messages",
    )
    add(
        "--new-ids",
        action="store_true",
        help="give each message a new meta.id; no other byte changes",
    )
    add("--dry-run", action="store_true", help="show what would be sent, and send nothing")
    add("--json", action="store_true", help="print the result as one JSON object")
    parser.set_defaults(run=_run)


def _time(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is not a time; write for example 2026-01-31T12:00:00Z"
        ) from None
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(
        1970, 1, 1, tzinfo=UTC
    )
    return (since.days * 86_400 + since.seconds) * _NANOSECONDS + since.microseconds * 1000


def _run(args: argparse.Namespace) -> int:
    if not args.to and not args.dry_run:
        raise UsageError(
            "replay needs a target broker", code="option", hint="pass --to BROKER, or --dry-run"
        )
    choice = Choice(
        direction=args.direction,
        queue=args.from_queue,
        urns=frozenset(args.only),
        since=args.since,
        until=args.until,
    )
    found = survey(args.captures, choice)
    if args.dry_run or not found.total:
        _show(found, args, 0)
        return 0
    link = link_to(args.to)
    transport, stopping = link.open(), Event()
    try:
        with (
            CountLine("frames", found.total - args.skip) as line,
            Signals(stopping, enabled=True),
        ):
            sent = replay(
                found,
                transport,
                link.binding,
                queue=args.queue,
                rate=args.rate,
                skip=args.skip,
                new_id=new_uuid if args.new_ids else None,
                stopping=stopping,
                counted=line,
            )
    finally:
        transport.close()
    _show(found, args, sent)
    if args.skip + sent < found.total:
        print(f"tally: stopped; continue with --skip {args.skip + sent}", file=sys.stderr)
        return _STOPPED
    return 0


def _show(found: Survey, args: argparse.Namespace, sent: int) -> None:
    told: dict[str, Any] = {
        "found": found.total,
        "skipped": min(args.skip, found.total),
        "sent": sent,
        "direction": found.choice.direction,
        "first": found.first,
        "last": found.last,
        "queues": dict(found.queues),
        "urns": dict(found.urns),
    }
    if args.json:
        print(json.dumps(told))
        return
    verb = "would send" if args.dry_run else "sent"
    count = max(found.total - args.skip, 0) if args.dry_run else sent
    print(f"{verb} {count} of {found.total} frames")
    for name in ("queues", "urns"):
        for key, number in sorted(told[name].items()):
            print(f"  {number:>8}  {key or '(no message)'}")
