"""The CloudEvents type system: seven kinds of attribute value (spec, Type System).

| kind | Python | canonical string |
|---|---|---|
| Boolean | bool | `true`, `false` |
| Integer | int, 32 bits | digits, perhaps a minus |
| String | str without control characters, noncharacters or lone surrogates | itself |
| Binary | bytes | base64 with padding (RFC 4648, 4) |
| URI | `Uri`, RFC 3986 4.3 | itself |
| URI-reference | `UriReference`, RFC 3986 4.1 | itself |
| Timestamp | `Timestamp`, RFC 3339 | itself |

`check` judges a value of a kind, `parse` reads its canonical string, `spell` writes it.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Self

from tallystick.core.errors import Refused
from tallystick.events.grammar import is_uri, is_uri_reference
from tallystick.events.timestamp import Timestamp, is_timestamp

__all__ = [
    "Kind",
    "Uri",
    "UriReference",
    "Value",
    "adopt",
    "check",
    "kind_of",
    "parse",
    "read_base64",
    "spell",
    "string_fault",
    "write_base64",
]


class Kind(StrEnum):
    """The seven types of the CloudEvents type system."""

    BOOLEAN = "Boolean"
    INTEGER = "Integer"
    STRING = "String"
    BINARY = "Binary"
    URI = "URI"
    URI_REFERENCE = "URI-reference"
    TIMESTAMP = "Timestamp"


class Uri(str):
    """An absolute URI (RFC 3986, 4.3)."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Check the text; raise `Refused` if it is not an absolute URI."""
        if not is_uri(text):
            raise Refused(f"{text!r:.60} is not an absolute URI", code="bad_uri")
        return str.__new__(cls, text)


class UriReference(str):
    """A URI-reference (RFC 3986, 4.1): absolute or relative."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Check the text; raise `Refused` if it is not a URI-reference."""
        if not is_uri_reference(text):
            raise Refused(f"{text!r:.60} is not a URI-reference", code="bad_uri_reference")
        return str.__new__(cls, text)


Value = bool | int | str | bytes | Uri | UriReference | Timestamp

_KIND_OF: Final[dict[type, Kind]] = {
    bool: Kind.BOOLEAN,
    int: Kind.INTEGER,
    str: Kind.STRING,
    bytes: Kind.BINARY,
    Uri: Kind.URI,
    UriReference: Kind.URI_REFERENCE,
    Timestamp: Kind.TIMESTAMP,
}
_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,9})").fullmatch
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*+={0,2}").fullmatch
_ASTRAL_NONCHARACTERS: Final = "".join(
    chr(plane * 0x10000 + last) for plane in range(1, 17) for last in (0xFFFE, 0xFFFF)
)
_FORBIDDEN: Final = re.compile(
    f"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff{_ASTRAL_NONCHARACTERS}]"
).search


def string_fault(text: str) -> str | None:
    """Name a character that is not allowed in a String (spec, Type System), or give None."""
    if text.isascii() and text.isprintable():
        return None
    match = _FORBIDDEN(text)
    return match and f"U+{ord(match[0]):04X} is not allowed in a String"


def read_base64(text: str) -> bytes:
    """Decode padded base64 (RFC 4648, 4); anything else in the text is refused."""
    if len(text) % 4 == 0 and _BASE64(text):
        try:
            octets = binascii.a2b_base64(text, strict_mode=True) if text else b""
        except binascii.Error:
            octets = None
        if octets is not None and write_base64(octets) == text:
            return octets
    raise Refused("not base64 with padding (RFC 4648, 4)", code="bad_base64")


def write_base64(octets: bytes) -> str:
    """Encode as padded base64 without line breaks."""
    return binascii.b2a_base64(octets, newline=False).decode("ascii")


def kind_of(value: Value) -> Kind:
    """Give the kind of a value by its exact Python type."""
    return _KIND_OF[type(value)]


def adopt(value: Any) -> Value:
    """Convert a value of a caller to an exact type; a `datetime` becomes a `Timestamp`."""
    if type(value) in _KIND_OF:
        return value  # type: ignore[no-any-return]
    if isinstance(value, datetime):
        return Timestamp.of_datetime(value)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise Refused(
        f"a value of type {type(value).__name__} has no CloudEvents type",
        code="bad_type",
        hint="use bool, int, str, bytes, Uri, UriReference or Timestamp",
    )


def check(value: Value) -> str | None:
    """Give the fault of a value by the rules of its kind, or None."""
    kind = type(value)
    if kind is str:
        return string_fault(value)  # type: ignore[arg-type]
    if kind is int and not -0x80000000 <= value <= 0x7FFFFFFF:  # type: ignore[operator]
        return "an Integer must be from -2147483648 to 2147483647"
    return None


def parse(kind: Kind, text: str) -> Value:
    """Read the canonical string of a value."""
    return _PARSERS[kind](text)


def spell(value: Value) -> str:
    """Write the canonical string of a value."""
    if value is True:
        return "true"
    if value is False:
        return "false"
    return write_base64(value) if isinstance(value, bytes) else str(value)


def _parse_boolean(text: str) -> Value:
    if text not in ("true", "false"):
        raise Refused(f"{text!r:.60} is not a Boolean: write true or false", code="bad_boolean")
    return text == "true"


def _parse_integer(text: str) -> Value:
    if not _INTEGER(text) or text == "-0" or check(int(text)):
        raise Refused(f"{text!r:.60} is not a 32-bit Integer", code="bad_integer")
    return int(text)


def _parse_string(text: str) -> Value:
    fault = string_fault(text)
    if fault:
        raise Refused(fault, code="bad_string")
    return str(text)


def _parse_timestamp(text: str) -> Value:
    if not is_timestamp(text):
        raise Refused(f"{text!r:.60} is not an RFC 3339 timestamp", code="bad_timestamp")
    return str.__new__(Timestamp, text)


_PARSERS: Final[dict[Kind, Callable[[str], Value]]] = {
    Kind.BOOLEAN: _parse_boolean,
    Kind.INTEGER: _parse_integer,
    Kind.STRING: _parse_string,
    Kind.BINARY: read_base64,
    Kind.URI: Uri,
    Kind.URI_REFERENCE: UriReference,
    Kind.TIMESTAMP: _parse_timestamp,
}
