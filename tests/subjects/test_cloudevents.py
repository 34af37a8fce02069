"""What the CloudEvents SDKs make of our own cases and of the official ones: measured, and pinned.

The versions are pinned, so these numbers change only when a subject, a judge or a case does. For
`cloudevents` 2.2.0 the fact sheet counts 28 of 43: it takes any exception for a rejection and loops
over batches, which that package does not have. By its own word it is 21.
"""

from __future__ import annotations

import base64
import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.official import CLOUDEVENTS, needs

from tallystick.core.journal import Journal
from tallystick.core.verdict import Outcome
from tallystick.report.events_table import count_parts
from tallystick.suites.cloudevents import CONFORMANCE, load_cloudevents
from tallystick.suites.protocol import Answer
from tallystick.suites.session import Plan, run_plan
from tallystick.suites.subject import Deadlines
from tallystick.suites.subjects import OURS, for_suite, open_subject

FOLDER = Path(__file__).parents[2] / "subjects"
VERSIONS = {
    "cloudevents-python": "2.2.0",
    "cloudevents-pydantic": "0.2.0",
    "cloudevents-node": "10.0.0",
    "cloudevents-go": "v2.16.2",
    "cloudevents-java": "4.0.1",
}
MINIMAL = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
COUNTS = {
    ("cloudevents-python", "json"): (21, 8, 5, 9),
    ("cloudevents-pydantic", "json"): (40, 3, 0, 0),
    ("cloudevents-node", "json"): (17, 24, 0, 2),
    ("cloudevents-go", "json"): (36, 5, 0, 2),
    ("cloudevents-go", "protobuf"): (17, 9, 0, 7),
    ("cloudevents-java", "json"): (25, 9, 0, 9),
    ("cloudevents-java", "protobuf"): (15, 11, 0, 7),
}
"""Passed, failed, errored, unsupported. A part that is not here is unsupported as a whole."""
OWN_COUNTS = {
    ("cloudevents-python", "own/json"): (34, 92, 27, 42),
    ("cloudevents-pydantic", "own/json"): (143, 50, 2, 0),
    ("cloudevents-node", "own/json"): (44, 112, 14, 25),
    ("cloudevents-go", "own/json"): (127, 45, 1, 22),
    ("cloudevents-go", "own/protobuf"): (33, 24, 0, 10),
    ("cloudevents-java", "own/json"): (105, 47, 1, 42),
    ("cloudevents-java", "own/protobuf"): (34, 23, 0, 10),
}
"""The same for our own cases, by format: what a clone alone shows."""


@cache
def journal(name: str) -> Journal:
    suite = load_cloudevents(CLOUDEVENTS, print)
    cases = suite.cases
    return run_plan(Plan(cases, {suite.name: suite.version}, run="r", time="t"), name)


def ask(name: str, operation: str, **given: Any) -> Answer:
    subject = open_subject(name, Deadlines(), lambda _: None)
    try:
        subject.start()
        return subject.call("tests/subjects", operation, {"format": "json", **given})
    finally:
        assert subject.stop() == ()


def read(name: str, event: dict[str, Any] | str, kind: str = "event", **given: Any) -> Answer:
    text = event if isinstance(event, str) else json.dumps(event)
    body = base64.b64encode(text.encode()).decode()
    return ask(name, "ce_read", kind=kind, body_base64=body, **given)


def test_every_sdk_of_the_table_is_tested_here() -> None:
    assert for_suite("cloudevents", [OURS, "tallystick-go", *VERSIONS]) == [OURS, *VERSIONS]


@pytest.mark.parametrize("name", VERSIONS)
def test_an_sdk_is_the_one_that_is_pinned(name: str) -> None:
    head = journal(name).head
    assert head.versions["subject.name"] == name
    assert head.versions["subject.version"] == VERSIONS[name]


@pytest.mark.parametrize("name", VERSIONS)
def test_an_sdk_reads_back_what_it_wrote(name: str) -> None:
    event = {**MINIMAL, "time": "2018-04-05T17:31:00Z", "data": {"json": {"a": [1, "b"]}}}
    written = ask(name, "ce_write", event=event).result
    assert written is not None
    body = base64.b64decode(written["bytes_base64"]).decode()
    assert json.loads(body)["data"] == {"a": [1, "b"]}
    found = read(name, body).result
    assert found is not None
    assert found["event"]["data"] == event["data"]


