"""`tally outbox`: publish what transactions have committed, and look at what waits.

Exit 0 done, 1 a finding (`status`, `relay`: some messages cannot be sent), 2 could not. A store and
a broker may be named in the environment, where other users of the machine cannot read them.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from dataclasses import asdict
from threading import Event

from tallystick.cli.numbers import above_zero, seconds, stamp, wait
from tallystick.core.errors import UsageError
from tallystick.runtime.outbox import Outbox, Status
from tallystick.runtime.outbox.relay import Terms, relay
from tallystick.runtime.shutdown import Signals

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(metavar="VERB")
    created = verbs.add_parser("create", help="make the tables")
    created.set_defaults(run=_create)
    relayed = verbs.add_parser("relay", help="publish what is committed, until stopped")
    relayed.set_defaults(run=_relay)
    looked = verbs.add_parser("status", help="what waits, was sent, and cannot be sent")
    looked.set_defaults(run=_status)
    again = verbs.add_parser("retry", help="try again what could not be sent")
    again.set_defaults(run=_retry)
    for verb in (created, relayed, looked, again):
        verb.add_argument(
            "--store",
            default=os.environ.get("TALLYSTICK_STORE", ""),
            metavar="URL",
            help="sqlite:///FILE or postgresql://...; default: $TALLYSTICK_STORE",
        )
    for verb in (relayed, looked, again):
        verb.add_argument("--json", action="store_true", help="one JSON document on stdout")
    relayed.add_argument(
        "--broker",
        default=os.environ.get("TALLYSTICK_BROKER", ""),
        metavar="URL",
        help="where to publish; default: $TALLYSTICK_BROKER",
    )
    relayed.add_argument("--idle", type=wait, help="end when nothing came for so many seconds")
    relayed.add_argument("--telemetry", action="store_true", help="OpenTelemetry, as set up here")
    defaults = Terms()
    for name, kind, what in (
        ("batch", above_zero, "messages at once"),
        ("poll", seconds, "seconds between looks"),
        ("lease", seconds, "seconds a relay holds a queue (SQLite)"),
        ("tries", above_zero, "before a message that the broker does not take is put aside"),
        ("keep", stamp, "seconds for which sent rows stay"),
    ):
        default = getattr(defaults, name)
        relayed.add_argument(
            f"--{name}", type=kind, default=default, help=f"{what} (default: {default:g})"
        )


def _create(args: argparse.Namespace) -> int:
    outbox = Outbox(args.store)
    outbox.create()
    outbox.close()
    return 0


def _relay(args: argparse.Namespace) -> int:
    if not args.broker:
        raise UsageError("no broker is named", code="broker", hint="--broker redis://127.0.0.1")
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    terms = Terms(args.batch, args.poll, args.lease, args.tries, args.keep)
    stopping = Event()
    with Signals(stopping, enabled=True):
        done = relay(
            args.store,
            args.broker,
            idle=args.idle,
            stopping=stopping,
            terms=terms,
            telemetry=args.telemetry,
        )
    print(json.dumps(asdict(done)) if args.json else f"{done.sent} sent, {done.faulty} faulty")
    return int(done.faulty > 0)


def _status(args: argparse.Namespace) -> int:
    outbox = Outbox(args.store)
    try:
        found = outbox.status()
    finally:
        outbox.close()
    print(json.dumps(asdict(found)) if args.json else _lines(found))
    return int(found.faulty > 0)


def _lines(found: Status) -> str:
    age = "" if found.oldest is None else f", the oldest for {found.oldest:.0f} s"
    first = f"{found.pending} pending{age}; {found.sent} sent; {found.faulty} faulty"
    return "\n".join([first, *(f"  {one.id} on {one.queue}: {one.error}" for one in found.faults)])


def _retry(args: argparse.Namespace) -> int:
    outbox = Outbox(args.store)
    try:
        count = outbox.retry_faulty()
    finally:
        outbox.close()
    print(json.dumps({"retried": count}) if args.json else f"{count} to be tried again")
    return 0
