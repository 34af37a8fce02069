"""`tally capture URL QUEUE -o FOLDER`: record the messages of a queue without consuming them.

It follows the queue until Ctrl-C, `--limit`, `--for` or `--idle`. Captures are written to disk at
once; the files get their final format at the end. docs/guides/capture.md says what each broker
shows.
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
from tallystick.cli.urls import URL_HELP
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
    add("queue", metavar="QUEUE", help="queue or topic to read")
    add("-o", "--out", required=True, metavar="FOLDER", help="folder for the capture files")
    add("--format", choices=FORMS, default="jsonl", help="format of the finished files")
    add(
        "--from",
        dest="start",
        choices=STARTS,
        help="where to start reading (default: earliest; with --exchange: latest)",
    )
    add("--limit", type=from_zero, metavar="N", help="stop after N frames")
    add("--for", dest="seconds", type=wait, metavar="SECONDS", help="stop after this time")
    add("--idle", type=wait, metavar="SECONDS", help="stop when no message arrived for this time")
    add("--node", default="", help="name of this node in the captures (default: tally)")
    add("--max-bytes", type=above_zero, default=64 << 20, help="start a new file at this size")
    add("--max-age", type=seconds, default=300.0, help="start a new file after this many seconds")
    add("--exchange", default="", help="RabbitMQ: exchange that feeds the queue")
    add("--key", default="", help="RabbitMQ: routing key (default: name of the queue)")
    add("--peek", action="store_true", help="RabbitMQ: take messages and put them back")
    add("--json", action="store_true", help="print the result as one JSON object")
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
            args.url,
            watch,
            files,
            limit=args.limit if args.limit is not None else _PEEKED if args.peek else None,
            seconds=args.seconds,
            idle=args.idle if args.idle is not None else 1.0 if args.peek else None,
            stopping=stopping,
            ready=lambda: _say(f"tally: reading {args.queue}; stop with Ctrl-C"),
            counted=line,
        )
    if args.json:
        print(json.dumps({"captured": count, "queue": args.queue, "folder": args.out}))
    else:
        print(f"captured {count} frame{'' if count == 1 else 's'} of {args.queue} in {args.out}")
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
