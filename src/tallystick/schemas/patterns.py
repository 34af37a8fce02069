"""A pattern is an expression of ECMA 262 (JSON Schema 2020-12, core, 6.4), in every dialect.

The engine that judges takes more than ECMA 262 allows: `a**`, `(?i)a`, `(?-u)a`. The meta-schema of
draft-07 asserts `"format": "regex"` and so refuses these, but not under `$defs`; the later ones
only annotate. So each `pattern` and each name in `patternProperties` is asked about here, wherever
a keyword of any dialect holds a schema.

Without backtracking a text takes time by its length and by the size of the compiled pattern: a
count spells its operand out. `weigh` says what a schema's patterns come to, `is_long` whether that
is too much for a value. A class repeated from the start to the end weighs nothing: there is only
one way to read a text.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.extras import importing
from tallystick.schemas.refs import walk
from tallystick.schemas.values import escape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jsonschema_rs import Draft7Validator

__all__ = ["BYTES", "find_malformed", "is_long", "weigh"]

BYTES: Final = 32 << 20
"""A compiled pattern may take so much; to refuse a larger one takes less than a second."""
_LIGHT: Final = 8 << 10
"""A megabyte of text is searched for a pattern of this size in less than a second."""
_WORK: Final = 10_000_000_000
"""Bytes of patterns times characters of text that take less than a second."""
_RUN: Final = re.compile(
    r"\^(?:\[(?:[^\[\]\\]|\\.)+\]|\\[dDsSwW]|\\p\{\w+\}|\.)(?:\{\d*,?\d*\}|[*+?])\$"
)


def find_malformed(schema: Any) -> tuple[str, str] | None:
    """Give the pointer of the first pattern that is none, and what is wrong with it."""
    for pointer, text in _patterns(schema):
        for error in _expression().iter_errors(text):
            return pointer, error.message
    return None


def weigh(schema: Any) -> int:
    """Give the size of all patterns of a schema that are not light, compiled, in bytes."""
    return sum(_weight(text) for _, text in _patterns(schema) if isinstance(text, str))


def is_long(value: Any, weight: int) -> bool:
    """Tell whether the texts of a value are too long for patterns of this weight."""
    left = _WORK // weight if weight else 0
    pending = [value] if weight else []
    while pending and left >= 0:
        one = pending.pop()
        if isinstance(one, str):
            left -= len(one)
        elif isinstance(one, list):
            pending.extend(one)
        elif isinstance(one, dict):
            pending.extend(one)
            pending.extend(one.values())
    return left < 0


@lru_cache(maxsize=4096)
def _weight(pattern: str) -> int:
    return _size(pattern)


def _size(pattern: str) -> int:
    """Give what a pattern takes when it is compiled, nothing if that is light or does not matter.

    It is asked of the engine, by limits that grow.
    """
    with importing("schemas"):
        import jsonschema_rs as rs  # noqa: PLC0415 - loads only when a schema is used

    if _RUN.fullmatch(pattern):
        return 0
    for limit in (_LIGHT, 16 * _LIGHT, 256 * _LIGHT):
        for options in (rs.RegexOptions(size_limit=limit), rs.FancyRegexOptions(size_limit=limit)):
            try:
                rs.Draft7Validator({"pattern": pattern}, pattern_options=options)
            except (rs.ValidationError, ValueError):  # too large, or not of this engine
                continue
            return limit if limit > _LIGHT else 0
    return BYTES


def _patterns(schema: Any) -> Iterator[tuple[str, Any]]:
    """Give each pattern with its pointer; what `enum`, `const` and the like hold is no schema."""
    for pointer, node in walk(schema):
        if "pattern" in node:
            yield f"{pointer}/pattern", node["pattern"]
        named = node.get("patternProperties")
        for name in named if isinstance(named, dict) else ():
            yield f"{pointer}/patternProperties/{escape(name)}", name


@cache
def _expression() -> Draft7Validator:
    with importing("schemas"):
        import jsonschema_rs as rs  # noqa: PLC0415 - loads only when a schema is used

    return rs.Draft7Validator({"format": "regex"})
