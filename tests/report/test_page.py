"""The report page: what is in it, and what a person sees of it in a real browser, from disk."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.browser import browse

from tallystick.cli import main
from tallystick.core.journal import (
    Foot,
    Head,
    Journal,
    Record,
    count,
    write_foot,
    write_head,
    write_record,
)
from tallystick.core.verdict import Difference, Outcome, Verdict
from tallystick.report.page import build_page, pair_of
from tallystick.report.table import repeat_command

HERE = Path(__file__).parent / "page"
HOSTILE = "</script><img src=x onerror=alert(1)><!--"
LOST = Difference("/ping/lost", [], ["17", "18"])


def record(name: str, outcome: Outcome, reason: str = "", *differences: Difference) -> Record:
    return Record(Verdict(name, outcome, reason, differences, 1.25))


def journal(*records: Record, subject: str = "qpid", complete: bool = True) -> Journal:
    head = Head("7", "2026-11-16T00:00:00Z", "lab", subject, {"subject.version": "10.1.0"})
    return Journal(head, records, Foot(count(records), 1234.0, ("a note",)) if complete else None)


PAIRS = [
    record(f"qpid/TC2_BasicP2P/{sender}/{receiver}", Outcome.PASSED)
    for sender in ("java", "go")
    for receiver in ("java", "go")
]
TIMES = {"p50": 1_000, "p90": 20_000, "p99": 300_000, "p99.9": 4_000_000, "max": 50_000_000}
RATES = {"sent_per_second": 200.0, "received_per_second": 199.5}
FIGURES = {**RATES, "latency_ns": TIMES, "error_ns": 300_000, "histogram": "HIST"}
PAIRS[0] = Record(replace(PAIRS[0].verdict, measured=FIGURES))
PAIRS[1] = record("qpid/TC2_BasicP2P/java/go", Outcome.FAILED, "2 lost", LOST)
TIERS = [
    record(f"tier/full/rabbitmq/auto/one_body/{number}", Outcome.PASSED, "delivered")
    for number in range(250)
]
OTHERS = [
    record("tier/full/rabbitmq/auto/one_body/immediate", Outcome.PASSED, "refused 540; departs"),
    record("tier/restart/rabbitmq/x/y", Outcome.UNSUPPORTED, "nothing to restart"),
    record(f"own/{HOSTILE}", Outcome.ERRORED, HOSTILE),
]


def write(path: Path, *journals: Journal) -> Path:
    lines = []
    for one in journals:
        lines += [write_head(one.head), *map(write_record, one.records)]
        lines += [write_foot(one.foot)] if one.foot else []
    path.write_text("".join(lines), encoding="utf-8")
    return path


def data_of(page: str) -> dict[str, Any]:
    (held,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    value: dict[str, Any] = json.loads(held)
    return value


def test_a_pair_is_read_from_the_name_of_a_case_of_the_broker() -> None:
    assert pair_of("qpid", "qpid/TC4_P2PMessageSize/63K/go/java") == ("go", "java")
    assert pair_of("qpid", "tier/full/qpid/auto/one_body/none") is None
    assert pair_of("qpid", "qpid/circuit/five") is None


def test_every_verdict_is_in_the_page_with_the_command_that_repeats_it() -> None:
    found = data_of(build_page([journal(*PAIRS, *TIERS)]))
    rows = found["runs"][0]["cases"]
    assert [row[0] for row in rows] == [one.verdict.case for one in [*PAIRS, *TIERS]]
    assert rows[1][7] == [["/ping/lost", "[]", '["17", "18"]']]
    for one, row in zip([*PAIRS, *TIERS], rows, strict=True):
        again = found["texts"][row[8]].replace("\0", row[0])
        assert again == repeat_command("qpid", one.verdict.case)


def test_a_name_that_a_shell_would_read_otherwise_is_quoted_in_its_command() -> None:
    found = data_of(build_page([journal(record("s/a b/$(x)", Outcome.PASSED))]))
    command = found["texts"][found["runs"][0]["cases"][0][8]]
    assert command == repeat_command("qpid", "s/a b/$(x)")


def test_no_text_can_end_the_element_it_stands_in() -> None:
    page = build_page([journal(*OTHERS)], {"new": [HOSTILE]}, {HOSTILE: [HOSTILE]})
    assert page.count("</script>") == 2
    assert HOSTILE not in page
    assert data_of(page)["changes"] == {"new": [HOSTILE]}


def test_a_lone_surrogate_and_a_missing_side_can_be_written(tmp_path: Path) -> None:
    odd = record("s/x/\ud800", Outcome.FAILED, "\ud800", Difference("", ..., "\ud800"))
    page = build_page([journal(odd)])
    page.encode()
    assert data_of(page)["runs"][0]["cases"][0][7] == [["", None, '"\ud800"']]


def test_a_coverage_that_is_none_is_a_usage_error(tmp_path: Path) -> None:
    file = write(tmp_path / "j", journal(*PAIRS))
    wrong = tmp_path / "coverage"
    wrong.write_text("[1]")
    out = str(tmp_path / "page.html")
    assert main(["report", "build", str(file), "-o", out, "--coverage", str(wrong)]) == 2


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run the browser once."""
    folder = tmp_path_factory.mktemp("report")
    cut = journal(*TIERS, *OTHERS, subject="rabbitmq", complete=False)
    runs = write(folder / "runs.jsonl", journal(*PAIRS), cut)
    old = write(folder / "old.jsonl", journal(record("qpid/TC2_BasicP2P/java/go", Outcome.PASSED)))
    (folder / "coverage.json").write_text('{"IOP-1": ["test_a"], "IOP-2": []}')
    page = folder / "page.html"
    command = ["report", "build", str(runs), "-o", str(page), "--against", str(old)]
    assert main([*command, "--coverage", str(folder / "coverage.json")]) == 0
    return browse(page, HERE / "check.mjs", folder)


