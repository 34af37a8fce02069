"""`tally redrive BROKER DEAD_LETTER_QUEUE`: move dead letters back to their queues.

A letter leaves the dead-letter queue only after the broker has confirmed it in its own queue. So a
stop or a kill at any time loses nothing, and the next call continues. Messages that are not dead
letters stay. Exit 1 if so many messages stay that the rest was not looked at.
"""

from __future__ import annotations

import argparse
import json
from threading import Event
from typing import Final

from tallystick.cli.counter import CountLine
from tallystick.cli.numbers import from_zero, wait
from tallystick.cli.urls import URL_HELP
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
    add(
        "queue",
        metavar="DEAD_LETTER_QUEUE",
        help="name of the dead-letter queue, such as orders.dlq",
    )
    add(
        "--to",
        default="",
        metavar="QUEUE",
        help="send all messages to QUEUE (default: the queue of each message)",
    )
    add(
        "--only",
        action="append",
        default=[],
        metavar="URN",
        help="send only messages with this URN; repeatable",
    )
    add("--limit", type=from_zero, metavar="N", help="send at most N messages")
    add(
        "--wait",
        type=wait,
        default=1.0,
        metavar="SECONDS",
        help="stop when no message arrived for this time",
    )
    add("--json", action="store_true", help="print the result as one JSON object")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    link = _link(args.url, all_at_once=bool(args.only))
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
