"""The Protobuf wire format, as far as needed to find the offset of a fault.

The Protobuf library says that bytes are wrong, but not where. `fields` walks one message and
rejects the first fault with its offset; a length is compared with the bytes that are there before
anything is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from tallystick.core.errors import Rejected

__all__ = ["Field", "fields"]

_FIXED: Final = {1: 8, 5: 4}
_VARINT, _LENGTH = 0, 2


class Field(NamedTuple):
    """A field on the wire: its number, its wire type, and where its value begins and ends."""

    number: int
    wire: int
    start: int
    end: int


def fields(body: bytes, start: int = 0, end: int | None = None) -> Iterator[Field]:
    """Give the fields of the message between two offsets."""
    end = len(body) if end is None else end
    while start < end:
        at = start
        tag, start = _varint(body, start, end)
        number, wire = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise Rejected(f"{number} is not a valid field number", code="bad_tag", offset=at)
        if wire == _VARINT:
            _, stop = _varint(body, start, end)
        elif wire == _LENGTH:
            length, start = _varint(body, start, end)
            stop = start + length
        elif wire in _FIXED:
            stop = start + _FIXED[wire]
        else:
            raise Rejected(f"wire type {wire} is not supported", code="bad_wire_type", offset=at)
        if stop > end:
            fault = f"a field declares {stop - start} bytes, but {end - start} are left"
            raise Rejected(fault, code="truncated", offset=at)
        yield Field(number, wire, start, stop)
        start = stop


def _varint(body: bytes, start: int, end: int) -> tuple[int, int]:
    value = 0
    for position in range(start, min(start + 10, end)):
        byte = body[position]
        value |= (byte & 0x7F) << 7 * (position - start)
        if byte < 0x80:
            return value, position + 1
    raise Rejected(
        "the bytes end inside a number, or the number is too long", code="bad_varint", offset=start
    )
