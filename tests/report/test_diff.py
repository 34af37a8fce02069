"""Laws of the comparison of two runs."""

from __future__ import annotations

import pytest

from tallystick.core.journal import Foot, Head, Journal, Record, count
from tallystick.core.verdict import Outcome, Verdict
from tallystick.report.diff import CHANGES, compare_journals, regressed, show_changes

P, F, E, U = Outcome.PASSED, Outcome.FAILED, Outcome.ERRORED, Outcome.UNSUPPORTED


def journal(*outcomes: Outcome, known: str = "", subject: str = "go") -> Journal:
    records = tuple(Record(Verdict("s/a", one), known) for one in outcomes)
    return Journal(Head("run", "2026-11-16T00:00:00Z", "s", subject), records, Foot(count(records)))


def change(old: Journal, new: Journal) -> str:
    changes = compare_journals([old], [new])
    assert sum(map(len, changes.values())) <= 1
    return next((kind for kind, names in changes.items() if names), "")


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [((P,), (F,), "new"), ((U,), (F,), "new"), ((), (E,), "new"), ((P,), (P,), ""),
     ((F,), (F,), ""), ((F,), (P,), "fixed"), ((E,), (P,), "fixed"), ((F,), (E,), "changed"),
     ((F,), (U,), "changed"), ((), (P,), "appeared"), ((), (U,), "appeared"),
     ((U,), (P,), "appeared"), ((P,), (), "gone"), ((U,), (), "gone"), ((P,), (U,), "gone"),
     ((P,), (P, F), "flaky"), ((P, F), (F,), "flaky"), ((F, P, P), (P,), "flaky"),
     ((P,), (F, F), "new"), ((P, P), (P,), "")],
)  # fmt: skip
def test_what_happened_to_a_case(
    old: tuple[Outcome, ...], new: tuple[Outcome, ...], kind: str
) -> None:
    assert change(journal(*old), journal(*new)) == kind


def test_a_failure_that_is_known_is_no_new_one() -> None:
    assert change(journal(P), journal(F, known="issue 7")) == "changed"
    assert change(journal(F, known="issue 7"), journal(F)) == "new"


def test_subjects_are_kept_apart() -> None:
    old = [journal(P), journal(F, subject="java")]
    new = [journal(F), journal(F, subject="java")]
    assert compare_journals(old, new)["new"] == ["go: s/a"]


def test_several_runs_of_a_case_in_several_journals_are_one_case() -> None:
    assert compare_journals([journal(P)], [journal(P), journal(F)])["flaky"] == ["go: s/a"]


def test_new_failures_and_gone_cases_close_a_gate_and_flaky_ones_do_not() -> None:
    closing = {kind for kind in CHANGES if regressed({k: ["x"] * (k == kind) for k in CHANGES})}
    assert closing == {"new", "gone"}


def test_changes_are_told_and_so_is_that_there_are_none() -> None:
    assert show_changes(compare_journals([journal(P)], [journal(F)])) == "new       go: s/a\n"
    assert show_changes(compare_journals([journal(P)], [journal(P)])) == "nothing changed\n"
