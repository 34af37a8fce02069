"""Copies of a schema for the field policy: one to walk over, and one with names ruled out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallystick.schemas.refs import SUBSCHEMAS, dialect_of, is_alias

__all__ = ["join_references", "rule_out"]


def join_references(root: Any) -> Any:
    """Copy a document so that no two places are one object, and references are branches.

    A reference with something beside it becomes a branch of `allOf`, unless it hides the rest.
    Every other place keeps its pointer.
    """
    dialect = dialect_of(root)

    def copy(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        held = {key: _copied(SUBSCHEMAS.get(key), one, copy) for key, one in node.items()}
        if "$ref" in node and not is_alias(node, dialect):
            held["allOf"] = [*held.get("allOf", []), {"$ref": held.pop("$ref")}]
        return held

    return copy(root)


def _copied(shape: str | None, held: Any, copy: Callable[[Any], Any]) -> Any:
    """Copy what a keyword holds, its subschemas by a function."""
    if shape is None:
        return held
    if isinstance(held, list):
        return [copy(one) for one in held]
    if isinstance(held, dict) and shape in ("map", "map-or-names"):
        return {name: copy(one) for name, one in held.items()}
    return copy(held)


def rule_out(node: Any, free: dict[int, set[str]]) -> Any:
    """Copy the old document with the added names ruled out."""
    if isinstance(node, list):
        return [rule_out(item, free) for item in node]
    if not isinstance(node, dict):
        return node
    copy = {key: rule_out(item, free) for key, item in node.items()}
    ruled = dict.fromkeys(sorted(free.get(id(node), ())), False)
    if ruled and "$ref" in copy:
        return {"allOf": [copy, {"properties": ruled}]}
    if ruled:
        copy["properties"] = {**copy.get("properties", {}), **ruled}
    return copy
