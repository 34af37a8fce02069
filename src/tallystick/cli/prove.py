"""`tally prove`: run every check that this machine can run; print one verdict, write one page.

    tally prove                                 the whole proof, in build/proof
    tally prove --implementation './my-sdk'     the suites alone, on these implementations

The steps: the conformance suites on every installed implementation, the registry gate on the
example registry, the lab over the in-process broker and over real brokers, and the traffic of the
lab through the pipeline. If a tool, an extra or a file is missing, the part that needs it is listed
as `not run`. It never fails the proof.

The verdict is about Tallystick: exit 0 when it conforms, 1 when a step failed, 2 when a step could
not do its work. The scores of the other implementations do not change the exit code.
"""

from __future__ import annotations

import argparse
import platform
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Final

from tallystick import __version__
from tallystick.cli.progress import end_in_order
from tallystick.cli.proof.bench import Bench, Step, run_steps
from tallystick.cli.proof.lab import lab_steps
from tallystick.cli.proof.pages import PAGE, clear_pages, write_details
from tallystick.cli.proof.registry import example_registry, registry_steps
from tallystick.cli.proof.suites import suite_steps
from tallystick.cli.proof.tell import show_proof, summarize_proof
from tallystick.cli.proof.traffic import traffic_steps
from tallystick.cli.suite import add_implementations
from tallystick.report.proof.page import build_proof_page
from tallystick.report.proof.values import Conclusion, ProofReport, StepResult, conclude
from tallystick.suites.subjects import NAMES, OURS

__all__ = ["register"]

_FOLDER: Final = Path("build/proof")
_EXIT: Final = {
    Conclusion.CONFORMS: 0,
    Conclusion.FAILS: 1,
    Conclusion.INCOMPLETE: 2,
    Conclusion.UNTRIED: 0,
}


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options; there is one verb, and it is the noun."""
    parser.description = __doc__
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add_implementations(
        parser, f"run only the suites, on this implementation; repeatable ({', '.join(NAMES)})"
    )
    parser.add_argument(
        "--cases", type=Path, metavar="DIR",
        help="folder of the official CloudEvents files (default: $TALLY_OFFICIAL)",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, metavar="DIR",
        help=f"folder for the pages, journals and tables (default: {_FOLDER})",
    )  # fmt: skip
    parser.add_argument("--journal", type=Path, metavar="FILE",
                        help="write the journals of the suites to FILE")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_prove)


def _prove(args: argparse.Namespace) -> int:
    whole = not args.subjects
    folder: Path | None = args.out or (_FOLDER if whole else None)
    bench = Bench(folder, tuple(args.subjects or NAMES), args.cases)
    began, started = monotonic(), datetime.now(UTC)
    steps = suite_steps(bench)
    if folder:
        clear_pages(folder)
        steps += _other_steps(folder) if whole else []
    with ExitStack() as stack:
        stack.enter_context(end_in_order())
        if args.journal:
            file = stack.enter_context(args.journal.open("w", encoding="utf-8"))
            bench.write = file.write
        results = run_steps(steps, bench)
    if folder:
        write_details(bench)
    report = _report(bench, results, started, monotonic() - began)
    page = folder / PAGE if folder else None
    if page:
        page.write_text(build_proof_page(report, OURS), encoding="utf-8")
    print(summarize_proof(report, bench) if args.json else show_proof(report, page))
    if not any(board.journals for board in report.boards):
        return 2
    return _EXIT[report.conclusion]


def _other_steps(folder: Path) -> list[Step]:
    registry = example_registry()
    return [*registry_steps(registry), *lab_steps(folder), *traffic_steps(folder, registry)]


def _report(
    bench: Bench, results: tuple[StepResult, ...], started: datetime, seconds: float
) -> ProofReport:
    return ProofReport(
        conclusion=conclude(results, ours=OURS in bench.implementations),
        started=started.isoformat(timespec="seconds").replace("+00:00", "Z"),
        seconds=seconds,
        versions={
            "tallystick": __version__,
            "Python": platform.python_version(),
            "machine": f"{platform.system()} {platform.release()}, {platform.machine()}",
        },
        official=bench.official,
        steps=results,
        not_run=tuple(bench.not_run),
        boards=tuple(bench.boards),
        gate=bench.gate,
        lab=dict(bench.lab),
        figures=bench.figures,
        pages=dict(bench.pages),
    )
