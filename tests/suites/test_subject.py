"""Laws of subjects as processes, shown with liars."""

from __future__ import annotations

import sys
from pathlib import Path
from select import select
from typing import TYPE_CHECKING

import pytest

from tallystick.core.errors import Unavailable
from tallystick.core.verdict import Case, Outcome, Verdict
from tallystick.suites.protocol import Breach
from tallystick.suites.run import run_cases
from tallystick.suites.subject import Deadlines, ProcessSubject

if TYPE_CHECKING:
    from collections.abc import Iterator

LIAR = Path(__file__).with_name("liar.py")
PATIENT = Deadlines(start=60, run=60, stop=60)
SHORT = Deadlines(start=60, run=0.3, stop=0.3)


@pytest.fixture
def opened() -> Iterator[list[ProcessSubject]]:
    subjects: list[ProcessSubject] = []
    yield subjects
    for subject in subjects:
        subject.stop()


def liar(mode: str, opened: list[ProcessSubject], deadlines: Deadlines = PATIENT) -> ProcessSubject:
    subject = ProcessSubject([sys.executable, str(LIAR), mode], deadlines, lambda _: None)
    opened.append(subject)
    return subject


def cases(count: int = 3) -> list[Case]:
    return [Case(f"s/x/{n}", "decode", {"n": n}, {"decodes": True}) for n in range(count)]


def run(subject: ProcessSubject, count: int = 3) -> list[Verdict]:
    return list(run_cases(cases(count), subject, subject.start()))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def is_gone_soon(pid: int) -> bool:
    """Wait for a killed process to be gone; the kernel takes a moment."""
    return any(not is_running(pid) or select([], [], [], 0.05)[0] for _ in range(200))


def exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_an_honest_subject_passes_and_is_gone_afterwards(opened: list[ProcessSubject]) -> None:
    subject = liar("honest", opened)
    identity = subject.start()
    verdicts = list(run_cases(cases(), subject, identity))
    assert [v.outcome for v in verdicts] == [Outcome.PASSED] * 3
    assert subject.stop() == ()
    assert not exists(int(identity.version))


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("dies", "signal SIGKILL"),
        ("dies", "no more memory"),
        ("exits", "exit code 7"),
        ("garbage", "Segmentation fault?"),
        ("wrong-id", "answered call 41 instead of call 1"),
        ("both", "exactly one of"),
        ("neither", "exactly one of"),
        ("list-result", "not a protocol message"),
        ("text-id", "not a protocol message"),
        ("nan", "NaN is not a JSON value"),
        ("deep", "nested too deep to compare"),
    ],
)
def test_a_breach_gives_errored_with_what_was_seen(
    mode: str, said: str, opened: list[ProcessSubject]
) -> None:
    verdicts = run(liar(mode, opened))
    assert {v.outcome for v in verdicts} == {Outcome.ERRORED}
    assert said in verdicts[0].reason


@pytest.mark.parametrize("mode", ["hangs", "half", "closes", "flood", "never-reads"])
def test_a_subject_that_does_not_answer_is_cut_off_at_the_deadline(
    mode: str, opened: list[ProcessSubject]
) -> None:
    (verdict,) = run(liar(mode, opened, SHORT), 1)
    assert verdict.outcome is Outcome.ERRORED
    assert ("deadline" in verdict.reason) or ("closed its output" in verdict.reason)


def test_a_subject_that_does_not_read_is_cut_off_too(opened: list[ProcessSubject]) -> None:
    subject = liar("never-reads", opened, SHORT)
    large = Case("s/x/large", "decode", {"body": "x" * 1_000_000}, {})
    (verdict,) = run_cases([large], subject, subject.start())
    assert verdict.reason.startswith("did not read its input before the deadline")


def test_the_beginning_of_an_answer_is_shown(opened: list[ProcessSubject]) -> None:
    (verdict,) = run(liar("half", opened, Deadlines(start=60, run=2, stop=60)), 1)
    assert '{"id":1,"resu' in verdict.reason


def test_an_answer_given_twice_is_a_breach_and_the_next_case_starts_anew(
    opened: list[ProcessSubject],
) -> None:
    first, second, third = run(liar("twice", opened))
    assert (first.outcome, third.outcome) == (Outcome.PASSED, Outcome.PASSED)
    assert (second.outcome, second.reason) == (Outcome.ERRORED, "answered call 1 twice")


