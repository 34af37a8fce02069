"""See at a glance that two subschemas share no document: by type, or by the tag they require.

That is how most unions are told apart, and it is far cheaper to see than to search. A `no` means
only that it is not obvious.
"""

from __future__ import annotations

from typing import Any

from tallystick.schemas.containment.nodes import freeze, type_of

__all__ = ["are_apart"]


def are_apart(one: Any, other: Any) -> bool:
    """Tell whether two subschemas obviously share no document."""
    if one is False or other is False:
        return True
    if not isinstance(one, dict) or not isinstance(other, dict):
        return False
    if "$ref" in one or "$ref" in other:
        return False
    values, others = _values(one), _values(other)
    if values is not None and others is not None and not values & others:
        return True
    kinds, more = _kinds(one), _kinds(other)
    if not kinds & more:
        return True
    if kinds & more != {"object"}:
        return False
    tags = set(one.get("required", ())) & set(other.get("required", ()))
    left, right = one.get("properties", {}), other.get("properties", {})
    return any(
        name in left and name in right and are_apart(left[name], right[name]) for name in tags
    )


def _values(schema: dict[str, Any]) -> set[Any] | None:
    if "const" in schema:
        return {freeze(schema["const"])}
    return set(map(freeze, schema["enum"])) if "enum" in schema else None


def _kinds(schema: dict[str, Any]) -> set[str]:
    listed = [schema["const"]] if "const" in schema else schema.get("enum")
    if listed is not None:
        return {type_of(value) for value in listed}
    named = schema.get("type", ["null", "boolean", "number", "string", "array", "object"])
    types = {named} if isinstance(named, str) else set(named)
    return {"number" if kind == "integer" else kind for kind in types}
