"""`tally lab clients|run|circuit|attach`: the interop procedure, between clients, over a broker.

`run` starts a broker and the clients, runs the cases and stops them all. `circuit` does the same
for one test of M publishers, N consumers, Z destinations and C circuits, with the names of Appendix
C. `attach` is only the coordinator, for clients that are already running; `interop/testall` calls
it (IOP-22). Exit 0 if nothing failed or errored, 1 if something did, 2 for a usage error or if
nothing could be run.
"""

from __future__ import annotations

import argparse
import json
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from tallystick.cli.numbers import above_zero, port, seconds, seed
from tallystick.cli.outputs.colour import paint_first_words
from tallystick.cli.progress import Progress, end_in_order
from tallystick.core.errors import Unavailable, UsageError
from tallystick.core.journal import Journal
from tallystick.core.verdict import Outcome
from tallystick.lab.cases import DEFAULTS, Settings, pair_groups, read_circuit
from tallystick.lab.clients import (
    Client,
    Started,
    end_clients,
    find_clients,
    find_interop,
    start_client,
)  # fmt: skip
from tallystick.lab.content import envelope_group, field_groups
from tallystick.lab.instance import Group
from tallystick.lab.parameters import CLIENT, SHAPE, TRAFFIC, check_names
from tallystick.lab.profiles import find_profile
from tallystick.lab.session import About, choose, run_lab
from tallystick.lab.state import Limits, Plan
from tallystick.lab.tier_clients import CLIENT_TIERS, tier_groups
from tallystick.report.junit import junit
from tallystick.report.matrix import show_matrix
from tallystick.report.perf import show_perf
from tallystick.report.table import one_line, show_journal, succeeded, summarize
from tallystick.suites.known import read_known

if TYPE_CHECKING:
    from tallystick.lab.shell import Place

__all__ = ["add_options", "add_place", "attach", "read_pairs", "register_run", "run_clients"]

VM: Final = "vm"
BROKERS: Final = (VM, "rabbitmq", "qpid")
_NEWEST: Final = "999"
"""What is wrong with the words shows in any version: it is said before a broker is started."""
_OUTCOMES: Final = {"failed": Outcome.FAILED, "unsupported": Outcome.UNSUPPORTED}


@dataclass(frozen=True, slots=True)
class Book:
    """Where the journal and the captures of a run are written."""

    write: Callable[[str], object] = len
    capture: Callable[[bytes], object] = len


def register_run(verbs: Any) -> None:
    """Add the verbs."""
    lister = verbs.add_parser("clients", help="list the clients and what each one needs")
    lister.add_argument("--json", action="store_true", help="print a JSON list of objects")
    _add_interop(lister)
    lister.set_defaults(run=_clients)
    runner = verbs.add_parser("run", help="start a broker and clients, and run the cases")
    circuit = verbs.add_parser("circuit", help="like `run`, for one test with circuits in parallel")
    circuit.add_argument(
        "parameters",
        nargs="*",
        metavar="NAME=VALUE",
        help="parameters, such as num_circuits=2 num_consumers=4 batches=3",
    )
    runner.add_argument(
        "--tier",
        choices=CLIENT_TIERS,
        help="run a tier (a set of parameter combinations) instead of the test cases",
    )
    add_options(runner)
    runner.set_defaults(run=run_clients, groups=_every_group)
    add_options(circuit)
    circuit.set_defaults(run=run_clients, groups=_circuit_group)
    attached = verbs.add_parser("attach", help="run the cases on clients that are already running")
    attached.add_argument("pairs", nargs="*", metavar="NAME=VALUE", help="parameters (IOP-21)")
    attached.add_argument(
        "--broker", default="broker", metavar="NAME", help="name of the broker in the results"
    )
    add_place(attached)
    _add_options(attached)
    attached.set_defaults(run=attach, groups=_every_group, tier=None)


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where clients listen already, and which."""
    parser.add_argument(
        "-b",
        dest="host",
        default="127.0.0.1",
        metavar="HOST",
        help="host of the broker (%(default)s)",
    )
    parser.add_argument(
        "-p",
        dest="port",
        type=port,
        default=5672,
        metavar="PORT",
        help="port of the broker (%(default)s)",
    )
    parser.add_argument(
        "-v", dest="vhost", default="/", metavar="VHOST", help="virtual host (%(default)s)"
    )
    parser.add_argument("--names", default="", metavar="A,B", help="clients to wait for")
    parser.add_argument(
        "--enlist",
        type=seconds,
        default=3.0,
        metavar="S",
        help="seconds to wait for the clients to enlist",
    )


def _add_interop(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--interop", type=Path, metavar="DIR", help="folder with the clients")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a verb that starts brokers and clients itself."""
    parser.add_argument(
        "--broker", default=VM, metavar="NAME[,NAME]", help=f"one or more of {', '.join(BROKERS)}"
    )
    parser.add_argument("--clients", metavar="A,B", help="languages (default: all that can run)")
    parser.add_argument("--list", action="store_true", help="list the cases, and run nothing")
    _add_interop(parser)
    _add_options(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cases",
        action="append",
        default=[],
        metavar="GLOB",
        help="case names without the broker, such as 'TC*'; repeatable",
    )
    parser.add_argument("--journal", type=Path, metavar="FILE", help="write the journal to FILE")
    parser.add_argument("--capture", type=Path, metavar="FILE",
                        help="write the messages that the envelope cases sent and received to "
                             "FILE")  # fmt: skip
    parser.add_argument("--known", type=Path, metavar="FILE",
                        help="known failures (default: interop/known.toml)")  # fmt: skip
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML to FILE")
    parser.add_argument("--json", action="store_true", help="print one JSON summary")
    parser.add_argument(
        "--seed", type=seed, default=1, metavar="N", help="seed of the message bodies"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="override a parameter, such as P2P_NUM_MESSAGES=5; repeatable",
    )
    parser.add_argument("--opt-out", choices=_OUTCOMES, default="unsupported",
                        help="outcome of a case that a client declined")  # fmt: skip
    parser.add_argument(
        "--parallel", type=above_zero, default=4, metavar="N", help="number of cases at a time"
    )
    parser.add_argument("--timeout", type=seconds, default=30.0, metavar="S",
                        help="maximum seconds to wait for an answer of a client")  # fmt: skip
    parser.set_defaults(settle=Limits().settle)