@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.parametrize("part", ["own/json", "own/protobuf", "own/xml", "own/avro"])
def test_our_own_cases_score_as_they_were_measured(name: str, part: str) -> None:
    counts = count_parts(journal(name))[part]
    whole = (0, 0, 0, sum(counts.values()))
    assert tuple(counts.values()) == OWN_COUNTS.get((name, part), whole)


@needs(CONFORMANCE)
@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.parametrize("part", ["json", "protobuf", "xml"])
def test_the_official_cases_score_as_they_were_measured(name: str, part: str) -> None:
    counts = count_parts(journal(name))[part]
    whole = (0, 0, 0, sum(counts.values()))
    assert tuple(counts.values()) == COUNTS.get((name, part), whole)


def test_tallystick_passes_every_case() -> None:
    assert {record.verdict.outcome for record in journal(OURS).records} == {Outcome.PASSED}


def test_a_crash_of_the_python_sdk_is_no_rejection() -> None:
    refused = read("cloudevents-python", {**MINIMAL, "id": ""}).result
    assert refused is not None
    assert refused["rejected"].startswith("CloudEventValidationError")
    crashed = read("cloudevents-python", {**MINIMAL, "time": "lunchtime"})
    assert crashed.result is None
    assert (crashed.error or "").startswith("ValueError")


@needs(CONFORMANCE)
def test_with_crashes_taken_for_rejections_the_python_sdk_has_25_of_its_35_events() -> None:
    """The fact sheet's rule: with three batches, looped over, that is its 28 of 43."""
    verdicts = [
        r.verdict
        for r in journal("cloudevents-python").records
        if r.verdict.case.startswith("cloudevents/json/")
    ]
    turned_away = [
        v for v in verdicts if v.outcome is Outcome.ERRORED and "/invalid-events/" in v.case
    ]
    passed = [v for v in verdicts if v.outcome is Outcome.PASSED]
    assert len(passed) + len(turned_away) == 25


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("cloudevents-go", json.dumps({**MINIMAL, "data_base64": 5}, separators=(",", ":"))),
        ("cloudevents-java", "null"),
        ("cloudevents-node", "null"),
        ("cloudevents-pydantic", {**MINIMAL, "data_base64": 5}),
        ("cloudevents-python", "[]"),
    ],
)
def test_what_breaks_inside_an_sdk_is_an_error(name: str, event: dict[str, Any] | str) -> None:
    answer = read(name, event)
    assert answer.result is None
    assert answer.error


@pytest.mark.parametrize("name", VERSIONS)
def test_an_event_without_a_source_is_rejected_in_the_sdks_own_words(name: str) -> None:
    result = read(name, {key: value for key, value in MINIMAL.items() if key != "source"}).result
    assert result is not None
    assert "source" in result["rejected"]


@pytest.mark.parametrize("name", VERSIONS)
def test_what_an_sdk_does_not_have_is_declared_with_the_reason(name: str) -> None:
    answer = ask(name, "ce_read", kind="event", body_base64="", format="avro")
    assert "avro" in (answer.unsupported or "")
    assert ask(name, "canonical").unsupported


@pytest.mark.parametrize("name", VERSIONS)
def test_a_line_ends_at_a_line_feed_only(name: str) -> None:
    event = {**MINIMAL, "time": "2018-04-05T17:31:00Z", "data": {"json": "\u2028\x85"}}
    given = {"format": "json", "event": event}
    request = {"op": "run", "id": 2**53, "case": "x", "operation": "ce_write", "given": given}
    done = subprocess.run(
        [FOLDER / name / "start"],
        input=f"{json.dumps(request, ensure_ascii=False)}\n".encode(),
        capture_output=True,
        timeout=600,
        check=True,
    )
    answer = json.loads(done.stdout)
    assert answer["id"] == 2**53
    written = json.loads(base64.b64decode(answer["result"]["bytes_base64"]))
    assert written["data"] == "\u2028\x85"


def test_no_lock_file_names_a_registry() -> None:
    for path in (FOLDER / "cloudevents-node" / "package-lock.json", *FOLDER.glob("*/*.txt")):
        assert "resolved" not in path.read_text()
        assert "--index-url" not in path.read_text()
