"""`tally lab fields`, `tally lab clock` and `tally lab clock-reference`.

`clock` tests itself: it starts a reference in another process, whose clock has a known offset, asks
it for the time, and prints the error next to the bound. Exit 1 if an error is outside its bound.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tallystick.brokers.owner import tied
from tallystick.brokers.servers import running
from tallystick.cli.numbers import above_zero, port, whole
from tallystick.cli.progress import end_in_order, run_in_order
from tallystick.core.errors import Unavailable, UsageError
from tallystick.core.extras import check_extra
from tallystick.core.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from tallystick.cli.lab_tiers import Logbook
    from tallystick.lab.clocks import Clock
    from tallystick.lab.raw import Address

__all__ = ["register_tools"]

_BROKERS: Final = {"0-9-1": ("rabbitmq", "qpid"), "1.0": ("artemis", "qpid")}
_INJECTED: Final = 123_456_789_012
_MICROSECOND: Final = 1000.0
_QUEUE: Final = re.compile(r"[A-Za-z0-9_.:@#,/+ -]{1,255}")
"""What our AMQP library takes for the name of a queue; brokers take more."""


def register_tools(verbs: Any) -> None:
    """Add the verbs."""
    from tallystick.cli.lab_tiers import add_outputs  # noqa: PLC0415 (which imports this)

    fields = verbs.add_parser("fields", help="send every field type over a broker and compare")
    fields.add_argument("protocol", choices=list(_BROKERS), help="version of AMQP")
    fields.add_argument(
        "--broker", required=True, choices=("rabbitmq", "qpid", "artemis"), help="broker to test"
    )
    fields.add_argument("--url", help="URL of a running broker (default: start one)")
    fields.add_argument(
        "--only", default="", metavar="NAME", help="name of a case, or a part of it"
    )
    fields.add_argument(
        "--values", type=Path, metavar="FILE",
        help="file with AMQP 1.0 values as JSON (default: those that ship with Tallystick)",
    )  # fmt: skip
    add_outputs(fields)
    fields.set_defaults(run=_fields)
    clock = verbs.add_parser("clock", help="measure the error of a clock against a known offset")
    clock.add_argument(
        "path", choices=("local", "udp", "broker"), help="how to reach the other clock"
    )
    clock.add_argument(
        "--broker",
        default="rabbitmq",
        choices=("rabbitmq", "qpid"),
        help="broker for the path `broker` (%(default)s)",
    )
    clock.add_argument("--url", help="URL of a running broker (default: start one)")
    clock.add_argument(
        "--rounds", type=above_zero, default=10, help="number of estimates (%(default)s)"
    )
    clock.add_argument("--json", action="store_true", help="print one JSON object")
    clock.set_defaults(run=_clock)
    reference = verbs.add_parser(
        "clock-reference", help="answer requests for the time until stopped"
    )
    where = reference.add_mutually_exclusive_group(required=True)
    where.add_argument("--udp", type=port, metavar="PORT", help="UDP port; 0 takes a free one")
    where.add_argument("--url", help="URL of a broker; --queue names the queue")
    reference.add_argument(
        "--queue", type=_queue, default="tally.clock", help="queue of the requests (%(default)s)"
    )
    reference.add_argument("--host", default="127.0.0.1", help="address to listen on")
    reference.add_argument(
        "--inject", type=whole, default=0, metavar="NS", help="offset to add to the clock"
    )
    reference.set_defaults(run=_reference)


def _queue(text: str) -> str:
    if not _QUEUE.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is not a queue name: use 1 to 255 letters, digits, spaces and _.:@#,/+-"
        )
    return text


def _fields(args: argparse.Namespace) -> int:
    if args.broker not in _BROKERS[args.protocol]:
        raise UsageError(
            f"{args.broker} does not support AMQP {args.protocol} in this lab",
            code="protocol",
            hint=f"use one of {', '.join(_BROKERS[args.protocol])}",
        )
    if args.protocol == "1.0":
        return _typed(args)
    if args.values:
        raise UsageError(
            "--values works only with AMQP 1.0",
            code="protocol",
            hint="use `tally lab fields 1.0 ...`",
        )
    return _table_fields(args)


@contextmanager
def _broker(name: str, url: str | None) -> Iterator[dict[str, str]]:
    if url:
        yield {"amqp": url}
        return
    with running(name) as found:
        yield dict(found.urls)


def _asked(url: str) -> tuple[Address, str]:
    """Return the address and version of a broker; an unreachable one is an error with a hint."""
    from tallystick.lab.raw import read_address  # noqa: PLC0415
    from tallystick.lab.tiers_broker import ask_version  # noqa: PLC0415

    address = read_address(url)
    return address, asyncio.run(ask_version(address))


def _table_fields(args: argparse.Namespace) -> int:
    from tallystick.cli.lab_tiers import Logbook  # noqa: PLC0415
    from tallystick.lab.fields import FieldCase, field_cases, judge_field, probe_field  # noqa: PLC0415
    from tallystick.lab.probe import Lane  # noqa: PLC0415
    from tallystick.lab.raw import Gone, Refusal  # noqa: PLC0415

    cases = _chosen(list(field_cases(args.broker)), args.only)

    async def judge(lane: Lane, case: FieldCase) -> Verdict:
        try:
            async with asyncio.timeout(30):
                return judge_field(case, await probe_field(lane, case))
        except (Refusal, Gone, OSError, TimeoutError) as error:
            await lane.discard()
            return Verdict(case.name, Outcome.ERRORED, str(error) or "no answer within 30 s")

    async def work(address: Address, book: Logbook) -> None:
        async with Lane(address, f"tally.{book.run}") as lane:
            for case in cases:
                book.tell(await judge(lane, case))

    with end_in_order(), _broker(args.broker, args.url) as urls:
        address, version = _asked(urls["amqp"])
        book = Logbook(args, len(cases), args.broker, **{"subject.version": version})
        run_in_order(work(address, book))
        return book.end()


def _typed(args: argparse.Namespace) -> int:
    from tallystick.cli.lab_tiers import Logbook  # noqa: PLC0415
    from tallystick.lab.fields_types import round_trip, type_cases  # noqa: PLC0415

    check_extra("artemis")
    cases = _chosen(list(type_cases(args.broker, args.values)), args.only)
    with end_in_order(), _broker(args.broker, args.url) as urls:
        book = Logbook(args, len(cases), args.broker)
        for verdict in round_trip(urls["amqp"], tuple(cases)):
            book.tell(verdict)
        return book.end()


def _chosen(cases: list[Any], only: str) -> list[Any]:
    found = [one for one in cases if one.name == only] or [one for one in cases if only in one.name]
    if not found:
        names = ", ".join(one.name for one in cases[:3])
        raise UsageError(f"no case has {only!r} in its name", code="no_case",
                         hint=f"case names are {names} ...")  # fmt: skip
    return found


def _clock(args: argparse.Namespace) -> int:
    from tallystick.lab.clocks import LocalClock  # noqa: PLC0415
    from tallystick.lab.clocks_net import BrokerClock, UdpClock  # noqa: PLC0415

    with end_in_order():
        if args.path == "local":
            return _report(args, LocalClock(), 0)
        if args.path == "udp":
            with _started("--udp", "0") as port:
                return _report(args, UdpClock("127.0.0.1", int(port)), _INJECTED)
        queue = f"tally.clock.{uuid.uuid4().hex[:8]}"
        with _broker(args.broker, args.url) as urls:
            address, _ = _asked(urls["amqp"])
            with _started("--url", urls["amqp"], "--queue", queue):
                return _report(args, BrokerClock(address, queue), _INJECTED)


@contextmanager
def _started(*options: str) -> Iterator[str]:
    """Start a reference in another process; its first line is its address."""
    command = [sys.executable, "-m", "tallystick", "lab", "clock-reference", *options]
    command += ["--inject", str(_INJECTED)]
    with subprocess.Popen(  # noqa: S603 (our own program)
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **tied()}
    ) as reference:
        try:
            line = reference.stdout.readline().strip() if reference.stdout else ""
            if not line:
                raise Unavailable("the reference clock did not start", code="clock")
            yield line
        finally:
            reference.kill()


def _report(args: argparse.Namespace, clock: Clock, injected: int) -> int:
    found = [clock.estimate() for _ in range(args.rounds)]
    errors = sorted(abs(one.offset - injected) / _MICROSECOND for one in found)
    about = {
        "path": args.path,
        "rounds": args.rounds,
        "error_median_us": round(errors[len(errors) // 2], 3),
        "error_max_us": round(errors[-1], 3),
        "bound_max_us": round(max(one.bound for one in found) / _MICROSECOND, 3),
        "round_trip_min_us": round(min(one.round_trip for one in found) / _MICROSECOND, 3),
        "inside": sum(abs(one.offset - injected) <= one.bound for one in found),
    }
    if args.json:
        print(json.dumps(about))
    else:
        print(
            f"{args.path}: error {about['error_median_us']} us (at most {about['error_max_us']}), "
            f"bound at most {about['bound_max_us']} us, "
            f"inside it {about['inside']} of {args.rounds}"
        )
    return 0 if about["inside"] == args.rounds else 1


def _reference(args: argparse.Namespace) -> int:
    from tallystick.lab.clocks_net import answer_broker, answer_udp  # noqa: PLC0415

    def ready(where: object) -> None:
        print(where, flush=True)

    with suppress(KeyboardInterrupt):  # it has no other end
        if args.udp is not None:
            answer_udp(args.udp, args.inject, ready, args.host)
        else:
            address, _ = _asked(args.url)
            asyncio.run(answer_broker(address, args.queue, args.inject, ready))
    return 0
