"""Codecs for attribute values in native fields: one codec for each kind of protocol.

| codec | rule |
|---|---|
| percent | HTTP and NATS headers: space, `"`, `%` and all outside U+0021 to U+007E as UTF-8 `%XX`; on reading first un-quote (RFC 7230), then decode once; bad UTF-8 is rejected |
| octets | Kafka headers: the canonical string in UTF-8 |
| text | MQTT user properties: the canonical string |
| native | AMQP: boolean, long, string, binary, timestamp; a canonical string is read as well |
"""  # noqa: E501 (a table)

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from tallystick.core.errors import Refused
from tallystick.events.timestamp import Timestamp
from tallystick.events.values import Value, adopt, spell

__all__ = ["NATIVE", "OCTETS", "PERCENT", "TEXT", "Codec"]

_UNENCODED: Final = "".join(map(chr, range(0x21, 0x7F))).replace('"', "").replace("%", "")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL).fullmatch
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_BAD_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})").search


@dataclass(frozen=True, slots=True)
class Codec:
    """A pair of functions: attribute value to native field, and native field to value."""

    write: Callable[[Value], Any]
    read: Callable[[Any], Value]


def _text(field: Any) -> str:
    if isinstance(field, bytes):
        try:
            return field.decode()
        except UnicodeDecodeError as error:
            raise Refused(f"not UTF-8: {error.reason}", code="not_utf8") from None
    if not isinstance(field, str):
        raise Refused(f"must be text, found {type(field).__name__}", code="bad_type")
    return field


def _write_percent(value: Value) -> str:
    return quote_from_bytes(spell(value).encode(), safe=_UNENCODED)


def _read_percent(field: Any) -> str:
    text = _text(field)
    quoted = _QUOTED(text)
    if quoted:
        text = _ESCAPED.sub(r"\1", quoted[1])
    if _BAD_PERCENT(text):
        raise Refused("a % without two hexadecimal digits", code="bad_percent")
    return _text(unquote_to_bytes(text))


def _write_native(value: Value) -> Any:
    if not isinstance(value, Timestamp):
        return value if isinstance(value, bool | int | bytes) else str(value)
    try:
        moment = value.datetime()
    except Refused:
        return str(value)  # a year that the native type does not have
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _read_native(field: Any) -> Value:
    if isinstance(field, datetime):
        return Timestamp.of_datetime(field)
    return adopt(str(field) if isinstance(field, str) else field)


PERCENT: Final = Codec(_write_percent, _read_percent)
OCTETS: Final = Codec(lambda value: spell(value).encode(), _text)
TEXT: Final = Codec(spell, _text)
NATIVE: Final = Codec(_write_native, _read_native)
