"""A fault run as a journal: a verdict for each demand, the figures and the faults as notes."""

from __future__ import annotations

import tallystick
from tallystick.core.journal import Foot, Head, Journal, Record, count
from tallystick.suites.faults.judge import Account, judge
from tallystick.suites.faults.run import Plan, Run

__all__ = ["record"]


def record(plan: Plan, done: Run, figures: Account, *, run_id: str, time: str) -> Journal:
    """Judge a run and write it down."""
    name = plan.subject.name
    verdicts = judge(
        name, figures, messages=plan.messages, injected=done.injected, wanted=plan.faults
    )
    records = tuple(map(Record, verdicts))
    versions = {
        "tallystick": tallystick.__version__,
        "subject.name": name,
        "subject.version": done.version,
        "seed": str(plan.seed),
    }
    head = Head(run_id, time, "faults", name, versions)
    told = ", ".join(f"{number} {what}" for what, number in figures.figures().items())
    notes = (told, *done.notes)
    return Journal(head, records, Foot(count(records), done.seconds * 1000, notes))
