"""Data and its octets: how the content type determines the payload and its encoding.

Formats that carry text (Protobuf, XML, Avro) and modes that carry octets share these rules: is
this value allowed under this content type, what are its octets, and what do octets mean. JSON
data is UTF-8 JSON text. Text is encoded in the declared character set. A JSON value whose content
type is only implied is written with an explicit `application/json`, as the JSON format requires for
every re-encoding (JSON format, 3.1.2).
"""

from __future__ import annotations

from enum import Enum
from math import isfinite
from typing import Any, Final, Literal, Self

import msgspec
import orjson

from tallystick.core.canonical import MAX_DEPTH, canonical_exact, pointer_to
from tallystick.core.errors import Refused, Rejected
from tallystick.core.scan import load, scan
from tallystick.events.grammar import MediaType

__all__ = [
    "ABSENT",
    "IMPLIED",
    "Absent",
    "Message",
    "Xml",
    "carry_text",
    "check_data",
    "json_octets",
    "octets_of",
    "read_json",
    "read_text",
    "value_of",
]

IMPLIED: Final = "application/json"
_CHARSETS: Final = {"utf-8": "utf-8", "us-ascii": "ascii", "iso-8859-1": "latin-1"}
_WRAP: Final = b'{"data":'
_EXACT_FLOATS: Final = 1e18
_PLAIN: Final = (
    orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)


class Absent(Enum):
    """The type of `ABSENT`."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> Literal[False]:
        return False


ABSENT: Final = Absent.ABSENT
"""No data at all, as distinct from JSON's null."""


class Message(bytes):
    """The octets of a Protobuf message (`proto_data`), with the URL of its type."""

    type_url: str

    @classmethod
    def of(cls, octets: bytes, type_url: str) -> Self:
        """Keep the type's URL beside the octets."""
        message = cls(octets)
        message.type_url = type_url
        return message


class Xml(str):
    """Text that came as an XML element (`xs:any`) and goes back as one; equal to the same str."""

    __slots__ = ()


def check_data(data: Any, media: MediaType | None) -> Any:
    """Check data and give the form that the event keeps (JSON is copied); raise `Refused`."""
    if data is ABSENT or isinstance(data, bytes):
        return data
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    if (media is None or media.is_json) and type(data) is not Xml:
        return _copy(data)
    if not isinstance(data, str):
        raise Refused(
            f"data: the content type needs text, found {type(data).__name__}",
            code="data_not_text",
            pointer="/data",
            hint="use a JSON content type, a str, or bytes",
        )
    _check_characters(data, ())
    return data


def _check_characters(text: str, trail: tuple[str | int, ...]) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Refused(
            f"data: {error.reason}", code="lone_surrogate", pointer=pointer_to(("data", *trail))
        ) from None


def _copy(root: Any) -> Any:
    """Copy a JSON value without recursion; anything that JSON cannot say is refused."""
    top: list[Any] = [None]
    work: list[tuple[Any, Any, Any, tuple[str | int, ...]]] = [(root, top, 0, ())]
    while work:
        value, holder, key, trail = work.pop()
        kind = type(value)
        if len(trail) > MAX_DEPTH:
            _refuse(f"nested deeper than {MAX_DEPTH} levels", "too_deep", trail[:8])
        if kind is dict:
            made: Any = dict.fromkeys(value)
            for name, member in value.items():
                if type(name) is not str:
                    _refuse("a member name must be a str", "bad_json", trail)
                _check_characters(name, trail)
                work.append((member, made, name, (*trail, name)))
        elif kind is list or kind is tuple:
            made = [None] * len(value)
            work.extend((item, made, index, (*trail, index)) for index, item in enumerate(value))
        elif isinstance(value, str):
            _check_characters(value, trail)
            made = str(value)
        elif kind is float and not isfinite(value):
            _refuse(f"{value} is not a JSON number", "not_finite", trail)
        elif value is None or kind in (bool, int, float):
            made = value
        else:
            _refuse(f"{kind.__name__} is not a JSON value", "bad_json", trail)
        holder[key] = made
    return top[0]


def _refuse(fault: str, code: str, trail: tuple[str | int, ...]) -> None:
    raise Refused(f"data: {fault}", code=code, pointer=pointer_to(("data", *trail)))


def json_octets(value: Any) -> bytes:
    """Write a JSON value as compact UTF-8, integers exact; what JSON cannot say is refused."""
    try:
        octets = orjson.dumps(value, option=_PLAIN)
    except (TypeError, RecursionError):
        return _write_exactly(_copy(value))
    if b"null" in octets:
        _copy(value)  # a NaN is written as null: this refuses it
    return octets


def _write_exactly(value: Any) -> bytes:
    """Write a checked value that has long integers, or is deep."""
    try:
        return msgspec.json.encode(value)
    except (ValueError, RecursionError):
        return canonical_exact(value)


def read_json(octets: bytes) -> Any:
    """Read any JSON value exactly; raise `Rejected` with the offset and a pointer into /data."""
    try:
        value = orjson.loads(octets)
    except orjson.JSONDecodeError:
        value = None
    if value is not None and not _may_have_lost(value):
        return value
    try:
        scan(_WRAP + octets + b"}")
    except Rejected as error:
        offset = None if error.offset is None else min(error.offset - len(_WRAP), len(octets))
        raise Rejected(
            f"data: {error.message}", code=error.code, pointer=error.pointer, offset=offset
        ) from None
    return load(octets)


def _may_have_lost(root: Any) -> bool:
    """Tell whether the quick decoder may have turned a long integer into a float."""
    work = [root]
    while work:
        value = work.pop()
        kind = type(value)
        if kind is dict:
            work.extend(value.values())
        elif kind is list:
            work.extend(value)
        elif kind is float and not -_EXACT_FLOATS < value < _EXACT_FLOATS:
            return True
    return False


def carry_text(data: Any, media: MediaType | None, content_type: str | None) -> tuple[str, Any]:
    """Give data that is not bytes as text, and the content type to write."""
    if media is None and isinstance(data, str):
        return data, None
    if media is None or media.is_json:
        return json_octets(data).decode(), content_type or IMPLIED
    return data, content_type


def read_text(text: str, media: MediaType | None) -> Any:
    """Read text under a content type: JSON text is the value it stands for."""
    return read_json(text.encode()) if media is not None and media.is_json else text


def octets_of(data: Any, media: MediaType | None) -> bytes:
    """Give the octets of data that is not absent, under its content type."""
    if isinstance(data, bytes):
        return data
    if media is None or media.is_json:
        return json_octets(data)
    codec = _CHARSETS.get(media.charset)
    if codec is None:
        raise Refused(
            f"data: text cannot be written in the character set {media.charset!r:.40}",
            code="bad_charset",
            pointer="/data",
            hint=f"use one of: {', '.join(_CHARSETS)}; or pass the data as bytes",
        )
    try:
        return str(data).encode(codec)
    except UnicodeEncodeError as error:
        raise Refused(
            f"data: {media.charset} has no character {data[error.start]!r}", code="bad_charset",
            pointer="/data",
        ) from None  # fmt: skip


def value_of(octets: bytes, media: MediaType | None) -> Any:
    """Read the octets of a message as a JSON value or a text, or keep them as octets.

    Octets that do not fit the content type stay octets, as with `data_base64`: the
    data of an event is opaque to the carrier.
    """
    codec = None if media is None else _CHARSETS.get(media.charset)
    try:
        if media is not None and media.is_json:
            return read_json(octets)
        if media is not None and media.is_text and codec is not None:
            return octets.decode(codec)
    except (Rejected, UnicodeDecodeError):
        return octets
    return octets
