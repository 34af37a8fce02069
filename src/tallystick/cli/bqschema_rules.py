"""The rules of the reference tool, with its texts: validation, and breaking changes.

The subset is: type, required, properties, additionalProperties, items, enum, const, minLength,
minimum. A keyword applies to the type that it belongs to; unknown keywords are ignored. Where the
reference differs from its own documents, the documents apply: lengths are characters, numbers are
exact, a declared property is declared, and removing one is breaking in any model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from tallystick.cli.bqschema_json import quote, show
from tallystick.schemas.values import escape, same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Line", "find_lines", "find_violations", "path_of_pointer"]


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Final[dict[str, tuple[str, Callable[[Any], bool]]]] = {
    "object": ("an object", lambda value: isinstance(value, dict)),
    "array": ("an array", lambda value: isinstance(value, list)),
    "string": ("a string", lambda value: isinstance(value, str)),
    "integer": ("an integer", lambda value: _is_number(value) and value == value // 1),
    "number": ("a number", _is_number),
    "boolean": ("a boolean", lambda value: isinstance(value, bool)),
    "null": ("null", lambda value: value is None),
}


def find_violations(schema: Any, value: Any, path: str = "") -> list[str]:
    """Give every violation as the reference words it, sorted by bytes."""
    return sorted(_violations(schema, value, path), key=str.encode)


def _violations(schema: Any, value: Any, path: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    at = f"{path}: " if path else ""
    if "const" in schema and not same(schema["const"], value):
        yield f"{at}must equal const {show(schema['const'])}"
    listed = schema.get("enum")
    if isinstance(listed, list) and not any(same(one, value) for one in listed):
        yield f"{at}value is not one of the allowed enum values"
    kind = schema.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        return
    name, fits = _TYPES[kind]
    if not fits(value):
        yield f"{at}must be {name}"
    elif kind == "object":
        yield from _object(schema, value, path, at)
    elif kind == "array" and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            yield from _violations(schema["items"], item, f"{path}[{index}]")
    elif kind == "string":
        least = schema.get("minLength")
        if _is_number(least) and len(value) < int(least):
            yield f"{at}must be at least {int(least)} characters"
    elif kind in ("integer", "number"):
        least = schema.get("minimum")
        if _is_number(least) and value < least:
            yield f"{at}must be >= {show(least)}"


def _object(schema: dict[str, Any], value: dict[str, Any], path: str, at: str) -> Iterator[str]:
    for name in _names(schema):
        if name not in value:
            yield f"{at}missing required property {quote(name)}"
    declared = _properties(schema)
    for name, item in value.items():
        if name in declared:
            yield from _violations(declared[name], item, _join(path, name))
        elif schema.get("additionalProperties") is False:
            yield f"{at}additional property {quote(name)} is not allowed"


def _names(schema: dict[str, Any]) -> list[str]:
    required = schema.get("required")
    rows = required if isinstance(required, list) else []
    return [name for name in rows if isinstance(name, str)]


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    declared = schema.get("properties")
    return declared if isinstance(declared, dict) else {}


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


@dataclass(frozen=True, slots=True)
class Line:
    """One breaking change in the words of the reference, and the pointers it accounts for.

    A line at `whole` accounts for all that changed at that schema and below it.
    """

    text: str
    pointers: tuple[str, ...] = ()
    whole: str | None = None

    def covers(self, pointer: str) -> bool:
        """Tell whether this line says all there is to say about a place."""
        if self.whole is not None and f"{pointer}/".startswith(f"{self.whole}/"):
            return True
        return pointer in self.pointers


def find_lines(old: Any, new: Any) -> tuple[Line, ...]:
    """Compare two schemas by the rules of the reference alone."""
    return tuple(_lines(old, new, "", ""))


def _lines(old: Any, new: Any, path: str, pointer: str) -> Iterator[Line]:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return
    at = f"{path}: " if path else ""
    was, now = old.get("type"), new.get("type")
    if isinstance(was, str) and isinstance(now, str) and was != now:
        yield Line(f"{at}type changed {quote(was)} → {quote(now)}", whole=pointer)
        return
    yield from _enum_lines(old, new, at, pointer)
    for keyword in ("minLength", "minimum"):
        least, most = new.get(keyword), old.get(keyword)
        if _is_number(least) and (not _is_number(most) or least > most):
            yield Line(f"{at}{keyword} tightened", (f"{pointer}/{keyword}",))
    for name in dict.fromkeys(_names(new)):
        if name not in _names(old):
            places = (f"{pointer}/required", f"{pointer}/properties/{escape(name)}")
            yield Line(f"{at}property {quote(name)} is now required", places)
    closed = new.get("additionalProperties") is False
    if closed and old.get("additionalProperties") is not False:
        place = f"{pointer}/additionalProperties"
        yield Line(f"{at}additionalProperties tightened to false", (place,))
    before, after = _properties(old), _properties(new)
    for name in before:
        place = f"{pointer}/properties/{escape(name)}"
        if name in after:
            yield from _lines(before[name], after[name], _join(path, name), place)
        elif closed:
            said = f"{at}property {quote(name)} removed while additionalProperties is false"
            yield Line(said, (place,))
        else:
            yield Line(f"{_join(path, name)}: property removed", (place,))
    yield from _lines(old.get("items"), new.get("items"), f"{path}[]", f"{pointer}/items")


def _enum_lines(old: dict[str, Any], new: dict[str, Any], at: str, pointer: str) -> Iterator[Line]:
    before, after = old.get("enum"), new.get("enum")
    if not isinstance(after, list):
        return
    place = (f"{pointer}/enum",)
    if not isinstance(before, list):
        yield Line(f"{at}enum constraint added where any value was allowed", place)
        return
    for value in before:
        if not any(same(value, one) for one in after):
            yield Line(f"{at}enum value {show(value)} removed", place)


def path_of_pointer(pointer: str) -> str:
    """Write the place of a change as the reference writes paths: `a.b`, `l[]`."""
    path = ""
    steps = iter(pointer.split("/")[1:])
    for step in steps:
        if step in ("properties", "patternProperties"):
            name = next(steps, "").replace("~1", "/").replace("~0", "~")
            path = _join(path, name)
        elif step == "items":
            path += "[]"
    return path