def _clients(args: argparse.Namespace) -> int:
    found = find_clients(find_interop(args.interop))
    if args.json:
        rows = [
            {"name": c.name, "start": str(c.start), "missing": c.missing} for c in found.values()
        ]
        print(json.dumps(rows))
    for client in found.values() if not args.json else ():
        print(f"{client.name:10} {client.missing or 'ready'}")
    return 0


def read_pairs(given: Sequence[str]) -> dict[str, str]:
    """Read `name=value` words."""
    for one in given:
        if "=" not in one:
            raise UsageError(f"{one!r} is not NAME=VALUE", code="parameter",
                             hint="write for example num_messages=50")  # fmt: skip
    return dict(one.split("=", 1) for one in given)


def run_clients(args: argparse.Namespace) -> int:
    """Run the groups of a verb, on each broker, between clients started for it."""
    found = find_clients(find_interop(args.interop))
    names = _chosen(args.clients, found)
    brokers = dict.fromkeys(args.broker.split(","))
    plans = []
    for broker in brokers:
        if broker not in BROKERS:
            raise UsageError(f"the lab has no broker {broker!r}", code="broker",
                             hint=f"use one of {', '.join(BROKERS)}")  # fmt: skip
        plans.append(_plan(args, broker, _NEWEST, names, read_pairs(args.set))[0])
    if args.list:
        cases = sorted({name for plan in plans for name in _case_names(plan)})
        print(json.dumps(cases, indent=1) if args.json else "\n".join(cases))
        return 0

    def journals(book: Book) -> Iterator[Journal]:
        for broker in brokers:
            with _broker(broker) as (place, version):
                plan, size = _plan(args, broker, version, names, read_pairs(args.set))
                yield _with_clients(
                    args, [found[name] for name in names], plan, size, place, broker, version, book
                )

    return _conclude(args, journals)


def _chosen(given: str | None, found: Mapping[str, Client]) -> tuple[str, ...]:
    if given is None:
        able = tuple(name for name, client in found.items() if not client.missing)
        for name in found.keys() - set(able):
            print(f"tally: {name} does not take part: {found[name].missing}", file=sys.stderr)
        return able
    names = tuple(dict.fromkeys(given.split(",")))
    for name in names:
        if name not in found:
            raise UsageError(f"there is no client {name!r}", code="client",
                             hint=f"use one of {', '.join(found)}")  # fmt: skip
        if found[name].missing:
            raise Unavailable(f"{name}: {found[name].missing}", code="client")
    return names


@contextmanager
def _broker(name: str) -> Iterator[tuple[Place, str]]:
    from tallystick.lab.shell import Place  # noqa: PLC0415 (it needs the extra `lab`)

    if name == VM:
        from tallystick.lab.vm_server import running_vm  # noqa: PLC0415 (one of three)

        with running_vm() as vm:
            yield Place(vm.host, vm.port), vm.version
        return
    from tallystick.brokers.servers import running  # noqa: PLC0415 (one of three)

    with running(name) as server:
        url = urlsplit(server.url)
        vhost = unquote(url.path[1:])
        yield Place(url.hostname or "", url.port or 5672, vhost), server.version


def _every_group(args: argparse.Namespace, settings: Settings, version: str) -> tuple[Group, ...]:
    if args.tier:
        return tier_groups(settings, args.tier, find_profile(settings.broker, version))
    return (*pair_groups(settings), envelope_group(settings), *field_groups(settings))


