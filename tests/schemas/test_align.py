"""The field policy of `babelqueue`: what counts as added, removed or merely moved."""

from __future__ import annotations

from typing import Any

import pytest

from tallystick.schemas.compat import compare

TEXT: dict[str, Any] = {"type": "string"}
COUNT: dict[str, Any] = {"type": "integer"}
ONE = {"type": "object", "properties": {"k": {"const": 1}, "x": TEXT}, "required": ["k"]}
TWO = {"type": "object", "properties": {"k": {"const": 2}, "y": TEXT}, "required": ["k"]}
SIX = {"type": "object", "properties": {"k": {"const": 6}, "z": TEXT}, "required": ["k"]}


def fields(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


DEMANDS: tuple[dict[str, Any], ...] = (
    {"type": "object", "required": ["b"]},
    {"type": "object", "allOf": [{"required": ["b"]}]},
    {"type": "object", "dependencies": {"a": ["b"]}},
    {"type": "object", "anyOf": [{"required": ["b"]}, {"required": ["c"]}]},
)


@pytest.mark.parametrize("old", DEMANDS, ids=str)
def test_a_type_on_a_name_that_was_demanded_breaks(old: dict[str, Any]) -> None:
    found = compare(old, {**old, "properties": {"b": COUNT}}, "babelqueue")
    assert found.verdict == "breaking"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"oneOf": [ONE, TWO]}, {"oneOf": [TWO, ONE]}),
        ({"oneOf": [ONE, TWO]}, {"oneOf": [SIX, ONE, TWO]}),
        ({"allOf": [fields(a=TEXT), fields(b=TEXT)]}, {"allOf": [fields(b=TEXT), fields(a=TEXT)]}),
        ({"allOf": [fields(a=TEXT)]}, {"allOf": [fields(a=TEXT), fields(b=COUNT)]}),
        (fields(a=TEXT), {"allOf": [fields(a=TEXT), fields(b=COUNT)]}),
        (fields(a=TEXT), fields(a=TEXT, b=COUNT)),
    ],
    ids=str,
)
def test_what_moved_or_was_added_as_optional_is_compatible(old: Any, new: Any) -> None:
    assert compare(old, new, "babelqueue").verdict == "compatible"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (fields(a=TEXT, b=COUNT), fields(a=TEXT)),
        ({"allOf": [fields(a=TEXT), fields(b=TEXT)]}, {"allOf": [fields(a=TEXT), fields()]}),
        (fields(a=TEXT), {**fields(a=TEXT, b=COUNT), "required": ["b"]}),
    ],
    ids=str,
)
def test_what_is_gone_or_newly_demanded_breaks(old: Any, new: Any) -> None:
    assert compare(old, new, "babelqueue").verdict == "breaking"
