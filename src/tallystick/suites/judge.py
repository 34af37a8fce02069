"""`judge(case, result)` is the only place that says passed or failed; it is pure.

A case of several steps gives a list of results and expects something of each; pointers then begin
with `/steps/<n>`. A rejection that nobody expected is one difference, not one per missing member.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.verdict import Case, Difference, Outcome, Verdict
from tallystick.suites.rules import RULES, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["STEPS", "judge"]

STEPS: Final = "steps"
"""The operation of a case that makes several calls; `given` and `expect` hold one entry each."""

_MOST_DIFFERENCES: Final = 20
_LONGEST_VALUE: Final = 2000


def judge(case: Case, result: dict[str, Any], milliseconds: float = 0.0) -> Verdict:
    """Compare what the subject answered with what the case expects."""
    differences = tuple(
        _shorten(one) for one in islice(_differences(case, result), _MOST_DIFFERENCES)
    )
    outcome = Outcome.FAILED if differences else Outcome.PASSED
    return Verdict(case.name, outcome, "", differences, milliseconds)


def _differences(case: Case, result: dict[str, Any]) -> Iterator[Difference]:
    if case.operation != STEPS:
        yield from _apply(case.expect, result)
        return
    for number, (expect, one) in enumerate(zip(case.expect[STEPS], result[STEPS], strict=False)):
        for found in _apply(expect, one):
            yield Difference(f"/{STEPS}/{number}{found.pointer}", found.expected, found.found)


def _apply(expect: dict[str, Any], result: dict[str, Any]) -> Iterator[Difference]:
    if "rejected" in result and "rejected" not in expect:
        yield Difference("/rejected", ..., result["rejected"])
        return
    for name, wanted in expect.items():
        try:
            yield from RULES[name](wanted, result)
        except Unreadable as unreadable:
            yield unreadable.difference


def _shorten(difference: Difference) -> Difference:
    return Difference(difference.pointer, _short(difference.expected), _short(difference.found))


def _short(value: Any) -> Any:
    if value is ...:
        return value
    try:
        text = json.dumps(value, default=str)
    except RecursionError:
        return "(nested too deep to show)"
    return (
        value
        if len(text) <= _LONGEST_VALUE
        else f"{text[:_LONGEST_VALUE]}... ({len(text)} characters)"
    )