def test_the_page_opens_from_disk_alone_and_without_errors(seen: dict[str, Any]) -> None:
    assert seen["errors"] == []
    assert seen["elsewhere"] == []
    assert seen["dialogs"] == 0
    assert seen["about"].startswith("2 runs, 257 cases: 254 passed, 1 failed")


def test_a_run_that_was_cut_short_is_said_at_the_top(seen: dict[str, Any]) -> None:
    assert "cut short" in seen["alarm"]
    assert "rabbitmq" in seen["alarm"]


def test_what_failed_stands_first_and_text_is_never_markup(seen: dict[str, Any]) -> None:
    assert set(seen["first"][:2]) == {"qpid/TC2_BasicP2P/java/go", f"own/{HOSTILE}"}


def test_the_matrix_has_senders_down_and_receivers_across(seen: dict[str, Any]) -> None:
    lines = [re.split(r"\s+", line) for line in seen["matrix"].splitlines()]
    assert lines[1:] == [["java", "1/1", "0/1"], ["go", "1/1", "1/1"]]


def test_tiers_sections_changes_coverage_and_versions_are_tables(seen: dict[str, Any]) -> None:
    assert re.search(r"tier/full\s+·\s+251/251", seen["sections"])
    assert re.search(r"delivered\s+250/250", seen["results"])
    assert re.search(r"refused 540\s+1/1", seen["results"])
    assert "1 of 2 requirements covered (50 %)" in seen["coverage"]
    assert "new (2)" in seen["changes"]
    assert "10.1.0" in seen["runs"]
    assert "a note" in seen["runs"]


def test_latencies_are_a_picture_and_a_table_with_their_error(seen: dict[str, Any]) -> None:
    assert seen["pictures"] == 1
    figures = ["java", "→", "java", "200", "200", "1.0", "20", "300", "4000", "50000", "300"]
    assert seen["perf"].splitlines()[-1].split() == figures
    assert "HIST" not in build_page([journal(*PAIRS)])


def test_long_lists_are_shown_in_parts(seen: dict[str, Any]) -> None:
    assert (seen["limited"], seen["more"]) == (100, 200)


def test_a_cell_leads_to_its_cases_their_messages_and_the_command(seen: dict[str, Any]) -> None:
    assert seen["cell"] == ["qpid/TC2_BasicP2P/java/go"]
    assert "java → go" in seen["cellCount"]
    assert '["17", "18"]' in seen["inside"]
    assert "2 lost" in seen["inside"]
    assert seen["command"].startswith("tally ")


def test_search_and_filters_narrow_the_list(seen: dict[str, Any]) -> None:
    assert seen["searched"] == ["qpid/TC2_BasicP2P/java/go"]
    assert seen["nothing"].startswith("0 of 257")
    assert seen["notPassed"].startswith("3 of 257")
    assert seen["oneRun"].startswith("4 of 257")


def test_the_page_is_accessible_in_light_and_dark_and_fits_a_telephone(
    seen: dict[str, Any],
) -> None:
    assert seen["faultsLight"] == []
    assert seen["faultsDark"] == []
    assert seen["overflow"] is False
