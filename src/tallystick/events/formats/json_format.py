"""The JSON format: `application/cloudevents+json`, and batches of it.

Rules (JSON format 1.0): attributes are top-level members, each at most once; null means unset;
an Integer has no fraction and no exponent; `data` holds a JSON value or, under any other content
type, a string; `data_base64` holds octets; the two exclude each other; `data: null` is data.

`json_quick` reads the bodies that it can decide. Every other body is read here, by the exact rules,
and an error names the attribute and its byte offset.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn

import msgspec
import orjson

from tallystick.core.canonical import pointer_to
from tallystick.core.errors import Refused, Rejected
from tallystick.core.scan import Member, load, scan
from tallystick.events.event import Event, make_of
from tallystick.events.extensions import NONE, Extensions
from tallystick.events.formats.json_quick import encode_shape, learn, read_shape, read_typed
from tallystick.events.payload import ABSENT, json_octets
from tallystick.events.values import Kind, read_base64, write_base64

__all__ = ["BATCH_MEDIA_TYPE", "MEDIA_TYPE", "read", "read_batch", "write", "write_batch"]

MEDIA_TYPE: Final = "application/cloudevents+json"
BATCH_MEDIA_TYPE: Final = "application/cloudevents-batch+json"

_FAULTS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError)
_SPELLED: Final = frozenset({Kind.BINARY, Kind.URI, Kind.URI_REFERENCE, Kind.TIMESTAMP})
_NO_VALUES: Final[dict[type, str]] = {float: "a fraction", dict: "an object", list: "an array"}
_dumps: Final = orjson.dumps


def read(body: bytes, known: Extensions = NONE) -> Event:
    """Read one event, or raise `Rejected` with the attribute's pointer and the byte offset."""
    if not known:
        event = read_shape(body) or read_typed(body)
        if event is not None:
            return event
    event = _read_fully(body, known)
    learn(event)
    return event


def _read_fully(body: bytes, known: Extensions) -> Event:
    """Read one event with every member it has; `read` must always agree with this."""
    try:
        given = msgspec.json.decode(body)
        if type(given) is not dict or len(json.loads(body, object_pairs_hook=list)) != len(given):
            _members(body)
    except _FAULTS:
        _members(body)
        given = load(body)
    try:
        return _judge(given, known)
    except Refused as error:
        places = _members(body)
        name = (error.pointer or "/").split("/")[1]
        place = places.get(name) or places.get(f"{name}_base64")
        raise Rejected(
            error.message,
            code=error.code,
            pointer=error.pointer,
            offset=place.value if place else None,
            hint=error.hint,
        ) from None


def _judge(given: dict[str, Any], known: Extensions) -> Event:
    given = dict(given)
    data: Any = ABSENT
    encoded = given.pop("data_base64", None)
    if encoded is not None:
        data = _read_octets(encoded)
        if "data" in given:
            _refuse("data_base64", "cannot stand beside `data`: use one of the two", "data_twice")
    if "data" in given:
        data = given.pop("data")
    for name, value in given.items():
        if type(value) in _NO_VALUES:
            _refuse(name, f"{_NO_VALUES[type(value)]} cannot be an attribute value", "bad_type")
    return make_of(given, data, known, _SPELLED)


def _members(body: bytes) -> dict[str, Member]:
    places: dict[str, Member] = {}
    for member in scan(body):
        if len(member.path) > 1:
            continue
        name = member.path[0]
        if name in places:
            raise Rejected(
                f"{name}: occurs twice",
                code="duplicate_attribute",
                pointer=pointer_to(member.path),
                offset=member.start,
            )
        places[name] = member
    return places


def _read_octets(encoded: Any) -> bytes:
    if type(encoded) is not str:
        _refuse("data_base64", "must be a string", "bad_type")
    try:
        return read_base64(encoded)
    except Refused as error:
        _refuse("data_base64", error.message, error.code)


def _refuse(name: str, fault: str, code: str) -> NoReturn:
    raise Refused(f"{name}: {fault}", code=code, pointer=pointer_to((name,)))


def read_batch(body: bytes, known: Extensions = NONE) -> tuple[Event, ...]:
    """Read a batch: a JSON array of events; the pointer of a fault begins with the index."""
    from tallystick.events.stream import read_json_batch  # noqa: PLC0415 (it knows `read`)

    return tuple(read_json_batch((body,), known))


def write(event: Event) -> bytes:
    """Write one event as compact UTF-8; attributes in their own order, then the data."""
    members = event.held
    if type(members) is not dict:
        return encode_shape(members)
    if isinstance(members.get("data"), bytes):
        members = dict(members)
        members["data_base64"] = members.pop("data")
    try:
        return _dumps(members, _octets_as_text)
    except TypeError:
        return _write_exact(members)


def _octets_as_text(value: Any) -> str:
    if isinstance(value, bytes):
        return write_base64(value)
    raise TypeError(type(value).__name__)


def _write_exact(members: Mapping[str, Any]) -> bytes:
    """Write an event with long integers, which the fast encoder cannot."""
    flat = {
        name: write_base64(value) if isinstance(value, bytes) else value
        for name, value in members.items()
    }
    pieces = (_dumps(name) + b":" + _written(name, value) for name, value in flat.items())
    return b"{" + b",".join(pieces) + b"}"


def _written(name: str, value: Any) -> bytes:
    return json_octets(value) if name == "data" else _dumps(value)


def write_batch(events: Iterable[Event]) -> bytes:
    """Write a batch as a JSON array."""
    return b"[" + b",".join(map(write, events)) + b"]"
