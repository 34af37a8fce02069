"""The compact Avro format: `application/cloudevents+avro-compact`. It has no batch.

Rules (Avro compact format, working draft, `cloudevents-compact.avsc`): core attributes are named
fields, `specversion` is implied, `time` and Timestamps are whole microseconds, URIs are strings,
`data` is octets or nothing. JSON data whose content type is only implied gets it explicitly.
"""

from __future__ import annotations

from typing import Any, Final

from tallystick.core.errors import Refused, Rejected
from tallystick.events.event import CORE, SPEC_VERSION, Event, make_of
from tallystick.events.extensions import NONE, Extensions
from tallystick.events.formats.avro_wire import (
    Cursor,
    write_bytes,
    write_long,
    write_map,
    write_string,
)
from tallystick.events.grammar import parse_media_type
from tallystick.events.payload import ABSENT, IMPLIED, octets_of, value_of
from tallystick.events.reject import reading
from tallystick.events.timestamp import Timestamp
from tallystick.events.values import Kind, Value

__all__ = ["MEDIA_TYPE", "read", "write"]

MEDIA_TYPE: Final = "application/cloudevents+avro-compact"

_SPELLED: Final = frozenset({Kind.URI, Kind.URI_REFERENCE})
_REQUIRED: Final = ("id", "source", "type")
_TEXTS: Final = ("datacontenttype", "dataschema", "subject")


def _null(_cursor: Cursor) -> None:
    return None


def _absent(_cursor: Cursor) -> Any:
    return ABSENT


def _read_int(cursor: Cursor) -> int:
    start, number = cursor.at, cursor.long()
    if not -0x80000000 <= number <= 0x7FFFFFFF:
        raise cursor.reject(f"{number} is not a 32-bit integer", "bad_integer", start)
    return number


def _read_timestamp(cursor: Cursor) -> Timestamp:
    start, micros = cursor.at, cursor.long()
    try:
        return Timestamp.of_nanoseconds(micros * 1000)
    except Refused as error:
        raise cursor.reject(error.message, error.code, start) from None


_TEXT: Final[tuple[Any, ...]] = (_null, Cursor.string)
_TIME: Final[tuple[Any, ...]] = (_null, _read_timestamp)
_VALUES: Final[tuple[Any, ...]] = (
    Cursor.boolean, _read_int, _read_timestamp, Cursor.string, Cursor.bytes,
)  # fmt: skip
_DATA: Final[tuple[Any, ...]] = (Cursor.bytes, _absent)


def read(body: bytes, known: Extensions = NONE) -> Event:
    """Read one event, or raise `Rejected` with the attribute's pointer and the byte offset."""
    cursor = Cursor(body)
    places: dict[str, int] = {}
    attributes: dict[str, Any] = {"specversion": SPEC_VERSION}
    for name in (*_REQUIRED, *_TEXTS, "time"):
        places[name] = cursor.at
        if name in _REQUIRED:
            attributes[name] = cursor.string()
        else:
            attributes[name] = cursor.branch(_TIME if name == "time" else _TEXT)

    def read_value(inner: Cursor) -> Any:
        marks.append(inner.at)
        return inner.branch(_VALUES)

    marks: list[int] = []
    extensions = cursor.map(read_value)
    places |= zip(extensions, marks, strict=True)
    for name in extensions:
        if name in CORE:
            raise Rejected(
                f"{name}: is a core attribute, not an extension",
                code="not_an_extension",
                pointer=f"/{name}",
                offset=places[name],
            )
    places["data"] = cursor.at
    data = cursor.branch(_DATA)
    cursor.finish()
    content_type = attributes["datacontenttype"]
    media = parse_media_type(content_type) if content_type else None
    with reading(places.get):
        value = data if data is ABSENT else value_of(data, media)
        return make_of(attributes | extensions, value, known, _SPELLED)


def write(event: Event) -> bytes:
    """Write one event."""
    attributes, data = event.attributes, write_long(1)
    if event.data is not ABSENT:
        data = write_long(0) + write_bytes(octets_of(event.data, event.media))
        if not isinstance(event.data, bytes):
            attributes.setdefault("datacontenttype", IMPLIED)
    texts = (_write_text(attributes.get(name)) for name in _TEXTS)
    time = write_long(0) if event.time is None else write_long(1) + _write_timestamp(event.time)
    extensions = {name: _write_value(value) for name, value in event.extensions.items()}
    return b"".join(
        (
            *(write_string(str(attributes[name])) for name in _REQUIRED),
            *texts,
            time,
            write_map(extensions),
            data,
        )
    )


def _write_text(value: Value | None) -> bytes:
    return write_long(0) if value is None else write_long(1) + write_string(str(value))


def _write_timestamp(value: Timestamp) -> bytes:
    return write_long(value.nanoseconds // 1000)


def _write_value(value: Value) -> bytes:
    if isinstance(value, bool):
        return write_long(0) + bytes((value,))
    if isinstance(value, int):
        return write_long(1) + write_long(value)
    if isinstance(value, Timestamp):
        return write_long(2) + _write_timestamp(value)
    if isinstance(value, bytes):
        return write_long(4) + write_bytes(value)
    return write_long(3) + write_string(value)
