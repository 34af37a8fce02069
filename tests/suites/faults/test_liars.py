"""The judgement can fail: a worker that is wrong in one way is found to be wrong in that way."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tallystick.suites.faults.judge import account, judge
from tallystick.suites.faults.run import Plan, run
from tallystick.suites.faults.table import SUBJECTS

LIAR = Path(__file__).with_name("liar.py")
FAULTS = {"kill_worker": 1}
MESSAGES = 150

FINDINGS = {
    "early": {"lost", "effects"},
    "loses": {"lost", "effects"},
    "doubles": {"doubled", "effects"},
    "invents": {"unexpected", "effects"},
    "swaps": {"lost", "unexpected"},
}


@pytest.mark.parametrize("lie", FINDINGS)
def test_a_liar_is_found_out(lie: str) -> None:
    plan = Plan(
        subject=SUBJECTS["redis"],
        messages=MESSAGES,
        faults=FAULTS,
        patience=12.0,
        options="retry_after=2&timeout=5",
        worker=(sys.executable, str(LIAR), lie),
    )
    done = run(plan)
    found = account(done.evidence)
    verdicts = judge("redis", found, messages=MESSAGES, injected=done.injected, wanted=FAULTS)
    assert {one.case.rpartition("/")[2] for one in verdicts if one.reason} == FINDINGS[lie]
