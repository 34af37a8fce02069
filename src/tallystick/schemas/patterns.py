"""A pattern is an expression of ECMA 262 (JSON Schema 2020-12, core, 6.4), in every dialect.

The engine that judges takes more than ECMA 262 allows: `a**`, `(?i)a`, `(?-u)a`. The meta-schema of
draft-07 asserts `"format": "regex"` and so refuses these, but not under `$defs`; the later ones
only annotate. So each `pattern` and each name in `patternProperties` is asked about here, wherever
a keyword of any dialect holds a schema.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from tallystick.schemas.refs import children
from tallystick.schemas.values import escape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jsonschema_rs import Draft7Validator

__all__ = ["find_malformed"]


def find_malformed(schema: Any) -> tuple[str, str] | None:
    """Give the pointer of the first pattern that is none, and what is wrong with it."""
    for pointer, text in _patterns(schema):
        for error in _expression().iter_errors(text):
            return pointer, error.message
    return None


def _patterns(schema: Any) -> Iterator[tuple[str, Any]]:
    """Give each pattern with its pointer; what `enum`, `const` and the like hold is no schema."""
    pending = [("", schema)]
    while pending:
        pointer, node = pending.pop()
        if not isinstance(node, dict):
            continue
        if "pattern" in node:
            yield f"{pointer}/pattern", node["pattern"]
        named = node.get("patternProperties")
        for name in named if isinstance(named, dict) else ():
            yield f"{pointer}/patternProperties/{escape(name)}", name
        pending.extend((pointer + place, item) for place, item in children(node))


@cache
def _expression() -> Draft7Validator:
    import jsonschema_rs as rs  # noqa: PLC0415 - loads only when a schema is used

    return rs.Draft7Validator({"format": "regex"})