def test_a_subject_is_started_again_after_each_breach(opened: list[ProcessSubject]) -> None:
    verdicts = run(liar("odd", opened), 4)
    assert [v.outcome.value for v in verdicts] == ["errored", "passed", "errored", "passed"]


def test_a_subject_that_is_late_again_and_again_is_given_up(opened: list[ProcessSubject]) -> None:
    verdicts = run(liar("hangs", opened, SHORT), 8)
    assert ["stopped after" in v.reason for v in verdicts] == [False] * 5 + [True] * 3
    assert {v.outcome for v in verdicts} == {Outcome.ERRORED}


def test_unsupported_is_declared_and_never_passes(opened: list[ProcessSubject]) -> None:
    verdicts = run(liar("unsupported", opened))
    assert {(v.outcome, v.reason) for v in verdicts} == {
        (Outcome.UNSUPPORTED, "I would rather not")
    }


def test_an_operation_that_is_not_listed_is_unsupported_as_a_whole(
    opened: list[ProcessSubject],
) -> None:
    subject = liar("honest", opened)
    (verdict,) = run_cases([Case("s/x/1", "tier", {}, {})], subject, subject.start())
    assert verdict.outcome is Outcome.UNSUPPORTED
    assert "tier" in verdict.reason


def test_a_subject_that_says_error_is_errored_and_keeps_running(
    opened: list[ProcessSubject],
) -> None:
    verdicts = run(liar("error", opened))
    assert {v.outcome for v in verdicts} == {Outcome.ERRORED}
    assert verdicts[0].reason == "the implementation reported an error: disk full"


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("start-hangs", "deadline"),
        ("start-dies", "is not on the PATH"),
        ("start-garbage", "Welcome!"),
        ("start-other-protocol", "not a protocol message"),
        ("start-without-operations", "operations"),
    ],
)
def test_a_subject_that_cannot_start_says_why_and_is_not_tried_again(
    mode: str, said: str, opened: list[ProcessSubject]
) -> None:
    hurried = Deadlines(start=0.3 if mode == "start-hangs" else 60, run=60, stop=60)
    subject = liar(mode, opened, hurried)
    with pytest.raises(Breach, match="could not start") as caught:
        subject.start()
    assert said in caught.value.reason
    with pytest.raises(Breach, match="could not start"):
        subject.call("s/x/1", "decode", {})


def test_a_program_that_does_not_exist_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        ProcessSubject(["/no/such/program"], PATIENT, lambda _: None).start()


@pytest.mark.parametrize(
    ("mode", "complaint"),
    [("never-stops", "deadline"), ("stops-badly", "exit code 9"), ("honest", "")],
)
def test_a_bad_end_is_noted_and_the_process_is_gone(
    mode: str, complaint: str, opened: list[ProcessSubject]
) -> None:
    subject = liar(mode, opened, Deadlines(start=60, run=60, stop=1 if "never" in mode else 60))
    pid = int(subject.start().version)
    notes = subject.stop()
    assert complaint in "".join(notes)
    assert bool(notes) is bool(complaint)
    assert not exists(pid)


def test_children_of_a_subject_are_ended_with_it(opened: list[ProcessSubject]) -> None:
    subject = liar("grandchild", opened, Deadlines(start=60, run=60, stop=0.3))
    subject.start()
    answer = subject.call("s/x/1", "decode", {})
    assert answer.result is not None
    pid = answer.result["pid"]
    assert is_running(pid)
    subject.stop()
    assert is_gone_soon(pid)


def test_what_a_subject_writes_to_stderr_reaches_the_person() -> None:
    heard: list[bytes] = []
    subject = ProcessSubject([sys.executable, str(LIAR), "dies"], PATIENT, heard.append)
    run(subject, 1)
    assert b"no more memory" in b"".join(heard)


def test_stopping_twice_is_harmless(opened: list[ProcessSubject]) -> None:
    subject = liar("honest", opened)
    subject.start()
    assert subject.stop() == ()
    assert subject.stop() == ()
