"""`judge(case, result)` is the only place that says passed or failed; it is pure.

A case of several steps gives a list of results and expects something of each; pointers then begin
with `/steps/<n>`, and a step that was not answered is a difference too. A rejection that nobody
expected is one difference, not one per missing member. Naming native types is optional in the
protocol: where a case asks for them and the subject names none, all else is judged, and what has no
difference is unsupported, never passed.
"""

from __future__ import annotations

import json
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.verdict import Case, Difference, Outcome, Verdict
from tallystick.suites.rules import RULES, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["STEPS", "judge", "writable"]

STEPS: Final = "steps"
"""The operation of a case that makes several calls; `given` and `expect` hold one entry each."""

_TYPES: Final = "types"
_NO_TYPES: Final = "all else is right, but the subject names no native types"
_MOST_DIFFERENCES: Final = 20
_LONGEST_VALUE: Final = 2000


def judge(case: Case, result: dict[str, Any], milliseconds: float = 0.0) -> Verdict:
    """Compare what the subject answered with what the case expects."""
    differences = tuple(
        _shorten(one) for one in islice(_differences(case, result), _MOST_DIFFERENCES)
    )
    if not differences and _lacks_types(case.expect, result):
        return Verdict(case.name, Outcome.UNSUPPORTED, _NO_TYPES, (), milliseconds)
    outcome = Outcome.FAILED if differences else Outcome.PASSED
    return Verdict(case.name, outcome, "", differences, milliseconds)


def _lacks_types(expect: dict[str, Any], result: dict[str, Any]) -> bool:
    """Say whether types were asked for and none were named, in the case or in a step of it."""
    steps = (
        zip(expect.get(STEPS, ()), result.get(STEPS, ()), strict=True) if STEPS in expect else ()
    )
    own = bool(expect.get(_TYPES)) and _TYPES not in result
    return own or any(_lacks_types(*step) for step in steps)


def _differences(case: Case, result: dict[str, Any]) -> Iterator[Difference]:
    if case.operation != STEPS:
        yield from _apply(case.expect, result)
        return
    expected, answered = case.expect[STEPS], result[STEPS]
    for number, (expect, one) in enumerate(zip_longest(expected, answered, fillvalue=...)):
        if expect is ... or one is ...:
            yield Difference(f"/{STEPS}/{number}", expect, one)
            continue
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


def writable(text: str) -> str:
    """Give text that UTF-8 can carry: half a surrogate pair becomes its escape."""
    return text.encode("utf-8", "backslashreplace").decode()


def _shorten(difference: Difference) -> Difference:
    pointer = writable(difference.pointer)
    return Difference(pointer, _short(difference.expected), _short(difference.found))


def _short(value: Any) -> Any:
    if value is ...:
        return value
    try:
        text = json.dumps(value, default=str, ensure_ascii=False)
    except RecursionError:
        return "(nested too deep to show)"
    if writable(text) != text:
        value = text = writable(text)
    return (
        value
        if len(text) <= _LONGEST_VALUE
        else f"{text[:_LONGEST_VALUE]}... ({len(text)} characters)"
    )
