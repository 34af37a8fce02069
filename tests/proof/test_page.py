"""The page of a proof: what a person sees of it in a real browser, from disk."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.browser import browse

from tallystick.core.journal import Foot, Head, Journal, Record, count
from tallystick.core.verdict import Outcome, Verdict
from tallystick.report.proof.page import build_proof_page
from tallystick.report.proof.values import (
    Change,
    Conclusion,
    NotRun,
    ProofReport,
    RegistryGate,
    StepResult,
    StepState,
    SuiteBoard,
)
from tallystick.report.proof.verdict import say_verdict

SCRIPT = Path(__file__).parent / "page" / "check.mjs"
HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(1)>"


def journal(subject: str, **cases: Outcome) -> Journal:
    records = tuple(
        Record(Verdict(name.replace("__", "/"), outcome)) for name, outcome in cases.items()
    )
    head = Head("7", "2026-11-16T00:00:00Z", "standard", subject, {})
    return Journal(head, records, Foot(count(records), 1.0, ()))


STEPS = (
    StepResult("suite standard", StepState.PASSED, "tallystick: 2 of 2 cases passed", "c", 1.5),
    StepResult(
        "lab over vm", StepState.FAILED, f"1 of 2 {HOSTILE}", "tally lab run --broker vm", 2
    ),
    StepResult("traffic", StepState.ERRORED, "Spark did not start", "tally pipeline run", 3),
)
REPORT = ProofReport(
    conclusion=Conclusion.FAILS,
    started="2026-11-16T00:00:00Z",
    seconds=61.2,
    versions={"tallystick": "0.2.0", "machine": "Linux"},
    official="official CloudEvents cases: not run (see docs/guides/events.md)",
    steps=STEPS,
    not_run=(NotRun("lab over qpid", "needs Maven", "apt-get install maven"),),
    boards=(
        SuiteBoard(
            "standard",
            (
                journal("tallystick", standard__bytes__1=Outcome.PASSED),
                journal("other", standard__bytes__1=Outcome.FAILED, standard__a__2=Outcome.PASSED),
            ),
        ),
        SuiteBoard(
            "cloudevents",
            (
                journal("tallystick", cloudevents__own__json__read__1=Outcome.PASSED),
                journal("an-sdk", cloudevents__own__json__read__1=Outcome.ERRORED),
            ),
        ),
    ),
    gate=RegistryGate(
        "old.json", "new.json", "breaking", (Change("/type", "r", "breaking", HOSTILE),), '{"a": 1}'
    ),
    lab={"vm": journal("vm", vm__TC1__go__java=Outcome.FAILED, vm__TC1__java__go=Outcome.PASSED)},
    figures={
        "messages": 1200, "delivered": 600, "refused": 0, "lost": 1, "duplicated": 0, "altered": 0,
    },
    pages={"The traffic": "traffic.html"},
)  # fmt: skip


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("proof")
    page = folder / "index.html"
    page.write_text(build_proof_page(REPORT, "tallystick"), encoding="utf-8")
    return browse(page, SCRIPT, folder)


def test_nothing_is_fetched_and_no_text_becomes_code(seen: dict[str, Any]) -> None:
    assert (seen["errors"], seen["elsewhere"], seen["dialogs"]) == ([], [], 0)
    assert HOSTILE in seen["failed"]
    assert HOSTILE in seen["gate"]


def test_the_verdict_stands_at_the_top_with_date_version_machine_and_the_official_line(
    seen: dict[str, Any],
) -> None:
    verdict = "tallystick does NOT conform: see lab over vm, traffic; 1 part not run"
    assert seen["verdict"] == verdict == say_verdict(REPORT, "tallystick")
    assert "bad" in seen["tone"]
    for part in ("2026-11-16T00:00:00Z", "61 s", "tallystick 0.2.0", "Linux", REPORT.official):
        assert part in seen["header"]


def test_what_did_not_pass_comes_before_what_passed(seen: dict[str, Any]) -> None:
    assert seen["sections"] == [
        "failed", "implementations", "not-run", "steps", "standard", "cloudevents", "gate", "lab",
        "traffic",
    ]  # fmt: skip
    order = [seen["failed"].index(name) for name in ("lab over vm: failed", "traffic: errored")]
    assert order == sorted(order)
    assert "tally lab run" in seen["failed"]
    names = [line.split("\t")[0] for line in seen["steps"].splitlines()[1:]]
    assert names == ["lab over vm", "traffic", "suite standard"]


def test_a_proof_without_failures_has_no_section_for_them() -> None:
    page = build_proof_page(
        ProofReport(Conclusion.CONFORMS, "now", 1.0, {}, "", STEPS[:1], ()), "tallystick"
    )
    assert 'id="failed"' not in page
    assert 'id="not-run"' not in page
    assert "tallystick conforms: 1 of 1 steps passed" in page


def test_implementations_are_listed_with_the_sections_that_they_do_not_pass(
    seen: dict[str, Any],
) -> None:
    rows = [line.split("\t") for line in seen["notPassed"].splitlines()[1:]]
    assert ["other", "standard", "1", "0", "standard/bytes (1)"] in rows
    assert ["an-sdk", "cloudevents", "1", "1", "cloudevents/own (1)"] in rows
    assert seen["red"] == ["0/1", "1/2", "no (1 differ)"]


def test_scoreboards_gate_matrix_and_traffic_are_there(seen: dict[str, Any]) -> None:
    assert re.search(r"standard/bytes\s+1/1\s+0/1", seen["standard"])
    assert re.search(r"own/json/read\s+1/1\s+0/1 1!", seen["events"])
    assert '{"a": 1}' in seen["gate"]
    assert re.search(r"go\s+\.\s+0/1 1F", seen["lab"])
    assert "1,200" in seen["traffic"]
    assert seen["links"] == ["traffic.html"]
    assert "apt-get install maven" in seen["notRun"]


def test_the_page_is_accessible_in_light_and_dark_and_fits_a_telephone(
    seen: dict[str, Any],
) -> None:
    assert seen["faultsLight"] == []
    assert seen["faultsDark"] == []
    assert seen["overflow"] is False
