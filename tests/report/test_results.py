"""Laws of results.json: suite 1.8.0 accepts it, and it never says more than was run."""

from __future__ import annotations

import json
import tarfile
from dataclasses import replace
from datetime import datetime
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from tallystick.core.errors import UsageError
from tallystick.core.journal import Head, Journal, Record
from tallystick.core.verdict import Case, Difference, Outcome, Verdict
from tallystick.report.results import results
from tallystick.suites import redis_sections
from tallystick.suites.load import Suite
from tallystick.suites.public import cache_folder, fetch, load_public, read_member
from tallystick.suites.session import Plan, run_plan

SUITE = Suite("public", "1.8.0", {"trim": "core", "kafka": "kafka", "redis": "redis"}, ())


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    with tarfile.open(fetch(lambda _: None, cache_folder())) as archive:
        found: dict[str, Any] = json.loads(read_member(archive, "schema/results.schema.json"))
        return found


def journal(*verdicts: Verdict) -> Journal:
    versions = {"subject.name": "acme/go", "subject.version": "1.2", "suite.public": "1.8.0"}
    head = Head("run", "2026-11-15T21:00:00Z", "public", "go", versions)
    return Journal(head, tuple(map(Record, verdicts)))


def check(schema: dict[str, Any], found: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(schema).validate(found)
    datetime.fromisoformat(found["generated_at"])


def test_the_schema_accepts_every_outcome(schema: dict[str, Any]) -> None:
    found = results(
        journal(
            Verdict("public/trim/a", Outcome.PASSED),
            Verdict("public/trim/b", Outcome.FAILED, "", (Difference("/x", 1, 2),)),
            Verdict("public/trim/c", Outcome.ERRORED, "died"),
            Verdict("public/trim/d", Outcome.UNSUPPORTED, "ADR-0037 decision 4"),
            Verdict("public/trim/e/f", Outcome.UNSUPPORTED, "not done"),
        ),
        SUITE,
    )
    check(schema, found)
    statuses = {name: case["status"] for name, case in found["sections"]["trim"].items()}
    assert statuses == {"a": "pass", "b": "fail", "c": "fail", "d": "skip", "e/f": "fail"}


def test_a_binding_that_is_not_carried_is_left_out_whole() -> None:
    found = results(
        journal(
            Verdict("public/trim/a", Outcome.UNSUPPORTED, "no"),
            Verdict("public/kafka/a", Outcome.FAILED),
            Verdict("public/kafka/b", Outcome.UNSUPPORTED, "no"),
            Verdict("public/redis/a", Outcome.UNSUPPORTED, "no"),
            Verdict("standard/trim/a", Outcome.PASSED),
        ),
        SUITE,
    )
    assert found["bindings"] == ["kafka"]
    assert {name: list(cases) for name, cases in found["sections"].items()} == {
        "trim": ["a"], "kafka": ["a", "b"],
    }  # fmt: skip


def test_a_part_of_a_suite_has_no_results() -> None:
    whole = replace(SUITE, cases=(Case("public/trim/a", "decode", {}, {}),))
    results(journal(Verdict("public/trim/a", Outcome.PASSED)), whole)
    with pytest.raises(UsageError):
        results(journal(Verdict("standard/trim/a", Outcome.PASSED)), whole)


def test_the_results_of_tallystick_on_the_public_suite_are_valid_and_whole(
    schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_sections, "find_redis", lambda: None)
    suite = load_public(lambda _: None)
    plan = Plan(suite.cases, {"public": suite.version}, "run", "2026-11-15T21:00:00Z")
    found = results(run_plan(plan, "tallystick"), suite)
    check(schema, found)
    assert sum(len(cases) for cases in found["sections"].values()) == 710
    assert sorted(found["bindings"]) == [
        "amqp", "artemis", "asb", "kafka", "otel", "pulsar", "redis", "sqs",
    ]  # fmt: skip
    failing = [
        case
        for cases in found["sections"].values()
        for case in cases.values()
        if case["status"] != "pass"
    ]
    assert len(failing) == 56
    assert all("live Redis" in case["reason"] for case in failing)
