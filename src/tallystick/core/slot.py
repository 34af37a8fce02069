"""A slot maps a fact of a message to a native field of a broker, with its native type.

    Slot("headers", "bq-job", "urn", "bytes")       native field <- fact
    Slot("properties", "app_id", Constant("babelqueue"), "text")    native field <- constant

A fact is a name in a mapping (`urn`, `meta.id`, `delay.milliseconds`). A fact that is None is
absent: its slot is left out, so a broker never carries an invented value. An unknown source
is a fault of the table and raises KeyError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = [
    "TYPES",
    "Constant",
    "Field",
    "Long",
    "NativeType",
    "Row",
    "Slot",
    "fill",
    "native_type",
    "read_rows",
]


class Long(int):
    """An integer that AMQP must carry as a 64-bit `long`, however small it is."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is the same for every message."""

    value: str | int


@dataclass(frozen=True, slots=True)
class Field:
    """A place in a frame: a section and a key in it."""

    section: str
    key: str


@dataclass(frozen=True, slots=True)
class Slot:
    """One row of a binding: the native field, where its value comes from, its native type."""

    section: str
    key: str
    source: str | Constant
    type: str


Row = tuple[str, str, str | None, Any, Callable[[Any], Any]]
"""A slot, ready to be filled: section, key, the fact's name or None, the constant, the writer."""


@dataclass(frozen=True, slots=True)
class NativeType:
    """How a fact is written as a native value, and how a native value is read as text."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


def _write_bytes(value: Any) -> bytes:
    if type(value) is str:
        return value.encode()
    return value if isinstance(value, bytes) else str(value).encode()


def _read_bytes(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _write_string_attribute(value: Any) -> dict[str, str] | None:
    return {"DataType": "String", "StringValue": str(value)} if str(value) else None


def _write_number_attribute(value: Any) -> dict[str, str]:
    return {"DataType": "Number", "StringValue": str(value)}


def _read_attribute(value: Any) -> Any:
    return value.get("StringValue", value) if isinstance(value, Mapping) else value


TYPES: Final[Mapping[str, NativeType]] = {
    "text": NativeType(str, _same),
    "bytes": NativeType(_write_bytes, _read_bytes),
    "integer": NativeType(int, _same),
    "long": NativeType(Long, _same),
    "string_attribute": NativeType(_write_string_attribute, _read_attribute),
    "number_attribute": NativeType(_write_number_attribute, _read_attribute),
}
"""Native types by name. A string attribute may not be empty (SQS), so an empty one is left out."""


def read_rows(slots: Iterable[Slot]) -> tuple[Row, ...]:
    """Prepare the rows of a table once, for use with every message."""
    return tuple(
        (one.section, one.key, None, one.source.value, TYPES[one.type].write)
        if isinstance(one.source, Constant)
        else (one.section, one.key, one.source, None, TYPES[one.type].write)
        for one in slots
    )


def fill(rows: Iterable[Row], facts: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Write the facts into the native fields that the rows name: section -> key -> value."""
    sections: dict[str, dict[str, Any]] = {}
    for section, key, source, constant, write in rows:
        value = constant if source is None else facts[source]
        native = None if value is None else write(value)
        if native is None:
            continue
        if section in sections:
            sections[section][key] = native
        else:
            sections[section] = {key: native}
    return sections


def native_type(value: Any) -> str:
    """Name the wire type of a native value, which JSON cannot show: `text`, `bytes`, `long`..."""
    names = {str: "text", bytes: "bytes", bool: "boolean", int: "integer", Long: "long"}
    return value["DataType"] if isinstance(value, Mapping) else names[type(value)]
