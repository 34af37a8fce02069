"""The Avro binary encoding, as far as the two CloudEvents schemas use it (Avro 1.9).

A `Cursor` walks the bytes and rejects a fault at its offset. A length or a count is compared with
the remaining bytes before anything is built, so a false length of a gigabyte costs nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeVar

from tallystick.core.errors import Rejected

__all__ = ["Cursor", "write_bytes", "write_double", "write_long", "write_map", "write_string"]

_LONGEST: Final = 10
_INT64: Final = 1 << 63
_T = TypeVar("_T")


class Cursor:
    """A place in the bytes, and the readers that move it."""

    __slots__ = ("at", "body")

    def __init__(self, body: bytes) -> None:
        self.body: Final = body
        self.at = 0

    def reject(self, fault: str, code: str, at: int | None = None) -> Rejected:
        """Make the error for a fault here, or at an earlier place."""
        return Rejected(fault, code=code, offset=self.at if at is None else at)

    def long(self) -> int:
        """Read a zigzag number of 64 bits."""
        start, value = self.at, 0
        for index, byte in enumerate(self.body[start : start + _LONGEST]):
            value |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                if value >= 2 * _INT64:
                    break
                self.at = start + index + 1
                return (value >> 1) ^ -(value & 1)
        raise self.reject("the bytes end inside a number, or the number is too long", "bad_varint")

    def bytes(self) -> bytes:
        """Read octets behind their length."""
        start, length = self.at, self.long()
        left = len(self.body) - self.at
        if not 0 <= length <= left:
            raise self.reject(
                f"a value declares {length} bytes, but {left} are left", "truncated", start
            )
        self.at += length
        return self.body[self.at - length : self.at]

    def string(self) -> str:
        """Read UTF-8 text behind its length."""
        octets = self.bytes()
        try:
            return octets.decode()
        except UnicodeDecodeError as error:
            start = self.at - len(octets) + error.start
            raise self.reject(f"not UTF-8: {error.reason}", "not_utf8", start) from None

    def boolean(self) -> bool:
        """Read one byte, 0 or 1."""
        octet = self.body[self.at : self.at + 1]
        if octet not in (b"\x00", b"\x01"):
            raise self.reject("not a boolean", "bad_boolean")
        self.at += 1
        return octet == b"\x01"

    def double(self) -> float:
        """Read eight bytes, little-endian."""
        octets = self.body[self.at : self.at + 8]
        if len(octets) < 8:
            raise self.reject("a double needs eight bytes", "truncated")
        self.at += 8
        return float(struct.unpack("<d", octets)[0])

    def branch(self, readers: tuple[Callable[[Cursor], _T], ...]) -> _T:
        """Read a union: the index of a branch, then its value."""
        start, index = self.at, self.long()
        if not 0 <= index < len(readers):
            raise self.reject(f"the union has no branch {index}", "bad_branch", start)
        return readers[index](self)

    def blocks(self) -> Iterator[int]:
        """Step through the items of a map or array; each takes at least one byte."""
        while True:
            start, count = self.at, self.long()
            if count < 0:
                count = -count
                self.long()  # the size of the block, for those who skip it
            left = len(self.body) - self.at
            if count > left:
                raise self.reject(
                    f"a block declares {count} items, but {left} bytes are left", "truncated", start
                )
            if count == 0:
                return
            yield from range(count)

    def map(self, read: Callable[[Cursor], _T]) -> dict[str, _T]:
        """Read a map; a key that occurs twice is a fault."""
        found: dict[str, _T] = {}
        for _ in self.blocks():
            start, key = self.at, self.string()
            if key in found:
                raise Rejected(
                    f"{key}: occurs twice",
                    code="duplicate_attribute",
                    pointer=f"/{key}",
                    offset=start,
                )
            found[key] = read(self)
        return found

    def finish(self) -> None:
        """Reject what follows the record."""
        if self.at < len(self.body):
            raise self.reject("extra bytes after the event", "trailing_data")


def write_long(number: int) -> bytes:
    """Write a zigzag number."""
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def write_bytes(octets: bytes) -> bytes:
    """Write octets behind their length."""
    return write_long(len(octets)) + octets


def write_string(text: str) -> bytes:
    """Write UTF-8 text behind its length."""
    return write_bytes(text.encode())


def write_double(number: float) -> bytes:
    """Write eight bytes, little-endian."""
    return struct.pack("<d", number)


def write_map(entries: Mapping[str, bytes]) -> bytes:
    """Write a map of values that are written already."""
    inner = b"".join(write_string(key) + value for key, value in entries.items())
    return (write_long(len(entries)) + inner if entries else b"") + b"\x00"
