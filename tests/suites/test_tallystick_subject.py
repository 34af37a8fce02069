"""Tallystick as a subject: the same inside this process and as a process of its own."""

from __future__ import annotations

import base64
import io
import sys
from typing import TYPE_CHECKING

from tallystick.core.verdict import Case, Outcome
from tallystick.suites.operations import OPERATIONS
from tallystick.suites.protocol import write
from tallystick.suites.run import run_cases
from tallystick.suites.subject import Deadlines, ProcessSubject
from tallystick.suites.tallystick_subject import TallystickSubject, answer, serve

if TYPE_CHECKING:
    from tallystick.suites.load import Suite

BODY = b'{"job":"urn:a","trace_id":"t","data":{"n":1.0},"meta":{"schema_version":1},"attempts":4}'


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_a_process_gives_the_same_verdicts_as_the_call(public: Suite) -> None:
    command = [sys.executable, "-m", "tallystick.suites.tallystick_subject"]
    process = ProcessSubject(command, Deadlines(60, 60, 60), lambda _: None)
    inside = TallystickSubject()
    try:
        outside = list(run_cases(public.cases, process, process.start()))
    finally:
        notes = process.stop()
    expected = list(run_cases(public.cases, inside, inside.start()))
    assert [(v.case, v.outcome) for v in outside] == [(v.case, v.outcome) for v in expected]
    assert notes == ()


def test_every_operation_it_lists_is_one_it_does() -> None:
    assert TallystickSubject().start().operations == list(OPERATIONS)


def test_an_operation_it_does_not_know_is_unsupported() -> None:
    assert "unsupported" in answer(3, "teleport", {})


def test_a_rejection_is_a_result_with_a_pointer() -> None:
    result = answer(1, "make", {"urn": " ", "queue": "q", "data_base64": b64(b"{}")})["result"]
    assert result["pointer"] == "/job"
    assert result["rejected"]


def test_a_retry_changes_one_number() -> None:
    result = answer(1, "retry", {"body_base64": b64(BODY), "attempts": 5})["result"]
    expected = BODY.replace(b'"attempts":4', b'"attempts":5')
    assert base64.b64decode(result["bytes_base64"]) == expected


def test_a_dead_letter_is_redriven_to_the_message_it_was() -> None:
    block = {"reason": "failed", "original_queue": "q", "attempts": 3, "failed_at": 1}
    dead = answer(1, "dead_letter", {"body_base64": b64(BODY), **block})["result"]
    back = answer(1, "redrive", {"body_base64": dead["bytes_base64"]})["result"]
    expected = BODY.replace(b'"attempts":4', b'"attempts":0')
    assert base64.b64decode(back["bytes_base64"]) == expected


def test_canonical_bytes_are_a_fixed_point() -> None:
    once = answer(1, "canonical", {"body_base64": b64(BODY)})["result"]["bytes_base64"]
    assert answer(1, "canonical", {"body_base64": once})["result"]["bytes_base64"] == once


def test_serving_ends_at_stop_and_at_the_end_of_the_input() -> None:
    start, stop = write({"op": "start", "protocol": 1}), write({"op": "stop"})
    for lines in ([start, stop, start], [start]):
        out = io.BytesIO()
        serve(lines, out)
        assert out.getvalue().count(b"\n") == 1


def test_a_step_can_use_what_an_earlier_step_answered() -> None:
    made = {"urn": "urn:a", "queue": "q", "data_base64": b64(b"{}")}
    body = {"$step": 0, "member": "bytes_base64"}
    case = Case(
        "s/x/1",
        "steps",
        {
            "steps": [
                {"operation": "make", "given": made},
                {"operation": "retry", "given": {"body_base64": body, "attempts": 9}},
            ]
        },
        {"steps": [{"document": {"/attempts": 0}}, {"document": {"/attempts": 9}}]},
    )
    subject = TallystickSubject()
    (verdict,) = run_cases([case], subject, subject.start())
    assert verdict.outcome is Outcome.PASSED


def test_a_step_that_was_refused_ends_the_case_as_failed() -> None:
    made = {"urn": " ", "queue": "q", "data_base64": b64(b"{}")}
    body = {"$step": 0, "member": "bytes_base64"}
    steps = [
        {"operation": "make", "given": made},
        {"operation": "retry", "given": {"body_base64": body, "attempts": 9}},
    ]
    case = Case("s/x/1", "steps", {"steps": steps}, {"steps": [{"document": {}}, {}]})
    subject = TallystickSubject()
    (verdict,) = run_cases([case], subject, subject.start())
    assert [d.pointer for d in verdict.differences] == ["/steps/0/rejected", "/steps/1"]
