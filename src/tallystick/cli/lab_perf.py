"""`tally lab perf`: measure throughput and latency of every ordered pair of clients, one by one.

With `--names` it uses clients that are already running at `-b`, `-p` and `-v`, on any machine;
otherwise it starts a broker and clients.
"""

from __future__ import annotations

import argparse
from typing import Any

from tallystick.cli.lab_run import add_options, add_place, attach, read_pairs, run_clients
from tallystick.cli.numbers import above_zero, from_zero, whole_per_second, whole_seconds
from tallystick.lab.cases import Settings
from tallystick.lab.instance import Group
from tallystick.lab.parameters import LOAD, read_parameters
from tallystick.lab.perf import Load, perf_groups

__all__ = ["register_perf"]


def register_perf(verbs: Any) -> None:
    """Add the verb."""
    perf = verbs.add_parser("perf", help="measure throughput and latency of every pair of clients")
    perf.add_argument(
        "parameters",
        nargs="*",
        metavar="NAME=VALUE",
        help="parameters, such as persistent=true durable=true ack_mode=no_ack",
    )
    plain = Load()
    for name, read, help_text in (
        ("messages", above_zero, "number of messages of the throughput test (%(default)s)"),
        ("rate", whole_per_second, "messages per second of the latency test (%(default)s)"),
        ("duration", whole_seconds, "length of the latency test in seconds (%(default)s)"),
    ):
        perf.add_argument(f"--{name}", type=read, default=getattr(plain, name), metavar="N",
                          help=help_text)  # fmt: skip
    perf.add_argument("--size", type=from_zero, default=plain.size, metavar="BYTES",
                      help="size of each message (%(default)s)")  # fmt: skip
    add_place(perf)
    add_options(perf)
    perf.set_defaults(run=_run, groups=_groups, parallel=1, pairs=())


def _run(args: argparse.Namespace) -> int:
    args.timeout += args.duration
    args.settle = args.timeout
    return attach(args) if args.names else run_clients(args)


def _groups(args: argparse.Namespace, settings: Settings, _version: str) -> tuple[Group, ...]:
    given = read_parameters(read_pairs(args.parameters), LOAD)
    load = Load(args.messages, args.rate, args.duration, args.size, given)
    return perf_groups(settings, load)
