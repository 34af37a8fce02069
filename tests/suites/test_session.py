"""Laws of a run: its journal, its known failures, and the proof over all subjects."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tallystick.core.errors import Unavailable, UsageError
from tallystick.core.journal import count, read
from tallystick.core.verdict import Case
from tallystick.suites.prove import prove
from tallystick.suites.session import Plan, run_plan
from tallystick.suites.subject import Deadlines
from tallystick.suites.subjects import NAMES, OURS, open_subject, subject_name

LIAR = Path(__file__).with_name("liar.py")
BODY = "eyJqb2IiOiJ1cm46YSJ9"
PLAN = Plan(
    [
        Case("own/x/right", "decode", {"body_base64": BODY}, {"members": {"verdict": "ok"}}),
        Case("own/x/wrong", "decode", {"body_base64": BODY}, {"members": {"verdict": "poison"}}),
        Case("own/x/later", "redis_steps", {"needs": "a live thing"}, {}),
    ],
    {"own": "1.0.0"},
    run="run-1",
    time="2026-11-15T21:00:00Z",
    deadlines=Deadlines(60, 60, 60),
)


def liar(mode: str) -> str:
    return f"'{sys.executable}' '{LIAR}' {mode}"


def test_the_lines_written_are_the_journal_returned() -> None:
    lines: list[str] = []
    journal = run_plan(PLAN, OURS, write=lines.append)
    (back,) = read(lines)
    assert [r.verdict.case for r in back.records] == [case.name for case in PLAN.cases]
    assert back.head == journal.head
    assert back.complete
    assert count(back.records) == {
        "passed": 1, "failed": 1, "errored": 0, "unsupported": 1, "known": 0,
    }  # fmt: skip


def test_the_head_says_who_was_tested_with_what() -> None:
    head = run_plan(PLAN, liar("honest")).head
    assert (head.run, head.time, head.suite) == ("run-1", "2026-11-15T21:00:00Z", "own")
    assert head.versions["subject.name"] == "liar"
    assert head.versions["subject.library"] == "json"
    assert head.versions["suite.own"] == "1.0.0"


def test_a_known_failure_runs_and_is_counted_apart() -> None:
    journal = run_plan(PLAN, OURS, known={"own/x/wrong": "issue 9"})
    assert count(journal.records)["known"] == 1
    assert not any(record.alarm for record in journal.records)


def test_a_known_failure_that_passes_raises_an_alarm() -> None:
    journal = run_plan(PLAN, OURS, known={"own/x/right": "issue 9"})
    assert [r.verdict.case for r in journal.records if r.alarm] == ["own/x/right"]


def test_a_run_that_is_interrupted_leaves_a_journal_without_a_foot() -> None:
    lines: list[str] = []

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_plan(PLAN, liar("honest"), write=lines.append, advance=interrupt)
    (journal,) = read(lines)
    assert not journal.complete
    assert len(journal.records) == 1


def test_how_a_subject_ended_stands_in_the_foot() -> None:
    foot = run_plan(PLAN, liar("stops-badly")).foot
    assert foot is not None
    assert foot.notes == ("at stop: ended with exit code 9",)


def test_a_subject_that_cannot_start_is_unavailable_and_says_why() -> None:
    with pytest.raises(Unavailable, match="is not on the PATH"):
        run_plan(PLAN, liar("start-dies"))


def test_a_live_case_is_never_asked() -> None:
    journal = run_plan(PLAN, liar("dies"))
    assert journal.records[2].verdict.reason == "a live thing"


def test_the_proof_lists_who_is_missing_and_why() -> None:
    begun: list[str] = []
    good = Plan(PLAN.cases[:1], PLAN.suites, PLAN.run, PLAN.time, PLAN.deadlines)
    proof = prove(good, [OURS, liar("start-dies"), liar("dies")], begin=begun.append)
    assert proof.conforms
    assert [journal.head.subject for journal in proof.journals] == [OURS, liar("dies")]
    assert list(proof.missing) == [liar("start-dies")]
    assert "is not on the PATH" in proof.missing[liar("start-dies")]
    assert len(begun) == 3


def test_the_proof_needs_tallystick_itself_to_conform() -> None:
    assert not prove(PLAN, [OURS]).conforms
    assert not prove(PLAN, []).conforms


def test_a_subject_is_a_name_or_a_command_line() -> None:
    assert subject_name("tallystick-go") == "tallystick-go"
    assert subject_name("/usr/bin/env python 'a b'") == "env"


@pytest.mark.parametrize("given", ["no-such-program-here", "'", ""])
def test_a_subject_that_makes_no_sense_is_a_usage_error(given: str) -> None:
    with pytest.raises(UsageError):
        open_subject(given, PLAN.deadlines, lambda _: None)


def test_a_named_subject_that_is_not_here_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        open_subject("tallystick-go", PLAN.deadlines, lambda _: None, tmp_path)


def test_every_named_subject_has_a_start() -> None:
    folders = Path(__file__).parents[2] / "subjects"
    missing = [name for name in NAMES if not (folders / name / "start").is_file()]
    assert missing == []
