"""`tally replay CAPTURE... --to BROKER`: send captured messages again, byte for byte.

Everything is read and checked before anything is sent; `--dry-run` ends there. When a broker goes
away in between, or on Ctrl-C, it says with which `--skip` to go on.
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
from tallystick.cli.urls import URL_HELP, find_url
from tallystick.core.capture import DIRECTIONS
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
    add("captures", nargs="+", metavar="CAPTURE", help="a file, or a folder of them")
    add("--to", metavar="BROKER", help=URL_HELP)
    add("--queue", default="", help="send all to this one (default: where each was)")
    add("--direction", choices=DIRECTIONS, default="", help="needed when there are several")
    add("--from-queue", default="", metavar="QUEUE", help="only what was captured there")
    add("--only", action="append", default=[], metavar="URN", help="only these; repeatable")
    add("--since", type=_time, default=0, metavar="TIME", help="RFC 3339, or ns since the epoch")
    add("--until", type=_time, default=inf, metavar="TIME", help="only what was seen before")
    add("--rate", type=per_second, default=inf, metavar="N", help="at most so many a second")
    add(
        "--skip",
        type=from_zero,
        default=0,
        metavar="N",
        help="leave out the first N",
    )
    add("--new-ids", action="store_true", help="another meta.id for each: no other byte changes")
    add("--dry-run", action="store_true", help="say what would be sent, and send nothing")
    add("--json", action="store_true", help="the result as one object on stdout")
    parser.set_defaults(run=_run)


def _time(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is no time, like 2026-01-31T12:00:00Z"
        ) from None
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(
        1970, 1, 1, tzinfo=UTC
    )
    return (since.days * 86_400 + since.seconds) * _NANOSECONDS + since.microseconds * 1000


def _run(args: argparse.Namespace) -> int:
    if not args.to and not args.dry_run:
        raise UsageError("where to?", code="option", hint="--to BROKER, or --dry-run")
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
    link = link_to(find_url(args.to))
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
        print(f"tally: stopped; go on with --skip {args.skip + sent}", file=sys.stderr)
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
