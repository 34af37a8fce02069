"""Write native values as JSON and read them back unchanged; types that JSON lacks get a tag.

    {"$bytes": "<base64>"}    bytes                  {"$time": <ns since the epoch>}   an instant
    {"$int": "<digits>"}      beyond 64 bits         {"$local": "<ISO 8601>"}    time without a zone
    {"$long": <int>}          an AMQP long           {"$decimal": "..."}  {"$uuid": "..."}
    {"$float": "nan"}         nan, inf, -inf         {"$text": "<base64>"}  text that is no Unicode
    {"$map": [[key, value]]}  a mapping that would look like a tag, or whose keys are not text
    {"$opaque": [type, text]} an unknown type: its name and its text; it cannot be read back

An object with exactly one member whose name begins with `$` is a tag, and no other is. A subclass
of a type (proton's `int32`) is written as the type, which it equals.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any, Final
from uuid import UUID

from tallystick.core.errors import Rejected
from tallystick.core.slot import Long

__all__ = ["Opaque", "from_json", "to_json"]

_LEAST, _MOST = -(2**63), 2**63 - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Opaque:
    """A native value of an unknown type: the name of the type and its text."""

    type: str
    text: str


def to_json(value: Any) -> Any:
    """Write a native value as a JSON value."""
    write = _WRITERS.get(type(value))
    if write is None:
        write = next((_WRITERS[kind] for kind in _KINDS if isinstance(value, kind)), _write_opaque)
    return write(value)


def from_json(value: Any) -> Any:
    """Read a native value back; an unknown or malformed tag is rejected."""
    if isinstance(value, list):
        return [from_json(one) for one in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((tag, held),) = value.items()
        if tag.startswith("$"):
            return _read_tag(tag, held)
    return {key: from_json(one) for key, one in value.items()}


def _read_tag(tag: str, held: Any) -> Any:
    if tag not in _READERS:
        raise Rejected(f"unknown tag {tag!r} in a native value", code="native_tag")
    kinds, read = _READERS[tag]
    if type(held) not in kinds:
        raise Rejected(
            f"{tag} cannot hold a value of type {type(held).__name__}", code="native_value"
        )
    try:
        return read(held)
    except (ValueError, TypeError, OverflowError, InvalidOperation) as error:
        raise Rejected(
            f"the value of {tag} cannot be read as that type", code="native_value"
        ) from error


def _same(value: Any) -> Any:
    return value


def _write_text(value: str) -> Any:
    if value.isascii() or _is_unicode(value):
        return str(value)
    return {"$text": base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()}


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _write_integer(value: int) -> Any:
    return int(value) if _LEAST <= value <= _MOST else {"$int": str(int(value))}


def _write_float(value: float) -> Any:
    return float(value) if isfinite(value) else {"$float": str(float(value))}


def _write_time(value: datetime) -> Any:
    if value.tzinfo is None:
        return {"$local": value.isoformat()}
    return {"$time": (value - _EPOCH) // _MICROSECOND * 1000}


def _write_mapping(value: Mapping[Any, Any]) -> Any:
    plain = all(isinstance(key, str) and _is_unicode(key) for key in value)
    if plain and not (len(value) == 1 and next(iter(value)).startswith("$")):
        return {str(key): to_json(one) for key, one in value.items()}
    return {"$map": [[to_json(key), to_json(one)] for key, one in value.items()]}


def _write_opaque(value: Any) -> Any:
    kind = type(value)
    name, text = f"{kind.__module__}.{kind.__qualname__}", str(value)
    return {"$opaque": [name, text.encode("utf-8", "backslashreplace").decode()]}


def _read_time(held: int) -> datetime:
    if held % 1000:
        raise ValueError(held)
    return _EPOCH + held // 1000 * _MICROSECOND


def _read_local(held: str) -> datetime:
    time = datetime.fromisoformat(held)
    if time.tzinfo is not None:
        raise ValueError(held)
    return time


def _read_map(held: list[Any]) -> dict[Any, Any]:
    pairs = [(from_json(key), from_json(one)) for key, one in held]
    given = dict(pairs)
    if len(given) < len(pairs):
        raise ValueError("a key twice")
    return given


def _base64(held: str) -> bytes:
    return base64.b64decode(held, validate=True)


_WRITERS: Final[dict[type, Callable[[Any], Any]]] = {
    str: _write_text,
    bytes: lambda value: {"$bytes": base64.b64encode(value).decode()},
    bool: _same,
    type(None): _same,
    Long: lambda value: (
        {"$long": int(value)} if _LEAST <= value <= _MOST else _write_integer(value)
    ),
    int: _write_integer,
    float: _write_float,
    datetime: _write_time,
    Decimal: lambda value: {"$decimal": str(value)},
    UUID: lambda value: {"$uuid": str(value)},
    dict: _write_mapping,
    list: lambda value: [to_json(one) for one in value],
    bytearray: lambda value: {"$bytes": base64.b64encode(value).decode()},
    memoryview: lambda value: {"$bytes": base64.b64encode(value).decode()},
    tuple: lambda value: [to_json(one) for one in value],
    Mapping: _write_mapping,
    Opaque: lambda value: {"$opaque": [value.type, value.text]},
}
_KINDS: Final = tuple(_WRITERS)
"""A subclass is written as the first matching type; `bool` comes before the numbers."""

_READERS: Final[dict[str, tuple[tuple[type, ...], Callable[[Any], Any]]]] = {
    "$bytes": ((str,), _base64),
    "$int": ((str,), int),
    "$long": ((int,), Long),
    "$float": ((str,), float),
    "$time": ((int,), _read_time),
    "$local": ((str,), _read_local),
    "$decimal": ((str,), Decimal),
    "$uuid": ((str,), UUID),
    "$text": ((str,), lambda held: _base64(held).decode("utf-8", "surrogatepass")),
    "$map": ((list,), _read_map),
    "$opaque": ((list,), lambda held: Opaque(*held)),
}
