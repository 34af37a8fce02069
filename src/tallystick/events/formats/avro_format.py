"""The Avro format: `application/cloudevents+avro`. It has no batch.

Rules (Avro format 1.0, `cloudevents.avsc`): a record of `attribute`, a map of null, boolean, int,
string or bytes, and `data`, a union. Null is unset. URIs and Timestamps are strings. `data` is
bytes for octets, null for none; text is a string, and JSON data under a content type is the
string of its JSON text. JSON data without a content type is modelled by the union (section 3) as
far as the schema can say it; the schema has no place for an array of numbers, say. Then, as for
JSON's null, it is written as JSON text and `application/json` is made explicit.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Final

from tallystick.events.event import Event, make_of
from tallystick.events.extensions import NONE, Extensions
from tallystick.events.formats.avro_wire import (
    Cursor,
    write_bytes,
    write_double,
    write_long,
    write_map,
    write_string,
)
from tallystick.events.grammar import parse_media_type
from tallystick.events.payload import ABSENT, IMPLIED, carry_text, json_octets, read_text
from tallystick.events.reject import reading
from tallystick.events.values import Kind, Value

__all__ = ["MEDIA_TYPE", "read", "write"]

MEDIA_TYPE: Final = "application/cloudevents+avro"

_SPELLED: Final = frozenset({Kind.URI, Kind.URI_REFERENCE, Kind.TIMESTAMP})
_DEEPEST: Final = 100
_EXACT: Final = 1 << 53


class _Unsayable(Exception):
    """The schema has no place for this JSON value."""


def read(body: bytes, known: Extensions = NONE) -> Event:
    """Read one event, or raise `Rejected` with the attribute's pointer and the byte offset."""
    cursor = Cursor(body)
    places: dict[str, int] = {}
    attributes = _read_attributes(cursor, places)
    places["data"] = cursor.at
    branch = cursor.long()
    cursor.at = places["data"]
    found = cursor.branch(_DATA)
    cursor.finish()
    content_type = attributes.get("datacontenttype")
    media = parse_media_type(content_type) if isinstance(content_type, str) else None
    with reading(places.get):
        data = read_text(found, media) if branch == _STRING else found
        return make_of(attributes, data, known, _SPELLED)


def _read_attributes(cursor: Cursor, places: dict[str, int]) -> dict[str, Any]:
    def read_value(inner: Cursor) -> Any:
        marks.append(inner.at)
        return inner.branch(_VALUES)

    marks: list[int] = []
    attributes = cursor.map(read_value)
    places.update(zip(attributes, marks, strict=True))
    return attributes


def _read_int(cursor: Cursor) -> int:
    start, number = cursor.at, cursor.long()
    if not -0x80000000 <= number <= 0x7FFFFFFF:
        raise cursor.reject(f"{number} is not a 32-bit integer", "bad_integer", start)
    return number


def _read_number(cursor: Cursor) -> float:
    start, number = cursor.at, cursor.double()
    if not isfinite(number):
        raise cursor.reject(f"{number} is not a JSON number", "not_finite", start)
    return int(number) if number.is_integer() and abs(number) < _EXACT else number


def _null(_cursor: Cursor) -> None:
    return None


def _absent(_cursor: Cursor) -> Any:
    return ABSENT


def _read_object(cursor: Cursor, depth: int = 1) -> dict[str, Any]:
    """Read the schema's record of one map: a JSON object inside another value."""
    if depth > _DEEPEST:
        raise cursor.reject(f"nested deeper than {_DEEPEST} levels", "too_deep")

    def read_inner(inner: Cursor) -> dict[str, Any]:
        return _read_object(inner, depth + 1)

    members = (
        _null,
        Cursor.boolean,
        lambda inner: inner.map(read_inner),
        lambda inner: [read_inner(inner) for _ in inner.blocks()],
        _read_number,
        Cursor.string,
    )
    return cursor.map(lambda inner: inner.branch(members))


_VALUES: Final[tuple[Any, ...]] = (_null, Cursor.boolean, _read_int, Cursor.string, Cursor.bytes)
_MEMBERS: Final[tuple[Any, ...]] = (
    _null, Cursor.boolean, _read_object, _read_number, Cursor.string,
)  # fmt: skip
_DATA: Final[tuple[Any, ...]] = (
    Cursor.bytes,
    _absent,
    Cursor.boolean,
    lambda cursor: cursor.map(lambda inner: inner.branch(_MEMBERS)),
    lambda cursor: [_read_object(cursor) for _ in cursor.blocks()],
    _read_number,
    Cursor.string,
)
_BYTES, _NULL, _BOOLEAN, _MAP, _ARRAY, _DOUBLE, _STRING = range(7)


def write(event: Event) -> bytes:
    """Write one event."""
    content_type, data = _write_data(event)
    attributes = event.attributes | ({"datacontenttype": content_type} if content_type else {})
    return write_map({name: _write_value(value) for name, value in attributes.items()}) + data


def _write_value(value: Value) -> bytes:
    if isinstance(value, bool):
        return write_long(1) + bytes((value,))
    if isinstance(value, int):
        return write_long(2) + write_long(value)
    if isinstance(value, bytes):
        return write_long(4) + write_bytes(value)
    return write_long(3) + write_string(value)


def _write_data(event: Event) -> tuple[str | None, bytes]:
    data, content_type = event.data, event.datacontenttype
    if data is ABSENT:
        return content_type, write_long(_NULL)
    if isinstance(data, bytes):
        return content_type, write_long(_BYTES) + write_bytes(data)
    if content_type is None and not isinstance(data, str):
        try:
            return None, _write_top(data)
        except _Unsayable:
            text = json_octets(data).decode()
            return IMPLIED, write_long(_STRING) + write_string(text)
    text, content_type = carry_text(data, event.media, content_type)
    return content_type, write_long(_STRING) + write_string(text)


def _write_top(data: Any) -> bytes:
    if isinstance(data, dict):
        return write_long(_MAP) + write_map({k: _write_member(v) for k, v in data.items()})
    if isinstance(data, list):
        return write_long(_ARRAY) + _write_array(data, 1)
    return _write_scalar(data, {bool: _BOOLEAN, float: _DOUBLE})


def _write_member(value: Any) -> bytes:
    if isinstance(value, dict):
        return write_long(2) + _write_object(value, 1)
    return _write_scalar(value, {type(None): 0, bool: 1, float: 3, str: 4})


def _write_object(value: Any, depth: int) -> bytes:
    if not isinstance(value, dict) or depth > _DEEPEST:
        raise _Unsayable
    return write_map({name: _write_inner(member, depth) for name, member in value.items()})


def _write_inner(value: Any, depth: int) -> bytes:
    if isinstance(value, dict):
        inner = {name: _write_object(member, depth + 1) for name, member in value.items()}
        return write_long(2) + write_map(inner)
    if isinstance(value, list):
        return write_long(3) + _write_array(value, depth + 1)
    return _write_scalar(value, {type(None): 0, bool: 1, float: 4, str: 5})


def _write_array(items: list[Any], depth: int) -> bytes:
    inner = b"".join(_write_object(item, depth) for item in items)
    return (write_long(len(items)) + inner if items else b"") + b"\x00"


def _write_scalar(value: Any, branches: dict[type, int]) -> bytes:
    kind = float if type(value) is int and abs(value) <= _EXACT else type(value)
    if kind not in branches:
        raise _Unsayable
    branch = write_long(branches[kind])
    if value is None:
        return branch
    if kind is bool:
        return branch + bytes((value,))
    return branch + (write_double(value) if kind is float else write_string(value))
