"""One run of cases on one implementation, written to a journal line by line.

The head is written before the first case and the foot after the last, so a run that is cut short
leaves an incomplete journal. An implementation that cannot start is not judged: that is
`Unavailable`, with its last output. The clock and the id of the run are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Final

import tallystick
from tallystick.core.errors import Unavailable
from tallystick.core.journal import (
    Foot,
    Head,
    Journal,
    Record,
    count,
    write_foot,
    write_head,
    write_record,
)
from tallystick.suites.judge import writable
from tallystick.suites.known import reason_for
from tallystick.suites.protocol import Breach, Identity
from tallystick.suites.run import run_cases
from tallystick.suites.subject import Deadlines
from tallystick.suites.subjects import open_subject

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tallystick.core.verdict import Case
    from tallystick.suites.subject import Subject

__all__ = ["Plan", "run_plan", "run_subject"]

_NOTHING: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run: the cases, the versions of their suites, and an id and time for the run."""

    cases: Sequence[Case]
    suites: Mapping[str, str]
    run: str
    time: str
    deadlines: Deadlines = field(default_factory=Deadlines)


def run_plan(
    plan: Plan,
    given: str,
    *,
    known: Mapping[str, str] = _NOTHING,
    write: Callable[[str], object] = len,
    advance: Callable[[Record], object] = id,
    talk: Callable[[bytes], None] = lambda _: None,
) -> Journal:
    """Run a plan on the implementation with a name or a command line."""
    subject = open_subject(given, plan.deadlines, talk)
    return run_subject(plan, given, subject, known=known, write=write, advance=advance)


def run_subject(
    plan: Plan,
    given: str,
    subject: Subject,
    *,
    known: Mapping[str, str] = _NOTHING,
    write: Callable[[str], object] = len,
    advance: Callable[[Record], object] = id,
) -> Journal:
    """Run a plan on an open implementation; `write` gets each line, `advance` each record."""
    began = perf_counter()
    notes: tuple[str, ...] = ()
    records: list[Record] = []
    try:
        identity = _start(given, subject)
        head = _head(plan, given, identity)
        write(write_head(head))
        for verdict in run_cases(plan.cases, subject, identity):
            record = Record(verdict, reason_for(known, verdict.case))
            records.append(record)
            write(write_record(record))
            advance(record)
    finally:
        notes = subject.stop()
    foot = Foot(count(records), (perf_counter() - began) * 1000, notes)
    write(write_foot(foot))
    return Journal(head, tuple(records), foot)


def _start(given: str, subject: Subject) -> Identity:
    try:
        return subject.start()
    except Breach as breach:
        if breach.needs:
            raise Unavailable(writable(breach.needs), code="missing_tool") from breach
        raise Unavailable(
            f"implementation {given}: {writable(breach.reason)}",
            code="subject_not_started",
            hint="docs/reference/protocol.md describes the answer to `start`",
        ) from breach


def _head(plan: Plan, given: str, identity: Identity) -> Head:
    versions = {
        "tallystick": tallystick.__version__,
        "subject.name": writable(identity.name),
        "subject.version": writable(identity.version),
        "subject.language": writable(identity.language),
        "subject.library": writable(identity.library),
        **{f"suite.{name}": version for name, version in plan.suites.items()},
    }
    return Head(plan.run, plan.time, "+".join(plan.suites), given, versions)
