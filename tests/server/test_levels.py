"""The level that was asked for is the level that is applied."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tallystick.core.errors import UsageError
from tallystick.server.examine import Job, examine
from tallystick.server.levels import LEVELS, RULES, modes_of, read_level
from tests.server.serving import start, stop

BASE: dict[str, Any] = {
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"type": "integer"}, "note": {"type": "string"}},
}
ADD_OPTIONAL = {**BASE, "properties": {**BASE["properties"], "more": {"type": "string"}}}
REQUIRE_MORE = {**BASE, "required": ["id", "note"]}
REQUIRE_LESS = {**BASE, "required": []}
RETYPE = {**BASE, "properties": {**BASE["properties"], "id": {"type": "string"}}}
REMOVE = {**BASE, "properties": {"id": {"type": "integer"}}}
WIDEN = {**BASE, "properties": {**BASE["properties"], "id": {"type": "number"}}}
CLOSE = {**BASE, "additionalProperties": False}

CHANGES = {
    "add-optional": ADD_OPTIONAL, "require-more": REQUIRE_MORE, "require-less": REQUIRE_LESS,
    "retype": RETYPE, "remove": REMOVE, "widen": WIDEN, "close": CLOSE, "same": BASE,
}  # fmt: skip
ALLOWED = {
    ("babelqueue", "BACKWARD"): {"add-optional", "require-less", "widen", "same"},
    ("babelqueue", "FORWARD"): {"add-optional", "require-more", "close", "same"},
    ("babelqueue", "FULL"): {"add-optional", "same"},
    ("babelqueue", "NONE"): set(CHANGES),
    ("strict", "BACKWARD"): {"require-less", "remove", "widen", "same"},
    ("strict", "FORWARD"): {"add-optional", "require-more", "close", "same"},
    ("strict", "FULL"): {"same"},
    ("strict", "NONE"): set(CHANGES),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("rules", RULES)
def test_a_level_allows_exactly_its_changes(rules: str, level: str) -> None:
    passed = set()
    for name, schema in CHANGES.items():
        body = json.dumps({"schema": json.dumps(schema)}).encode()
        report = examine(Job(body, modes_of(level, rules), "a.json", (json.dumps(BASE),)))
        assert report.verdict in ("compatible", "breaking"), (name, report)
        if report.verdict == "compatible":
            passed.add(name)
    assert passed == ALLOWED[rules, level.removesuffix("_TRANSITIVE")]


@pytest.mark.parametrize("text", ["backward", "Full_Transitive", "NONE"])
def test_levels_are_read_in_any_case(text: str) -> None:
    assert read_level(text) == text.upper()


def test_a_level_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError):
        read_level("banana")


@pytest.mark.parametrize(
    ("level", "wanted"),
    [("FORWARD_TRANSITIVE", {"add-optional", "require-more", "close", "same"}), ("NONE", None)],
)
def test_the_running_server_applies_the_level_it_reports(
    tmp_path: Path, level: str, wanted: set[str] | None
) -> None:
    (tmp_path / "base.json").write_text(json.dumps(BASE))
    row = {"urn": "urn:t:base", "schema": "base.json"}
    (tmp_path / "registry.json").write_text(json.dumps({"schemas": [row]}))
    served = start(tmp_path, "--compatibility", level.lower())
    try:
        assert served.get("/config").value == {"compatibilityLevel": level}
        passed = {
            name
            for name, schema in CHANGES.items()
            if served.candidate(
                "/compatibility/subjects/urn%3At%3Abase/versions/latest", schema
            ).value["is_compatible"]
        }
        assert passed == (set(CHANGES) if wanted is None else wanted)
    finally:
        stop(served)
