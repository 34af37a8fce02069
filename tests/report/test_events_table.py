"""The scoreboard of the CloudEvents cases tells a crash from a rejection, and counts every case."""

from __future__ import annotations

from tallystick.core.journal import Foot, Head, Journal, Record
from tallystick.core.verdict import Outcome, Verdict
from tallystick.report.events_table import count_parts, event_scoreboard

CASES = ("json/valid-events/a", "json/valid-events/b", "json/valid-batches/c", "own/json/group/d")


def journal(subject: str, *outcomes: str) -> Journal:
    records = tuple(
        Record(Verdict(f"cloudevents/{case}", Outcome(outcome)))
        for case, outcome in zip(CASES, outcomes, strict=True)
    )
    return Journal(Head("r", "t", "cloudevents", subject, {}), records, Foot({}, 0.0, ()))


OURS = journal("tallystick", "passed", "passed", "passed", "passed")
OTHER = journal("other", "errored", "passed", "unsupported", "failed")


def test_a_cell_says_passed_of_asked_and_how_many_crashed() -> None:
    rows = {
        line[:20].strip(): line[20:].split("  ")
        for line in event_scoreboard([OURS, OTHER], {}).splitlines()
    }
    cells = {name: [cell.strip() for cell in row if cell.strip()] for name, row in rows.items()}
    assert cells["section"] == ["tallystick", "other"]
    assert cells["json/valid-events"] == ["2/2", "1/2 1!"]
    assert cells["json/valid-batches"] == ["1/1", "-"]
    assert cells["own/json/group"] == ["1/1", "0/1"]


def test_of_all_counts_what_is_unsupported() -> None:
    board = event_scoreboard([OURS, OTHER], {}).splitlines()
    assert [line.split()[-2:] for line in board if ", total" in line] == [
        ["3/3", "1/3"], ["1/1", "0/1"],
    ]  # fmt: skip


def test_a_subject_that_did_not_run_is_named_with_the_reason() -> None:
    assert "other: not run: no Go here" in event_scoreboard([OURS], {"other": "no Go here"})


def test_the_counts_are_data_too() -> None:
    assert count_parts(OTHER) == {
        "json": {"passed": 1, "failed": 0, "errored": 1, "unsupported": 1},
        "own/json": {"passed": 0, "failed": 1, "errored": 0, "unsupported": 0},
    }


def test_no_subject_can_draw_on_the_terminal() -> None:
    evil = "\x1b[31m\ud800"
    board = event_scoreboard([journal(evil, *["passed"] * 4)], {evil: evil})
    assert all(character.isprintable() for character in board.replace("\n", ""))
