"""Compare two runs, case by case.

A case is matched by its implementation and its name. A file may hold several runs of one case; a
case that both passed and failed in one file is `flaky`, neither new nor fixed. `new` is a failure
that was not there before, even if the case is new; `fixed` failed before and passes now; `changed`
fails in another way or became a known failure; `appeared` was run for the first time; `gone` was
run before and is missing now, which a gate must not count as a success.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tallystick.core.journal import Journal, Record
from tallystick.core.verdict import Outcome
from tallystick.report.table import one_line

__all__ = ["CHANGES", "compare_journals", "regressed", "show_changes"]

CHANGES: Final = ("new", "fixed", "flaky", "changed", "appeared", "gone")
_TROUBLE: Final = frozenset({Outcome.FAILED.value, Outcome.ERRORED.value})
_FLAKY: Final = "flaky"


def compare_journals(old: Sequence[Journal], new: Sequence[Journal]) -> dict[str, list[str]]:
    """Return the names of the cases, grouped by the kind of change."""
    before, after = _states(old), _states(new)
    changes: dict[str, list[str]] = {name: [] for name in CHANGES}
    for name in dict.fromkeys([*before, *after]):
        if kind := _change(before.get(name, ""), after.get(name, "")):
            changes[kind].append(name)
    return changes


def _states(journals: Sequence[Journal]) -> dict[str, str]:
    """Return one state for each case: its outcome, or flaky."""
    states: dict[str, str] = {}
    for journal in journals:
        for record in journal.records:
            name = f"{journal.head.subject}: {record.verdict.case}"
            states[name] = _join(states.get(name), record)
    return states


def _join(state: str | None, record: Record) -> str:
    found = str(record.counts_as)
    if state is None:
        return found
    agree = state != _FLAKY and (state in _TROUBLE) == (found in _TROUBLE)
    return found if agree else _FLAKY


def _change(before: str, after: str) -> str:
    if not after:
        return "gone"
    if _FLAKY in (before, after):
        return _FLAKY
    if before == after:
        return ""
    if after in _TROUBLE:
        return "changed" if before in _TROUBLE else "new"
    if after == Outcome.PASSED:
        return "fixed" if before in _TROUBLE else "appeared"
    if after == Outcome.UNSUPPORTED and before == Outcome.PASSED:
        return "gone"
    return "changed" if before else "appeared"


def regressed(changes: dict[str, list[str]]) -> bool:
    """Say whether a gate must close: something fails that did not, or is judged no more."""
    return bool(changes["new"] or changes["gone"])


def show_changes(changes: dict[str, list[str]]) -> str:
    """Give the changes as text; nothing changed is said too."""
    lines = [f"{kind:8}  {name}" for kind, names in changes.items() for name in names]
    return "\n".join(map(one_line, lines or ["nothing changed"])) + "\n"
