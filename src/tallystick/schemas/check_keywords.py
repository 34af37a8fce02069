"""Find keywords without effect in a schema.

A misspelt keyword, or a keyword of another dialect, has no effect. The
mark of personal data is a boolean or the name of a category; any other value, or a misspelt mark,
marks nothing, and the field would not be masked.
"""

from __future__ import annotations

import difflib
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from tallystick.schemas.pii_walk import MARK
from tallystick.schemas.refs import CONSTRAINING, SUBSCHEMAS, walk
from tallystick.schemas.values import escape

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["find_idle"]

_KEYWORDS: Final = CONSTRAINING | SUBSCHEMAS.keys() | {
    "$anchor", "$comment", "$dynamicAnchor", "$id", "$recursiveAnchor", "$schema", "$vocabulary",
    "contentEncoding", "contentMediaType", "default", "deprecated", "description", "examples",
    "readOnly", "title", "writeOnly",
}  # fmt: skip
_NO_SLIPS: Final = _KEYWORDS | {"example", "discriminator", "nullable", "externalDocs", "xml"}
"""With what OpenAPI and AsyncAPI write into schemas, and know there."""
_UNKNOWN: Final[dict[str, frozenset[str]]] = {
    "draft-07": frozenset({
        "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef",
        "dependentRequired", "dependentSchemas", "maxContains", "minContains", "prefixItems",
        "unevaluatedItems", "unevaluatedProperties",
    }),
    "2019-09": frozenset({"$dynamicAnchor", "$dynamicRef", "prefixItems"}),
    "2020-12": frozenset({"$recursiveAnchor", "$recursiveRef", "additionalItems"}),
}  # fmt: skip
"""Keywords of other dialects that have no meaning in this one."""


def find_idle(schema: Any, dialect: str) -> Iterator[tuple[str, str, str]]:
    """Give pointer, rule and message of each keyword without effect, in document order."""
    for pointer, node in walk(schema):
        for name, value in node.items():
            found = _judge(node, name, value, dialect)
            if found is not None:
                yield f"{pointer}/{escape(name)}", *found


def _judge(node: dict[str, Any], name: str, value: Any, dialect: str) -> tuple[str, str] | None:
    """Give the rule and the message for a keyword without effect, else None."""
    if name in _UNKNOWN[dialect]:
        words = f"has no meaning in {dialect}: set $schema to a dialect that has it"
        return "schema.keyword", f"the keyword {name!r} {words}"
    if name == MARK:
        is_mark = isinstance(value, bool) or (isinstance(value, str) and value != "")
        words = f"{MARK} must be true, false or the name of a category; this value marks nothing"
        return None if is_mark else ("schema.mark", words)
    near = "" if name in _NO_SLIPS else _near(name)
    if near and near not in node:
        return "schema.keyword", f"unknown keyword {name!r}: did you mean {near!r}?"
    return None


@cache
def _near(name: str) -> str:
    if ":" in name:
        return ""
    known = [MARK] if name.startswith("x-") else _KEYWORDS
    return next(iter(difflib.get_close_matches(name, known, 1, 0.85)), "")
