"""The suites: our own standard and the CloudEvents cases, on every implementation at hand."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from tallystick.cli.progress import Progress
from tallystick.cli.proof.bench import Bench, Found, Step
from tallystick.cli.proof.needs import extra
from tallystick.core.journal import Journal, count
from tallystick.core.verdict import Outcome
from tallystick.report.proof.values import NotRun, StepState, SuiteBoard
from tallystick.suites.cloudevents import count_official, load_cloudevents, official_line
from tallystick.suites.find import CLOUDEVENTS, load_standard
from tallystick.suites.load import Suite
from tallystick.suites.prove import prove
from tallystick.suites.session import Plan
from tallystick.suites.subjects import OURS, for_suite, subject_name

__all__ = ["suite_steps"]


def suite_steps(bench: Bench) -> list[Step]:
    """Load the suites, and give a step for each that one of the implementations is proved with."""
    events = load_cloudevents(bench.cases, len)
    bench.official, bench.official_cases = official_line(events), count_official(events)
    steps = []
    for suite in (load_standard(), events):
        chosen = for_suite(suite.name, bench.implementations)
        needs = (extra("events"),) if suite.name == CLOUDEVENTS and OURS in chosen else ()
        if chosen:
            command = f"tally suite run '{suite.name}/**'"
            work = partial(_run_suite, suite, chosen)
            steps.append(Step(f"suite {suite.name}", needs, command, work))
    return steps


def _run_suite(suite: Suite, chosen: Sequence[str], bench: Bench) -> Found:
    with Progress(len(suite.cases) * len(chosen), subject_name(chosen[0])) as bar:
        proof = prove(
            _plan(suite),
            chosen,
            begin=lambda implementation: bar.rename(subject_name(implementation)),
            write=bench.write,
            advance=bar.advance,
            talk=bar.talk,
        )
    bench.boards.append(SuiteBoard(suite.name, proof.journals))
    bench.missing[suite.name] = proof.missing
    known = {part.name for part in bench.not_run}
    bench.not_run += [
        NotRun(subject_name(implementation), reason)
        for implementation, reason in proof.missing.items()
        if subject_name(implementation) not in known
    ]
    if not proof.journals:
        return Found(StepState.ERRORED, "none of the implementations could be run")
    failed = OURS in chosen and not proof.conforms
    return Found(StepState.FAILED if failed else StepState.PASSED, _describe(proof.journals))


def _plan(suite: Suite) -> Plan:
    return Plan(
        suite.cases,
        {suite.name: suite.version},
        run=str(uuid.uuid4()),
        time=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    )


def _describe(journals: tuple[Journal, ...]) -> str:
    ours = [journal for journal in journals if journal.head.subject == OURS]
    others = len(journals) - len(ours)
    parts = []
    for journal in ours:
        counts = count(journal.records)
        asked = sum(counts.values()) - counts[Outcome.UNSUPPORTED]
        parts.append(f"{OURS}: {counts[Outcome.PASSED]:,} of {asked:,} cases passed")
    if others:
        parts.append(f"{others} other implementation{'s' if others > 1 else ''} scored")
    return "; ".join(parts)
