"""The field policy: what is added and what is removed between two schemas of an object.

Wherever both schemas describe the same object, a property that only the new one names is set to
`false` in a copy of the old one. Documents of that copy are the old documents that never used the
name, so an optional field may be added to an open model, while a required one still breaks. What
`allOf` joins is one object. A name that the old schema demands is not new: old documents have it. A
property that only the old one names is removed, unless it was never allowed, or a pattern or
another branch of the new schema still names it. Branches that did not change are paired, wherever
they stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from tallystick.schemas.refs import find_pointer
from tallystick.schemas.values import escape

__all__ = ["align_fields"]

_SINGLE: Final = (
    "items", "additionalProperties", "additionalItems", "contains", "unevaluatedProperties",
    "unevaluatedItems", "then", "else",
)  # fmt: skip
_JOINED: Final = ("allOf", "anyOf", "oneOf")
"""Branches of these speak of the same object."""
_LISTED: Final = (*_JOINED, "prefixItems", "items")


@dataclass(frozen=True, slots=True)
class _Kin:
    """What is said of an object: names the old schema joins, names the new one has, demands."""

    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    demanded: frozenset[str] = frozenset()


_ALONE: Final = _Kin()


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

    def visit(self, old: Any, new: Any, at: str, kin: _Kin = _ALONE) -> None:
        old, new = self.follow(0, old), self.follow(1, new)
        if not isinstance(old, dict) or not isinstance(new, dict):
            return
        if (id(old), id(new)) in self.seen:
            return
        self.seen.add((id(old), id(new)))
        kin = self.join(old, new, kin)
        self.fields(old, new, at, kin)
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
                same_object = kin if key in _JOINED else _ALONE
                for spot, one, two in _pair(before, after, by_place=key not in _JOINED):
                    self.visit(one, two, f"{at}/{key}/{spot}", same_object)

    def join(self, old: dict[str, Any], new: dict[str, Any], kin: _Kin) -> _Kin:
        """Give what is said of one object by these schemas and by those around them."""
        return _Kin(
            kin.before | self.names(0, old, ("allOf",)),
            kin.after | self.names(1, new, _JOINED),
            kin.demanded | self.demanded(old),
        )

    def parts(self, side: int, schema: Any, keys: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        """Give a schema of an object and its branches under these keywords, each once."""
        waiting, seen = [schema], set[int]()
        while waiting:
            part = self.follow(side, waiting.pop())
            if isinstance(part, dict) and id(part) not in seen:
                seen.add(id(part))
                yield part
                for key in keys:
                    held = part.get(key, [])
                    waiting += held if isinstance(held, list) else [held]

    def names(self, side: int, schema: Any, keys: tuple[str, ...]) -> frozenset[str]:
        """Give the properties that a schema of an object names, its branches too."""
        found = (part.get("properties", {}) for part in self.parts(side, schema, keys))
        return frozenset(name for held in found for name in held)

    def demanded(self, schema: Any) -> frozenset[str]:
        """Give the names that the old schema demands of the object, perhaps under a condition."""
        found: set[str] = set()
        for part in self.parts(0, schema, (*_JOINED, "then", "else")):
            found.update(part.get("required", ()))
            for key in ("dependencies", "dependentRequired"):
                for demand in part.get(key, {}).values():
                    found.update(demand if isinstance(demand, list) else ())
        return frozenset(found)

    def fields(self, old: dict[str, Any], new: dict[str, Any], at: str, kin: _Kin) -> None:
        before, after = old.get("properties", {}), self.names(1, new, ("allOf",))
        known = kin.before | kin.demanded
        fresh = {name for name in after - known if not _is_patterned(old, name)}
        if fresh and old.get("additionalProperties", True) is not False:
            self.added.setdefault(id(old), set()).update(fresh)
        self.removed.extend(
            f"{at}/properties/{escape(name)}"
            for name in sorted(before.keys() - kin.after)
            if before[name] is not False and not _is_patterned(new, name)
        )

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


def _pair(before: list[Any], after: list[Any], *, by_place: bool) -> Iterator[tuple[int, Any, Any]]:
    """Pair branches: the same with the same, what is left in order; items by their place."""
    left = list(after)
    rest = []
    for spot, one in enumerate(before):
        if not by_place and one in left:
            yield spot, one, left.pop(left.index(one))
        else:
            rest.append((spot, one))
    for (spot, one), two in zip(rest, left, strict=False):
        yield spot, one, two
