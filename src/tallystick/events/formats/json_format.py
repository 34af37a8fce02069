"""The JSON format: `application/cloudevents+json`, and batches of it.

Rules (JSON format 1.0): attributes are top-level members, each at most once; null means unset;
an Integer has no fraction and no exponent; `data` holds a JSON value or, under any other content
type, a string; `data_base64` holds octets; the two exclude each other; `data: null` is data.

The quick way is a typed C decoder. It knows the core attributes and the extension names met so
far, so what it does not know it drops; a body that encodes back to itself therefore lost nothing:
no unknown member, no duplicate, no escaped character. Every other body is read by `_read_fully`,
which is the rule, and names the attribute and the byte where it is broken.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Final, Literal, NoReturn, NotRequired, TypedDict, cast

import msgspec
import orjson

from tallystick.core.canonical import pointer_to
from tallystick.core.errors import Refused, Rejected
from tallystick.core.scan import Member, load, scan
from tallystick.events.event import Event, make_of
from tallystick.events.extensions import NONE, Extensions
from tallystick.events.grammar import is_uri, is_uri_reference, parse_media_type
from tallystick.events.payload import ABSENT, json_octets
from tallystick.events.timestamp import is_timestamp
from tallystick.events.values import Kind, read_base64, string_fault, write_base64

__all__ = ["BATCH_MEDIA_TYPE", "MEDIA_TYPE", "read", "read_batch", "write", "write_batch"]

MEDIA_TYPE: Final = "application/cloudevents+json"
BATCH_MEDIA_TYPE: Final = "application/cloudevents-batch+json"

_MOST_NAMES: Final = 256
_QUOTE, _BACKSLASH = 34, 92
_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Int32 = Annotated[int, msgspec.Meta(ge=-0x80000000, le=0x7FFFFFFF)]
_QUICK_FAULTS: Final = (
    msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError, ValueError,
)  # fmt: skip
_MOST_REFERENCES: Final = 4096
_JSON_TYPES: Final = (None, "application/json")
_SPELLED: Final = frozenset({Kind.BINARY, Kind.URI, Kind.URI_REFERENCE, Kind.TIMESTAMP})
_NO_VALUES: Final[dict[type, str]] = {float: "a fraction", dict: "an object", list: "an array"}
_dumps: Final = orjson.dumps


def _typed_decoder(names: Iterable[str]) -> Callable[[bytes], dict[str, Any]]:
    """Make a C decoder that checks the types of core attributes and of these extensions."""
    members: dict[str, Any] = {
        "specversion": Literal["1.0"],
        "id": _Text,
        "source": _Text,
        "type": _Text,
        "datacontenttype": NotRequired[_Text],
        "dataschema": NotRequired[_Text],
        "subject": NotRequired[_Text],
        "time": NotRequired[_Text],
        "data": NotRequired[Any],
        **dict.fromkeys(names, NotRequired[str | _Int32 | bool]),
    }
    shape: Any = TypedDict("shape", members)  # type: ignore[misc]
    return cast("Callable[[bytes], dict[str, Any]]", msgspec.json.Decoder(shape).decode)


_met: dict[str, None] = {}
_references: set[str] = set()
_decode = _typed_decoder(_met)


def _learn(event: Event) -> None:
    """Let the quick decoder know the extension names of a good event, up to a bound."""
    global _decode  # noqa: PLW0603 (a cache of one decoder)
    new = [name for name in event.extensions if name not in _met]
    if new and len(_met) + len(new) <= _MOST_NAMES and all(len(name) <= 64 for name in new):
        _met.update(dict.fromkeys(new))
        _decode = _typed_decoder(_met)


def read(body: bytes, known: Extensions = NONE) -> Event:
    """Read one event, or raise `Rejected` with the attribute's pointer and the byte offset."""
    try:
        members = _decode(body)
        if (
            (_dumps(members) == body or _all_kept(members, body))
            and ((body.isascii() and 92 not in body and 127 not in body) or _strings_hold(members))
            and (members["source"] in _references or _remembered(members["source"]))
            and ("time" not in members or is_timestamp(members["time"]))
            and ("dataschema" not in members or is_uri(members["dataschema"]))
        ):
            content_type = members.get("datacontenttype")
            if (content_type in _JSON_TYPES or _data_fits(content_type, members)) and (
                not known or known.keys().isdisjoint(members)
            ):
                return Event(members)
    except _QUICK_FAULTS:
        pass
    event = _read_fully(body, known)
    _learn(event)
    return event


def _remembered(source: str) -> bool:
    """Judge a source, and remember a good one; sources repeat from event to event."""
    if not is_uri_reference(source):
        return False
    if len(source) <= 256:
        if len(_references) == _MOST_REFERENCES:
            _references.clear()
        _references.add(source)
    return True


def _strings_hold(members: dict[str, Any]) -> bool:
    return not any(
        string_fault(value)
        for name, value in members.items()
        if type(value) is str and name != "data"
    )


def _data_fits(content_type: str | None, members: dict[str, Any]) -> bool:
    media = parse_media_type(content_type or "")
    return media is not None and (
        media.is_json or "data" not in members or type(members["data"]) is str
    )


def _all_kept(members: dict[str, Any], body: bytes) -> bool:
    """Tell whether the decoder dropped nothing: each string of the body is in the members.

    Without a backslash every quote is the edge of a string, and no member goes without a name.
    """
    if _BACKSLASH in body:
        return False
    strings = 0
    work: list[Any] = [members]
    while work:
        value = work.pop()
        kind = type(value)
        if kind is dict:
            strings += len(value)
            work.extend(value.values())
        elif kind is list:
            work.extend(value)
        elif kind is str:
            strings += 1
    return body.count(_QUOTE) == 2 * strings


def _read_fully(body: bytes, known: Extensions) -> Event:
    """Read one event with every member it has; `read` must always agree with this."""
    try:
        given = msgspec.json.decode(body)
        if type(given) is not dict or len(json.loads(body, object_pairs_hook=list)) != len(given):
            _members(body)
    except _QUICK_FAULTS:
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
            _refuse("data_base64", "excludes data", "data_twice")
    if "data" in given:
        data = given.pop("data")
    for name, value in given.items():
        if type(value) in _NO_VALUES:
            _refuse(name, f"{_NO_VALUES[type(value)]} is no attribute value", "bad_type")
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
        _refuse("data_base64", "is not a string", "bad_type")
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
    members = event.members
    if isinstance(members.get("data"), bytes):
        members = dict(members)
        members["data_base64"] = members.pop("data")
    try:
        body = _dumps(members, _octets_as_text)
    except TypeError:
        return _write_exact(members)
    return _write_exact(members) if b"null" in body else body


def _octets_as_text(value: Any) -> str:
    if isinstance(value, bytes):
        return write_base64(value)
    raise TypeError(type(value).__name__)


def _write_exact(members: Mapping[str, Any]) -> bytes:
    """Write what the quick encoder cannot, or may have written as null: long integers, NaN."""
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
