"""The data of the standard is sound, complete, and written by nobody's Python."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tallystick import standard
from tallystick.core.verdict import Outcome
from tallystick.suites.find import load_standard
from tallystick.suites.load import Suite
from tallystick.suites.run import run_cases
from tallystick.suites.standard import check_standard
from tallystick.suites.tallystick_subject import TallystickSubject

ROOT = Path(__file__).parents[2]
UPSTREAM = {
    "cases": 8, "idempotency": 7, "payload_schema": 7, "payload_schema_unicode": 6, "roundtrip": 9,
    "data_shape": 2, "forbidden_keys": 7, "encode_reject": 13, "extension_write": 5, "trim": 35,
    "job_type": 11, "retry_backoff": 18, "poison_dlq": 43, "identity_verdict": 97,
    "traceparent": 14, "sqs": 25, "delay": 9, "version_gate_sqs": 17, "servicebus": 31,
    "version_gate_servicebus": 17, "pulsar": 25, "version_gate_pulsar": 17, "kafka": 25,
    "backoff": 29, "kafka_poison": 92, "artemis": 26, "version_gate_artemis": 17, "redis": 1,
    "redis_delay": 8, "redis_layout": 3, "rabbitmq": 1,
}  # fmt: skip
"""How many cases suite 1.8.0 has in each section, without those that need a live Redis."""


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load_standard()


def test_the_standard_has_no_problems() -> None:
    assert check_standard(standard.paths(), standard.read).problems == ()


def test_tallystick_passes_every_case(suite: Suite) -> None:
    subject = TallystickSubject()
    verdicts = list(run_cases(suite.cases, subject, subject.start()))
    assert len(verdicts) == len(suite.cases)
    assert [one for one in verdicts if one.outcome is not Outcome.PASSED] == []


def test_each_section_has_more_cases_than_upstream(suite: Suite) -> None:
    sizes = Counter(case.name.split("/")[1] for case in suite.cases)
    assert {name: sizes[name] for name, size in UPSTREAM.items() if sizes[name] <= size} == {}
    assert sum("exhaustion" in case.name for case in suite.cases) > 29


def test_there_are_enough_vectors_fixtures_and_cases() -> None:
    checked = check_standard(standard.paths(), standard.read)
    assert (checked.vectors >= 300, checked.fixtures >= 40, checked.cases >= 800) == (True,) * 3


def test_every_case_names_its_clause(suite: Suite) -> None:
    assert [case.name for case in suite.cases if not case.clause] == []


def test_the_node_scripts_write_the_same_files_again(tmp_path: Path) -> None:
    node = shutil.which("node")
    assert node, "node is needed to write the vectors again: install Node.js 20 or newer"
    script = ROOT / "tools/vectors/generate.mjs"
    subprocess.run([node, str(script), str(tmp_path)], check=True, timeout=120)
    written = {path.relative_to(tmp_path).as_posix(): path for path in tmp_path.rglob("*.json")}
    by_hand = ("schema/message-envelope.schema.json", "events/")
    assert sorted(written) == [path for path in standard.paths() if not path.startswith(by_hand)]
    assert [
        name for name, path in written.items() if path.read_bytes() != standard.read(name)
    ] == []


def test_the_schema_is_draft_07_and_ours() -> None:
    schema = json.loads(standard.read("schema/message-envelope.schema.json"))
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert "tallystick" in schema["$id"]


def test_the_data_imports_nothing_of_tallystick() -> None:
    source = Path(standard.__file__).read_text(encoding="utf-8")
    assert "tallystick." not in source
    assert "from tallystick" not in source


def test_the_reference_page_is_written_from_the_data() -> None:
    node = shutil.which("node")
    assert node, "node is needed to write the reference again: install Node.js 20 or newer"
    script = ROOT / "tools/vectors/reference.mjs"
    done = subprocess.run([node, str(script)], check=True, timeout=120, capture_output=True)
    page = ROOT / "docs/reference/standard.md"
    assert done.stdout == page.read_bytes(), f"node {script.name} > {page.name} writes it again"
