"""Laws of what people and programs read."""

from __future__ import annotations

import json
from dataclasses import replace

from tallystick.core.journal import Foot, Head, Journal, Record, count
from tallystick.core.verdict import Difference, Outcome, Verdict
from tallystick.report.diff import compare_journals, show_changes
from tallystick.report.table import (
    identical_bytes,
    scoreboard,
    show_journal,
    succeeded,
    summarize,
)


def journal(*records: Record, subject: str = "go", notes: tuple[str, ...] = ()) -> Journal:
    head = Head("run", "2026-11-15T21:00:00Z", "s", subject, {"subject.name": "acme"})
    return Journal(head, records, Foot(count(records), 1.0, notes))


def record(name: str, outcome: Outcome, known: str = "", reason: str = "") -> Record:
    return Record(Verdict(name, outcome, reason), known)


PASSED = record("s/a/1", Outcome.PASSED)
FAILED = Record(
    Verdict(
        "s/a/2 b", Outcome.FAILED, "", (Difference("/x", 1, "\x1b[31m"), Difference("", {}, ...))
    )
)
ERRORED = record("s/b/1", Outcome.ERRORED, reason="died")
UNSUPPORTED = record("s/b/2", Outcome.UNSUPPORTED, reason="no")


def test_one_subject_gives_a_flat_summary_with_the_names() -> None:
    summary = summarize([journal(PASSED, FAILED, ERRORED, UNSUPPORTED)])
    assert {k: summary[k] for k in ("passed", "failed", "errored", "unsupported", "known")} == {
        "passed": 1, "failed": 1, "errored": 1, "unsupported": 1, "known": 0,
    }  # fmt: skip
    assert summary["not_passed"] == {
        "failed": ["s/a/2 b"], "errored": ["s/b/1"], "unsupported": ["s/b/2"], "known": [],
    }  # fmt: skip
    assert json.loads(json.dumps(summary)) == summary


def test_several_subjects_are_summed_and_kept_apart() -> None:
    summary = summarize([journal(PASSED), journal(FAILED, subject="node")])
    assert (summary["passed"], summary["failed"]) == (1, 1)
    assert summary["subjects"]["node"]["not_passed"]["failed"] == ["s/a/2 b"]


def test_only_a_complete_run_without_failure_error_or_alarm_succeeds() -> None:
    known = record("s/a/3", Outcome.FAILED, "why")
    alarm = record("s/a/3", Outcome.PASSED, "why")
    assert succeeded(journal(PASSED, UNSUPPORTED, known))
    assert not succeeded(journal(PASSED, FAILED))
    assert not succeeded(journal(PASSED, ERRORED))
    assert not succeeded(journal(PASSED, alarm))
    assert not succeeded(Journal(journal().head, (PASSED,)))


def test_what_did_not_pass_is_shown_with_the_differences_and_the_command() -> None:
    text = show_journal(journal(PASSED, FAILED, ERRORED, UNSUPPORTED, notes=("left late",)))
    assert "failed  s/a/2 b\n  at /x\n    expected 1\n    found    " in text
    assert "  at the root\n    expected {}\n    found    nothing\n" in text
    assert "  repeat with: tally suite run 's/a/2 b' --implementation go\n" in text
    assert "errored  s/b/1\n  died\n" in text
    assert "unsupported (1): no\n  s/b/2\n" in text
    assert "note: left late" in text


def test_a_subject_cannot_draw_on_the_terminal() -> None:
    evil = record("s/b/1", Outcome.ERRORED, reason="\x1b[2J\r\x07")
    assert "\x1b" not in show_journal(journal(FAILED, evil))


def test_the_table_counts_by_section() -> None:
    rows = [line.split() for line in show_journal(journal(PASSED, FAILED, ERRORED)).splitlines()]
    assert ["s/a", "1", "1", ".", "."] in rows
    assert ["s/b", ".", ".", "1", "."] in rows
    assert ["all", "1", "1", "1", "0"] in rows


def test_known_failures_and_alarms_are_shown_with_their_reason() -> None:
    known = record("s/a/3", Outcome.FAILED, "issue 7")
    alarm = record("s/a/4", Outcome.PASSED, "issue 8")
    text = show_journal(journal(known, alarm))
    assert "known  s/a/3\n  known: issue 7\n" in text
    assert "ALARM  s/a/4\n  it passes now, but is listed as a known failure: issue 8\n" in text


def test_a_run_cut_short_says_so() -> None:
    assert "cut short" in show_journal(Journal(journal().head, (PASSED,)))


def test_the_scoreboard_says_whose_bytes_are_identical() -> None:
    right = record("s/bytes/1", Outcome.PASSED)
    wrong = record("s/bytes/1", Outcome.FAILED)
    text = scoreboard(
        [
            journal(PASSED, right),
            journal(FAILED, wrong, subject="node"),
            journal(UNSUPPORTED, subject="java"),
        ],
        {"babelqueue": "no pip"},
    )
    rows = [line.split() for line in text.splitlines()]
    assert rows[0] == ["section", "go", "node", "java"]
    assert ["s/a", "1/1", "0/1", "-"] in rows
    assert ["all", "2/2", "0/2", "-"] in rows
    assert ["byte-identical", "yes", "no", "(1", "differ)", "-"] in rows
    assert "babelqueue: not run: no pip" in text


def test_an_unsupported_byte_vector_is_not_identical() -> None:
    assert identical_bytes(journal(record("s/bytes/1", Outcome.UNSUPPORTED))) == (0, 1)


EVIL = "\x1b]0;mine\x07\u202e\ud800"


def test_no_name_reason_or_note_can_draw_on_the_terminal() -> None:
    drawn = [record(f"s/a/{EVIL}", outcome, EVIL * with_reason, EVIL)
             for outcome in Outcome for with_reason in (0, 1)]  # fmt: skip
    evil = journal(*drawn, subject=EVIL, notes=(EVIL,))
    evil = replace(evil, head=replace(evil.head, suite=EVIL, versions={"subject.name": EVIL}))
    changes = compare_journals([evil], [journal(PASSED)])
    for text in (show_journal(evil), scoreboard([evil], {EVIL: EVIL}), show_changes(changes)):
        assert all(character.isprintable() for character in text.replace("\n", ""))
        text.encode()


def test_the_command_carries_the_options_of_the_run() -> None:
    text = show_journal(journal(FAILED), ["--cases", "my suite"])
    assert "repeat with: tally suite run 's/a/2 b' --implementation go --cases 'my suite'" in text
