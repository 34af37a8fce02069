"""`tally capture URL QUEUE -o FOLDER`: keep what is in a queue, and take nothing from it.

It follows the queue until Ctrl-C, `--limit`, `--for` or `--idle`. What was captured is on disk at
once; the files are finished at the end. docs/guides/capture.md says what each broker shows.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from contextlib import closing
from threading import Event

from tallystick.cli.counter import CountLine
from tallystick.cli.numbers import above_zero, from_zero, seconds, wait
from tallystick.cli.urls import URL_HELP, find_url
from tallystick.core.tap import STARTS, Watch
from tallystick.runtime.capture_files import CaptureFiles
from tallystick.runtime.capture_finish import FORMS
from tallystick.runtime.shutdown import Signals
from tallystick.runtime.tap import capture_queue

__all__ = ["register"]

_PEEKED = 1_000
"""How many messages a peek takes at most when nobody says: they are held back meanwhile."""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add = parser.add_argument
    add("url", metavar="BROKER", help=URL_HELP)
    add("queue", metavar="QUEUE")
    add("-o", "--out", required=True, metavar="FOLDER", help="where the files go")
    add("--format", choices=FORMS, default="jsonl", help="of the finished files")
    add("--from", dest="start", choices=STARTS, help="default: earliest; latest with --exchange")
    add("--limit", type=from_zero, metavar="N", help="end after so many frames")
    add("--for", dest="seconds", type=wait, metavar="SECONDS", help="end after so long")
    add("--idle", type=wait, metavar="SECONDS", help="end when nothing came for so long")
    add("--node", default="", help="the name under which it is kept (default: tally)")
    add("--max-bytes", type=above_zero, default=64 << 20, help="begin another file at this size")
    add("--max-age", type=seconds, default=300.0, help="begin another file after so many seconds")
    add("--exchange", default="", help="RabbitMQ: the exchange that feeds the queue")
    add("--key", default="", help="RabbitMQ: the routing key (default: the queue's name)")
    add("--peek", action="store_true", help="RabbitMQ: take messages and put them back")
    add("--json", action="store_true", help="the result as one object on stdout")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    logging.basicConfig(format="tally: %(message)s", stream=sys.stderr)
    watch = Watch(
        queue=args.queue,
        start=args.start or ("latest" if args.exchange else "earliest"),
        peek=args.peek,
        exchange=args.exchange,
        key=args.key,
    )
    stopping = Event()
    files = CaptureFiles(
        args.out,
        form=args.format,
        node=args.node or "tally",
        max_bytes=args.max_bytes,
        max_age=args.max_age,
        strict=True,
    )
    with closing(files), CountLine("frames") as line, Signals(stopping, enabled=True):
        count = capture_queue(
            find_url(args.url),
            watch,
            files,
            limit=args.limit if args.limit is not None else _PEEKED if args.peek else None,
            seconds=args.seconds,
            idle=args.idle if args.idle is not None else 1.0 if args.peek else None,
            stopping=stopping,
            ready=lambda: _say(f"tally: looking at {args.queue}; stop with Ctrl-C"),
            counted=line,
        )
    if args.json:
        print(json.dumps({"captured": count, "queue": args.queue, "folder": args.out}))
    else:
        print(f"captured {count} frames of {args.queue} in {args.out}")
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
