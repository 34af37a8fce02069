"""The small draft-07 subset that every SDK of the ecosystem can check on a payload (ADR-0024).

Keywords: type required properties additionalProperties items enum const minLength minimum. The
first violation is given as `<path>: <code>`, `<root>` standing for the empty path: `a[1].c:
not_a_string`. Order: const, enum, type; then what belongs to the declared type. A keyword is
read only under the type it belongs to, and what is outside the subset is not judged; for the
whole of JSON Schema use the validator of the registry.

Lengths are code points. Equality knows types at every depth: 1 is not 1.0, true is not 1. As a
`type`, 1.0 is an integer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeGuard

__all__ = ["find_violation"]


def find_violation(schema: Any, value: Any, path: str = "") -> str | None:
    """Give the first violation of the schema, or None when the value is valid."""
    if not isinstance(schema, Mapping):
        return None
    if "const" in schema and not _equal(schema["const"], value):
        return _say(path, "wrong_const")
    allowed = schema.get("enum")
    if isinstance(allowed, list) and not any(_equal(each, value) for each in allowed):
        return _say(path, "not_in_enum")
    kind = schema.get("type")
    rule = _TYPES.get(kind) if isinstance(kind, str) else None
    if rule is None:
        return None
    is_kind, code, check = rule
    return check(schema, value, path) if is_kind(value) else _say(path, code)


def _say(path: str, code: str) -> str:
    return f"{path or '<root>'}: {code}"


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _equal(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    return bool(one == other)


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: Any) -> TypeGuard[int]:
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


def _check_nothing(_schema: Mapping[str, Any], _value: Any, _path: str) -> str | None:
    return None


def _check_string(schema: Mapping[str, Any], value: str, path: str) -> str | None:
    least = schema.get("minLength")
    short = _is_integer(least) and len(value) < least
    return _say(path, "below_min_length") if short else None


def _check_number(schema: Mapping[str, Any], value: float, path: str) -> str | None:
    least = schema.get("minimum")
    return _say(path, "below_minimum") if _is_number(least) and value < least else None


def _check_object(schema: Mapping[str, Any], value: Mapping[str, Any], path: str) -> str | None:
    required = schema.get("required")
    for key in required if isinstance(required, list) else ():
        if isinstance(key, str) and key not in value:
            return _say(_join(path, key), "missing_required")
    declared = schema.get("properties")
    known = declared if isinstance(declared, Mapping) else {}
    for key, member in value.items():
        if key not in known and schema.get("additionalProperties") is False:
            return _say(_join(path, key), "additional_not_allowed")
        found = find_violation(known.get(key), member, _join(path, key))
        if found:
            return found
    return None


def _check_array(schema: Mapping[str, Any], value: list[Any], path: str) -> str | None:
    found = (
        find_violation(schema.get("items"), item, f"{path}[{index}]")
        for index, item in enumerate(value)
    )
    return next(filter(None, found), None)


_Check = Callable[[Mapping[str, Any], Any, str], str | None]
_TYPES: Final[Mapping[str, tuple[Callable[[Any], bool], str, _Check]]] = {
    "string": (lambda value: isinstance(value, str), "not_a_string", _check_string),
    "integer": (_is_integer, "not_an_integer", _check_number),
    "number": (_is_number, "not_a_number", _check_number),
    "boolean": (lambda value: isinstance(value, bool), "not_a_boolean", _check_nothing),
    "null": (lambda value: value is None, "not_null", _check_nothing),
    "object": (lambda value: isinstance(value, dict), "not_an_object", _check_object),
    "array": (lambda value: isinstance(value, list), "not_an_array", _check_array),
}
"""Type -> (the test, the code when it fails, the keywords that belong to the type)."""