def _circuit_group(
    args: argparse.Namespace, settings: Settings, _version: str
) -> tuple[Group, ...]:
    return (read_circuit(settings, read_pairs(args.parameters)),)


def _plan(
    args: argparse.Namespace, broker: str, version: str, names: tuple[str, ...],
    given: Mapping[str, str], enlist: float | None = None,
) -> tuple[Plan, int]:  # fmt: skip
    check_names(given, {**DEFAULTS, **SHAPE, **TRAFFIC, **dict.fromkeys(CLIENT)})
    run = uuid.uuid4().hex[:12]
    settings = Settings(run, broker, args.seed, given)
    every = args.groups(args, settings, version)
    groups, size = choose(every, args.cases, names or ("any",))
    if not groups:
        raise UsageError(f"no case matches {' or '.join(args.cases)!r}", code="no_cases",
                         hint="`tally lab run --list` lists the cases")  # fmt: skip
    limits = Limits(enlist or args.timeout, args.timeout, args.settle)
    plan = Plan(run, groups, names, limits, args.parallel, _OUTCOMES[args.opt_out],
                key=given.get("control_key", "iop.control"))  # fmt: skip
    return plan, size


def _case_names(plan: Plan) -> Iterator[str]:
    """Give the names `--cases` takes."""
    for group in plan.groups:
        for instance in group.make(plan.names, plan.names):
            yield instance.name.partition("/")[2]


def _known(args: argparse.Namespace, broker: str) -> Mapping[str, str]:
    """Read the failures that are known: from the file given, or that beside the clients."""
    path: Path = args.known or find_interop(getattr(args, "interop", None)) / "known.toml"
    if args.known is None and not path.is_file():
        return {}
    return read_known(path.read_bytes(), toml=path.suffix == ".toml", subject=broker)


def _about(broker: str, version: str, args: argparse.Namespace) -> About:
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    versions = {"subject.name": broker, "subject.version": version, "seed": str(args.seed)}
    return About(now, broker, versions)


def _with_clients(
    args: argparse.Namespace,
    clients: Sequence[Client],
    plan: Plan,
    size: int,
    place: Place,
    broker: str,
    version: str,
    book: Book,
) -> Journal:
    started: list[Started] = []

    def finish() -> list[str]:
        killed = end_clients(started)
        started.clear()
        return [f"{name} did not stop and was killed" for name in killed]

    try:
        started += [start_client(one, place, read_pairs(args.set), _say) for one in clients]
        with Progress(size, broker) as bar:
            return run_lab(
                plan, place, _about(broker, version, args), write=book.write,
                advance=bar.advance, finish=finish, known=_known(args, broker),
                capture=book.capture,
            )  # fmt: skip
    finally:
        end_clients(started, patience=0.0)


def _say(line: str) -> None:
    print(one_line(line), file=sys.stderr, flush=True)


def attach(args: argparse.Namespace) -> int:
    """Run the groups of a verb on clients that listen already."""
    from tallystick.lab.shell import Place  # noqa: PLC0415 (it needs the extra `lab`)

    given = {**read_pairs(args.pairs), **read_pairs(args.set)}
    names = tuple(one for one in args.names.split(",") if one)
    place = Place(args.host, args.port, args.vhost,
                  given.get("username", "guest"), given.get("password", "guest"))  # fmt: skip

    def journals(book: Book) -> Iterator[Journal]:
        plan, size = _plan(args, args.broker, "", names, given, args.enlist)
        with Progress(size, args.broker) as bar:
            about = _about(args.broker, "", args)
            known = _known(args, args.broker)
            yield run_lab(plan, place, about, write=book.write, advance=bar.advance, known=known,
                          capture=book.capture)  # fmt: skip

    return _conclude(args, journals)


def _conclude(
    args: argparse.Namespace,
    journals: Callable[[Book], Iterator[Journal]],
) -> int:
    with ExitStack() as stack:
        stack.enter_context(end_in_order())
        book = Book()
        if args.journal:
            write = stack.enter_context(args.journal.open("w", 1, encoding="utf-8")).write
            book = replace(book, write=write)
        if args.capture:
            book = replace(book, capture=stack.enter_context(args.capture.open("wb")).write)
        done = list(journals(book))
    if args.junit:
        args.junit.write_text(junit(done), encoding="utf-8")
    if args.json:
        print(json.dumps(summarize(done), indent=1))
    else:
        shows = (show_matrix, show_perf, show_journal)
        parts = [part for one in done for part in (show(one) for show in shows) if part]
        print(paint_first_words("\n".join(parts)), end="")
    if not any(journal.records for journal in done):
        raise Unavailable("no client enlisted, so no case was run", code="nobody",
                          hint="start clients with: interop/startall -b HOST -p PORT")  # fmt: skip
    return 0 if all(map(succeeded, done)) else 1
