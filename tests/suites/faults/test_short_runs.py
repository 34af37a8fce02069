"""Brokers and workers die by kill -9 in mid-work: nothing is lost and nothing is made up.

The same as `make soak`, in short: on every broker, each kind of kill once.
"""

from __future__ import annotations

import pytest

from tallystick.suites.faults.judge import account, judge
from tallystick.suites.faults.run import Plan, run
from tallystick.suites.faults.table import SUBJECTS

MESSAGES = 300


@pytest.mark.parametrize("name", SUBJECTS)
def test_nothing_is_lost_when_broker_and_worker_are_killed(name: str) -> None:
    subject = SUBJECTS[name]
    faults = {"kill_broker": 1, "kill_worker": 1} if subject.durable else {"kill_worker": 1}
    plan = Plan(subject=subject, messages=MESSAGES, faults=faults)
    done = run(plan)
    found = account(done.evidence)
    verdicts = judge(name, found, messages=MESSAGES, injected=done.injected, wanted=faults)
    assert [one.reason for one in verdicts if one.reason] == [], done.notes
    assert found.recovered > 0


def test_nothing_is_lost_when_connections_are_cut_or_half_open() -> None:
    faults = {"cut": 2, "hang": 1, "stop_broker": 1}
    plan = Plan(subject=SUBJECTS["redis"], messages=MESSAGES, faults=faults)
    done = run(plan)
    found = account(done.evidence)
    verdicts = judge("redis", found, messages=MESSAGES, injected=done.injected, wanted=faults)
    assert [one.reason for one in verdicts if one.reason] == [], done.notes
