"""`judge(case, result)` alone decides between passed and failed; it is pure.

A case of several steps gives a list of results and expects something of each; pointers then begin
with `/steps/<n>`, and a step that was not answered is a difference too. A rejection that nobody
expected is one difference, not one per missing member. Naming native types is optional in the
protocol: where a case asks for them and the subject names none, all else is judged, and what has no
difference is unsupported, never passed. The same holds for warnings, where the implementation has
declared at its start that it has none.
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
_NO_TYPES: Final = "everything else is correct, but the implementation reports no native types"
_WARNINGS: Final = ("warned", "warnings")
_NO_WARNINGS: Final = (
    "everything else is correct, but the implementation declares that it has no warnings"
)
_MOST_DIFFERENCES: Final = 20
_LONGEST_VALUE: Final = 2000


def judge(
    case: Case, result: dict[str, Any], milliseconds: float = 0.0, *, warnings: bool = True
) -> Verdict:
    """Compare the implementation's answer with what the case expects.

    `warnings` is False when the implementation has declared that it never warns.
    """
    expect = case.expect if warnings else _without_warnings(case.expect)
    differences = tuple(
        _shorten(one)
        for one in islice(_differences(case.operation, expect, result), _MOST_DIFFERENCES)
    )
    if not differences and _lacks_types(case.expect, result):
        return Verdict(case.name, Outcome.UNSUPPORTED, _NO_TYPES, (), milliseconds)
    if not differences and not warnings and _asks_for_warning(case.expect):
        return Verdict(case.name, Outcome.UNSUPPORTED, _NO_WARNINGS, (), milliseconds)
    outcome = Outcome.FAILED if differences else Outcome.PASSED
    return Verdict(case.name, outcome, "", differences, milliseconds)


def _lacks_types(expect: dict[str, Any], result: dict[str, Any]) -> bool:
    """Say whether types were asked for and none were named, in the case or in a step of it."""
    steps = (
        zip(expect.get(STEPS, ()), result.get(STEPS, ()), strict=True) if STEPS in expect else ()
    )
    own = bool(expect.get(_TYPES)) and _TYPES not in result
    return own or any(_lacks_types(*step) for step in steps)


def _without_warnings(expect: dict[str, Any]) -> dict[str, Any]:
    """Leave out what a case says about warnings, in the case and in each of its steps."""
    rest = {name: wanted for name, wanted in expect.items() if name not in _WARNINGS}
    if STEPS in rest:
        rest[STEPS] = [_without_warnings(step) for step in rest[STEPS]]
    return rest


def _asks_for_warning(expect: dict[str, Any]) -> bool:
    own = any(expect.get(name) for name in _WARNINGS)
    return own or any(_asks_for_warning(step) for step in expect.get(STEPS, ()))


def _differences(
    operation: str, expect: dict[str, Any], result: dict[str, Any]
) -> Iterator[Difference]:
    if operation != STEPS:
        yield from _apply(expect, result)
        return
    expected, answered = expect[STEPS], result[STEPS]
    for number, (wanted, one) in enumerate(zip_longest(expected, answered, fillvalue=...)):
        if wanted is ... or one is ...:
            yield Difference(f"/{STEPS}/{number}", wanted, one)
            continue
        for found in _apply(wanted, one):
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
    """Give a text that UTF-8 can carry: a lone surrogate becomes its escape."""
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
