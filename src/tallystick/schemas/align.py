"""The field policy: what is added and what is removed between two schemas of an object.

Wherever both schemas describe the same object, a property that only the new one names is set to
`false` in a copy of the old one. Documents of that copy are the old documents that never used the
name, so an optional field may be added to an open model, while a required one still breaks. A
property that only the old one names is removed, unless it was never allowed or a pattern of the
new schema still names it.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import unquote

from tallystick.schemas.refs import find_pointer
from tallystick.schemas.values import escape

__all__ = ["align_fields"]

_SINGLE: Final = (
    "items", "additionalProperties", "additionalItems", "contains", "unevaluatedProperties",
    "unevaluatedItems", "then", "else",
)  # fmt: skip
_LISTED: Final = ("allOf", "anyOf", "oneOf", "prefixItems", "items")


def align_fields(old: Any, new: Any) -> tuple[Any, tuple[str, ...]]:
    """Give the old schema with added names ruled out, and the pointers of removed properties."""
    work = _Alignment(old, new)
    work.visit(old, new, "")
    return (work.rebuild(old) if work.added else old), tuple(dict.fromkeys(work.removed))


class _Alignment:
    """One walk over both documents; `added` maps the identity of an old object to new names."""

    def __init__(self, old: Any, new: Any) -> None:
        self.roots = (old, new)
        self.added: dict[int, set[str]] = {}
        self.removed: list[str] = []
        self.seen: set[tuple[int, int]] = set()

    def follow(self, side: int, schema: Any) -> Any:
        for _ in range(50):
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
                break
            try:
                schema = find_pointer(self.roots[side], unquote(schema["$ref"][1:]))
            except KeyError:
                break
        return schema

    def visit(self, old: Any, new: Any, at: str) -> None:
        old, new = self.follow(0, old), self.follow(1, new)
        if not isinstance(old, dict) or not isinstance(new, dict):
            return
        if (id(old), id(new)) in self.seen:
            return
        self.seen.add((id(old), id(new)))
        self.fields(old, new, at)
        for key in ("properties", "patternProperties", "dependentSchemas"):
            before, after = old.get(key), new.get(key)
            if isinstance(before, dict) and isinstance(after, dict):
                for name in before.keys() & after.keys():
                    self.visit(before[name], after[name], f"{at}/{key}/{escape(name)}")
        for key in _SINGLE:
            if key in old and key in new:
                self.visit(old[key], new[key], f"{at}/{key}")
        for key in _LISTED:
            before, after = old.get(key), new.get(key)
            if isinstance(before, list) and isinstance(after, list):
                for spot, (one, two) in enumerate(zip(before, after, strict=False)):
                    self.visit(one, two, f"{at}/{key}/{spot}")

    def fields(self, old: dict[str, Any], new: dict[str, Any], at: str) -> None:
        before, after = old.get("properties", {}), new.get("properties", {})
        fresh = {name for name in after.keys() - before.keys() if not _is_patterned(old, name)}
        if fresh and old.get("additionalProperties", True) is not False:
            self.added.setdefault(id(old), set()).update(fresh)
        self.removed.extend(
            f"{at}/properties/{escape(name)}"
            for name in sorted(before.keys() - after.keys())
            if before[name] is not False and not _is_patterned(new, name)
            and not _is_elsewhere(new, name, self)
        )  # fmt: skip

    def rebuild(self, node: Any) -> Any:
        """Copy the old document with the added names ruled out."""
        if isinstance(node, list):
            return [self.rebuild(item) for item in node]
        if not isinstance(node, dict):
            return node
        copy = {key: self.rebuild(item) for key, item in node.items()}
        names = self.added.get(id(node))
        if names:
            ruled = dict.fromkeys(sorted(names), False)
            copy["properties"] = {**copy.get("properties", {}), **ruled}
        return copy


def _is_patterned(schema: dict[str, Any], name: str) -> bool:
    for pattern in schema.get("patternProperties", {}):
        try:
            if re.search(pattern, name):
                return True
        except re.error:
            continue
    return False


def _is_elsewhere(new: dict[str, Any], name: str, work: _Alignment) -> bool:
    """Tell whether another part of the same object still names the property."""
    for key in ("allOf", "anyOf", "oneOf"):
        for sub in new.get(key, ()):
            inner = work.follow(1, sub)
            if isinstance(inner, dict) and name in inner.get("properties", {}):
                return True
    return False
