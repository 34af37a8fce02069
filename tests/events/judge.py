"""Ask Tallystick a case about events, in this process, and judge what it answers."""

from __future__ import annotations

from typing import Any

from tallystick.core.errors import Refused, Rejected
from tallystick.core.verdict import Case, Difference
from tallystick.events.official import EVENT_RULES
from tallystick.events.subject import EVENT_OPERATIONS
from tallystick.suites.rules import RULES

__all__ = ["answer", "judge"]

ALL_RULES: dict[str, Any] = {**RULES, **EVENT_RULES}


def answer(case: Case) -> dict[str, Any]:
    """Do what the case asks; a rejection is an answer."""
    try:
        return EVENT_OPERATIONS[case.operation](case.given)
    except (Rejected, Refused) as refusal:
        return {"rejected": str(refusal)}


def judge(case: Case, result: dict[str, Any]) -> list[Difference]:
    """Give the differences between an answer and what the case expects."""
    if "rejected" in result and "rejected" not in case.expect:
        return [Difference("/rejected", ..., result["rejected"])]
    return [found for name, want in case.expect.items() for found in ALL_RULES[name](want, result)]
