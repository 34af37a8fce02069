"""`tally outbox`: publish committed messages, and show the waiting ones.

Exit 0 done, 1 finding (`status`, `relay`: some messages cannot be sent), 2 error. The store and the
broker may be set in the environment, where other users of the machine cannot read them.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from dataclasses import asdict
from threading import Event

from tallystick.cli.config.arguments import add_setting
from tallystick.cli.numbers import above_zero, seconds, stamp, wait
from tallystick.cli.urls import URL_HELP
from tallystick.runtime.outbox import Outbox, Status
from tallystick.runtime.outbox.relay import Terms, relay
from tallystick.runtime.shutdown import Signals

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(metavar="VERB")
    created = verbs.add_parser("create", help="create the tables")
    created.set_defaults(run=_create)
    relayed = verbs.add_parser("relay", help="publish the committed messages, until stopped")
    relayed.set_defaults(run=_relay)
    looked = verbs.add_parser("status", help="count the waiting, the sent and the failed messages")
    looked.set_defaults(run=_status)
    again = verbs.add_parser("retry", help="send the failed messages again")
    again.set_defaults(run=_retry)
    for verb in (created, relayed, looked, again):
        add_setting(
            verb, "store", required=True, metavar="URL",
            help="sqlite:///FILE or postgresql://... (default: $TALLY_STORE)",
        )  # fmt: skip
    for verb in (relayed, looked, again):
        verb.add_argument("--json", action="store_true", help="print one JSON document")
    add_setting(
        relayed, "broker", required=True, metavar="URL",
        help=f"{URL_HELP} (default: $TALLY_BROKER)",
    )  # fmt: skip
    relayed.add_argument(
        "--idle", type=wait, help="stop when no message arrived for this many seconds"
    )
    relayed.add_argument(
        "--telemetry",
        action="store_true",
        help="send OpenTelemetry data, as configured in the environment",
    )
    defaults = Terms()
    for name, kind, what in (
        ("batch", above_zero, "messages per batch"),
        ("poll", seconds, "seconds between two polls"),
        ("lease", seconds, "seconds that a relay reserves a queue (SQLite)"),
        ("tries", above_zero, "attempts before a message is marked as failed"),
        ("keep", stamp, "seconds to keep sent rows"),
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
    print(json.dumps(asdict(done)) if args.json else f"{done.sent} sent, {done.faulty} failed")
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
    first = f"{found.pending} waiting{age}; {found.sent} sent; {found.faulty} failed"
    return "\n".join([first, *(f"  {one.id} on {one.queue}: {one.error}" for one in found.faults)])


def _retry(args: argparse.Namespace) -> int:
    outbox = Outbox(args.store)
    try:
        count = outbox.retry_faulty()
    finally:
        outbox.close()
    print(json.dumps({"retried": count}) if args.json else f"{count} will be sent again")
    return 0
