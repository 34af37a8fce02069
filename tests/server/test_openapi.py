"""The OpenAPI document is true: schemathesis asks the running server what the document promises."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import pytest

from tallystick.server.answers import WORDS
from tallystick.server.checks import CHECKS
from tallystick.server.openapi import build_openapi
from tallystick.server.operations import OPERATIONS, PARAMETERS
from tallystick.server.reads import READS
from tests.server.serving import Served, encode

CHECKED = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance,unsupported_method,negative_data_rejection"
)


def test_every_operation_has_exactly_one_handler() -> None:
    names = [operation.name for operation in OPERATIONS]
    assert sorted(names) == sorted([*READS, *CHECKS])
    assert {one.name for one in OPERATIONS if one.body} == set(CHECKS)


def test_every_code_and_parameter_in_the_table_is_known() -> None:
    for operation in OPERATIONS:
        assert set(operation.errors) <= WORDS.keys()
        assert set(operation.query) <= PARAMETERS.keys()


def test_the_document_refers_to_nothing_that_is_missing() -> None:
    document = build_openapi({})
    schemas = document["components"]["schemas"]
    for name in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)):
        assert name in schemas
    for schema in schemas.values():
        jsonschema_rs.Draft202012Validator(schema)


def test_the_examples_are_of_the_registry_and_are_answered(server: Served) -> None:
    document = server.get("/openapi.json").value
    for path, held in document["paths"].items():
        if "get" not in held:
            continue
        asked = path
        for parameter in held["get"]["parameters"]:
            if parameter["in"] == "path":
                example = encode(parameter["example"])
                asked = asked.replace(f"{{{parameter['name']}}}", example)
        assert server.get(asked).status == 200, asked


@pytest.mark.parametrize("phase", ["examples,coverage", "fuzzing"])
def test_schemathesis_finds_no_500_and_no_mismatch(
    server: Served, tmp_path: Path, phase: str
) -> None:
    report = tmp_path / "report.xml"
    command = [
        str(Path(sys.executable).parent / "schemathesis"), "run", f"{server.url}/openapi.json",
        "--phases", phase, "--checks", CHECKED, "--max-examples", "15", "--seed", "7",
        "--no-color", "--report", "junit", "--report-junit-path", str(report),
        "--continue-on-failure",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    tested = re.search(r'tests="(\d+)"', report.read_text())
    assert tested is not None
    assert int(tested[1]) >= len(OPERATIONS) - 1, "all but the document itself"
