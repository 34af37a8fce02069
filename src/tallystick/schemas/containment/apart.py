"""Detect quickly that two subschemas share no document: by type, or by the tag they require.

Most unions are distinguished in this way, and this check is much cheaper than a search. The answer
`no` means only that it is not obvious. Each member of a union is examined once, and then compared
with every other member.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tallystick.schemas.containment.nodes import freeze, type_of

__all__ = ["Look", "are_apart", "look"]

_EVERY: Final = frozenset({"null", "boolean", "number", "string", "array", "object"})


@dataclass(frozen=True, slots=True)
class Look:
    """The known facts of a subschema: its listed values, its types, and its tags."""

    values: frozenset[Any] | None = None
    kinds: frozenset[str] = _EVERY
    tags: Mapping[str, Look] = field(default_factory=dict)


def look(schema: Any) -> Look:
    """Collect the facts of a subschema; a subschema with a reference gives none."""
    if schema is False:
        return Look(frozenset(), frozenset())
    if not isinstance(schema, dict) or "$ref" in schema:
        return Look()
    listed = [schema["const"]] if "const" in schema else schema.get("enum")
    values = None if listed is None else frozenset(map(freeze, listed))
    properties = schema.get("properties", {})
    required = properties.keys() & set(schema.get("required", ()))
    tags = {name: look(properties[name]) for name in required}
    return Look(values, _kinds(schema, listed), tags)


def _kinds(schema: dict[str, Any], listed: list[Any] | None) -> frozenset[str]:
    if listed is not None:
        return frozenset(map(type_of, listed))
    named = schema.get("type")
    types = _EVERY if named is None else [named] if isinstance(named, str) else named
    return frozenset("number" if kind == "integer" else kind for kind in types)


def are_apart(one: Look, other: Look) -> bool:
    """Tell whether two subschemas obviously share no document."""
    if one.values is not None and other.values is not None and one.values.isdisjoint(other.values):
        return True
    if one.kinds.isdisjoint(other.kinds):
        return True
    if one.kinds & other.kinds != {"object"}:
        return False
    return any(
        are_apart(one.tags[name], other.tags[name]) for name in one.tags.keys() & other.tags.keys()
    )
