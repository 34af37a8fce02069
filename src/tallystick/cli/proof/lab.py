"""The lab: every client that can run here, over the in-process broker and over real ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tallystick.cli.journal import read_journals
from tallystick.cli.proof.bench import Bench, Found, Step, say
from tallystick.cli.proof.needs import JAVA, SHELL_TOOLS, Need, broker_client, extra
from tallystick.cli.proof.process import run_tally, show_command
from tallystick.core.errors import Unavailable
from tallystick.core.journal import count
from tallystick.core.verdict import Outcome
from tallystick.lab.clients import end_clients, find_clients, find_interop, start_client
from tallystick.report.matrix import cells
from tallystick.report.proof.values import NotRun, StepState

__all__ = ["lab_steps"]

_SHORT: Final = ("--cases", "TC[123]*", "--cases", "Envelope")
"""The cases between all clients: without the large bodies, which take minutes."""


@dataclass(frozen=True, slots=True)
class LabRun:
    """One run of the lab: its name, its files, the options, and what it needs beyond the lab.

    `clients` is the least number of clients for a run between all that start here; a run with 0
    names its clients in the options.
    """

    name: str
    file: str
    options: tuple[str, ...]
    needs: tuple[Need, ...] = ()
    clients: int = 1


_MAVEN: Final = broker_client("qpid", ("mvn",), "Maven", "apt-get install maven")
_DEBIAN: Final = broker_client(
    "rabbitmq", ("apt-get", "dpkg-deb"), "apt-get and dpkg-deb", "they are part of Debian"
)
RUNS: Final = (
    LabRun("vm", "vm", ("--broker", "vm", "--clients", "python"), clients=0),
    LabRun("vm, all clients", "vm-clients", ("--broker", "vm", *_SHORT), clients=2),
    LabRun("qpid", "qpid", ("--broker", "qpid", *_SHORT), (JAVA, _MAVEN)),
    LabRun("rabbitmq", "rabbitmq", ("--broker", "rabbitmq", *_SHORT), (_DEBIAN,)),
)
"""The runs: all cases with the Python client, then the short ones between all clients."""
_OUTSIDE: Final = frozenset({"fetch", "machine"})
"""Codes of a broker that cannot be had here; this says nothing about Tallystick."""


def lab_steps(folder: Path) -> list[Step]:
    """Give the step that starts each client once, which may build it, and a step for each run."""
    find = Step("lab clients", (extra("lab"), SHELL_TOOLS), "tally lab clients", _try_clients)
    return [find, *(_make_step(run, folder) for run in RUNS)]


def _try_clients(bench: Bench) -> Found:
    """Find the clients that start here; one that does not, for want of a tool, is listed."""
    from tallystick.lab.shell import Place  # noqa: PLC0415 (needs the extra)
    from tallystick.lab.vm_server import running_vm  # noqa: PLC0415 (needs the extra)

    with running_vm() as vm:
        place = Place(vm.host, vm.port)
        for client in find_clients(find_interop()).values():
            try:
                started = start_client(client, place, {}, say)
            except Unavailable as error:
                reason = client.missing.removeprefix("it ") or error.message
                bench.not_run.append(NotRun(f"lab client {client.name}", reason))
            else:
                end_clients([started], patience=0.0)
                bench.clients.append(client.name)
    if not bench.clients:
        return Found(StepState.ERRORED, "no client starts here")
    return Found(StepState.PASSED, f"{', '.join(bench.clients)} started")


def _make_step(run: LabRun, folder: Path) -> Step:
    journal, capture = folder / f"lab-{run.file}.jsonl", folder / f"captured-{run.file}.jsonl"
    arguments = (
        "lab", "run", *run.options, "--journal", str(journal), "--capture", str(capture),
    )  # fmt: skip
    work = partial(_run_lab, run, arguments, journal, capture)
    needs = (extra("lab"), SHELL_TOOLS, *run.needs)
    return Step(f"lab over {run.name}", needs, show_command(arguments), work)


def _run_lab(
    run: LabRun, arguments: tuple[str, ...], journal: Path, capture: Path, bench: Bench
) -> Found | NotRun:
    name = f"lab over {run.name}"
    if len(bench.clients) < run.clients:
        wanted = "a second client" if run.clients > 1 else "a client"
        return NotRun(name, f"needs {wanted}", "`tally lab clients` lists them and their tools")
    if run.clients:
        arguments = (*arguments, "--clients", ",".join(bench.clients))
    try:
        answer = run_tally(arguments)
    except Unavailable as error:
        if error.code not in _OUTSIDE:
            raise
        return NotRun(name, error.message)
    (done,) = read_journals(journal)
    bench.lab[run.name] = done
    bench.captures += [journal, capture]
    counts = count(done.records)
    asked = sum(counts.values()) - counts[Outcome.UNSUPPORTED]
    ends = sorted({end for pair in cells(done) for end in pair})
    text = f"{counts[Outcome.PASSED]:,} of {asked:,} cases passed between {', '.join(ends)}"
    state = StepState.FAILED if answer.code else StepState.PASSED
    return Found(state, text, show_command(arguments))
