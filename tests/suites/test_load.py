"""Laws of loading a suite."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from tallystick.core.errors import Rejected, Unavailable
from tallystick.suites.find import find_suites, load_folder
from tallystick.suites.load import Suite, load
from tallystick.suites.rules import RULES

if TYPE_CHECKING:
    from pathlib import Path

FULL = b'{"job":"urn:a","trace_id":"t","data":{},"meta":{"schema_version":1},"attempts":4}'

SCORE = {"now": 1, "delay": 1, "expect_score": 2}


def manifest(**sections: Any) -> dict[str, Any]:
    scopes = {name: {"scope": "core"} for name in sections}
    return {"conformance_version": "1.8.0", "sections": scopes, **sections}


def loaded(content: Any, files: dict[str, bytes] | None = None) -> Suite:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return load("own", {"manifest.json": text, **(files or {})}.__getitem__)


def test_ids_follow_the_rules_of_suite_1_8_0() -> None:
    score = SCORE
    gate = {"value": "1", "expect": "decode"}
    suite = loaded(
        manifest(
            redis_delay={"description": "x", "cases": [{"name": "job number", **score}, score]},
            kafka={
                "schema": {},
                "description": {"cases": [gate]},
                "schema_version_gate": {"property": "p", "cases": [gate, {"name": "two", **gate}]},
                "property_projection": {"envelope_file": "f", "headers": {"a": "b"}},
            },
        ),
        {"f": FULL},
    )
    assert [case.name for case in suite.cases] == [
        "own/redis_delay/job number",
        "own/redis_delay/redis_delay#1",
        "own/kafka/schema_version_gate/0",
        "own/kafka/schema_version_gate/two",
        "own/kafka/property_projection",
    ]


def test_a_section_may_be_a_bare_list() -> None:
    case = {"name": "a", "file": "f", "valid": True, "expect": {"urn": "urn:a", "data": {}}}
    (found,) = loaded(manifest(cases=[case]), {"f": FULL}).cases
    assert found.name == "own/cases/a"
    assert found.expect == {
        "valid": True, "json": {"data_base64": {}}, "members": {"urn": "urn:a"},
    }  # fmt: skip


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_a_block_may_name_its_operation_and_expect_an_exact_text() -> None:
    cases = [
        {"name": "a", "clause": "retry/splice", "body": "x", "attempts": 1, "expect": "y"},
        {"name": "b", "file": "f", "attempts": 1, "expect": "reject"},
    ]
    block = {"operation": "retry", "cases": cases}
    first, second = loaded(manifest(retry_bytes=block), {"f": b"z"}).cases
    assert (first.operation, first.clause) == ("retry", "retry/splice")
    assert first.given == {"attempts": 1, "body_base64": b64("x")}
    assert first.expect == {"bytes": {"bytes_base64": b64("y")}}
    assert second.given == {"attempts": 1, "body_base64": b64("z")}
    assert second.expect == {"rejected": {}}


def test_a_block_may_speak_the_words_of_the_protocol() -> None:
    deliveries = [{"body_text": "x", "outcome": "ok"}]
    case = {
        "name": "a",
        "given": {"deliveries": deliveries, "n": 1},
        "expect": {"members": {"effects": ["run"]}, "bytes": {"bytes_text": "y"}},
    }
    block = {"bodies": {"operation": "idempotency", "cases": [case]}}
    (found,) = loaded(manifest(idempotency=block)).cases
    assert found.given == {
        "deliveries": [{"body_base64": b64("x"), "outcome": "ok"}], "n": 1,
    }  # fmt: skip
    assert found.expect["bytes"] == {"bytes_base64": b64("y")}


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        ("1", ["string"]),
        (1, ["int32", "int64"]),
        (1.0, ["double"]),
        (None, ["null"]),
        (True, ["bool"]),
    ],
)
def test_a_gate_value_is_tried_as_every_native_type_it_stands_for(
    value: Any, kinds: list[str]
) -> None:
    case = {"value": value, "expect": "decode"}
    (found,) = loaded(manifest(asb={"schema_version_gate": {"cases": [case]}})).cases
    steps = found.given["steps"]
    assert [step["given"]["value_type"] for step in steps] == kinds
    assert {step["given"]["broker"] for step in steps} == {"servicebus"}


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b'{"sections":{}}',
        {"conformance_version": "1", "sections": {"trim": {}}},
        manifest() | {"sections": {"trim": {"scope": "core"}}},
        manifest(trim={"cases": [{"name": "a", "mode": "decode"}]}),
        manifest(trim={"cases": ["a"]}),
        manifest(trim={"cases": {"name": "a"}}),
        manifest(trim=5),
        manifest(redis_delay={"cases": [SCORE | {"name": "a\n"}]}),
        manifest(redis_delay={"cases": [SCORE | {"name": "a"}] * 2}),
        manifest(cases=[{"name": "a", "file": "not there", "valid": True}]),
        manifest(shuffle={"cases": [{"name": "a"}]}),
        manifest(
            x={"operation": "x", "cases": [{"name": "a", "given": {}, "expect": {"luck": 1}}]}
        ),
        manifest(kafka={"shuffle": {"cases": [{"name": "a"}]}}),
    ],
)
def test_a_manifest_that_cannot_be_run_whole_is_rejected(content: Any) -> None:
    with pytest.raises(Rejected):
        loaded(content)


def test_a_folder_is_a_suite_named_like_it(tmp_path: Path) -> None:
    case = {"name": "a", "now": 1, "delay": 1, "expect_score": 2}
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps(manifest(redis_delay={"cases": [case]})))
    (suite,) = find_suites([], folder, lambda _: None)
    assert [one.name for one in suite.cases] == ["mine/redis_delay/a"]


def test_a_folder_without_a_manifest_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        load_folder(tmp_path)


def test_every_expectation_is_a_rule(public: Suite) -> None:
    used = {
        rule
        for case in public.cases
        for expect in case.expect.get("steps", [case.expect])
        for rule in expect
    }
    assert used <= set(RULES)
