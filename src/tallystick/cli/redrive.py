"""`tally redrive BROKER DEAD_LETTER_QUEUE`: send dead letters back to where they came from.

Each leaves the dead-letter queue after the broker has confirmed it in its own: stopped or killed at
any time it loses nothing, and running it again goes on. What is no dead letter stays. Exit 1 if so
many stay that the rest was not looked at.
"""

from __future__ import annotations

import argparse
import json
from threading import Event
from typing import Final

from tallystick.cli.counter import CountLine
from tallystick.cli.numbers import from_zero, wait
from tallystick.cli.urls import URL_HELP, find_url
from tallystick.runtime.address import Link, link_to, read_address
from tallystick.runtime.redrive import redrive
from tallystick.runtime.shutdown import Signals

__all__ = ["register"]

_STOPPED: Final = 130
_ALL: Final = {"rabbitmq": "prefetch=0"}
"""How a broker hands out more than it would while others are held back: for `--only`."""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add = parser.add_argument
    add("url", metavar="BROKER", help=URL_HELP)
    add("queue", metavar="DEAD_LETTER_QUEUE", help="for example orders.dlq")
    add("--to", default="", metavar="QUEUE", help="send all there (default: where each was)")
    add("--only", action="append", default=[], metavar="URN", help="only these; repeatable")
    add("--limit", type=from_zero, metavar="N", help="send back at most so many")
    add("--wait", type=wait, default=1.0, metavar="SECONDS", help="end when none came for so long")
    add("--json", action="store_true", help="the result as one object on stdout")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    link = _link(find_url(args.url), all_at_once=bool(args.only))
    transport, stopping = link.open(), Event()
    try:
        transport.ensure([args.queue])
        with CountLine("dead letters") as line, Signals(stopping, enabled=True):
            done = redrive(
                link.binding,
                transport,
                args.queue,
                to=args.to,
                only=frozenset(args.only),
                limit=args.limit,
                timeout=args.wait,
                stopping=stopping,
                moved=line,
            )
    finally:
        transport.close()
    if args.json:
        told = {"redriven": done.redriven, "kept": done.skipped, "queues": dict(done.queues)}
        print(json.dumps({**told, **({"full": True} if done.full else {})}))
    else:
        print(f"redriven {done.redriven}, kept {done.skipped}")
        for queue, number in sorted(done.queues.items()):
            print(f"  {number:>8}  {queue}")
    return _STOPPED if stopping.is_set() else int(done.full)


def _link(url: str, *, all_at_once: bool) -> Link:
    address = read_address(url)
    option = _ALL.get(address.broker, "")
    if not all_at_once or not option or option.partition("=")[0] in address.options:
        return link_to(url)
    return link_to(f"{url}{'&' if '?' in url else '?'}{option}")
