"""Read and write a batch as a stream; memory use is bounded by one event.

A JSON batch is cut at the commas of its outermost array; each piece is read as an event by the
JSON format. The cutter looks only at quotes and brackets; the reader checks everything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from tallystick.core.errors import Rejected
from tallystick.core.scan import MAX_BYTES
from tallystick.events.event import Event
from tallystick.events.extensions import NONE, Extensions
from tallystick.events.formats import json_format
from tallystick.events.reject import inside

__all__ = ["read_json_batch", "write_json_batch"]

_SPACE: Final = b" \t\n\r"
_MARK: Final = re.compile(rb'["{}\[\],]').search
_INSIDE_STRING: Final = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL).match
_BOM: Final = b"\xef\xbb\xbf"


def read_json_batch(chunks: Iterable[bytes], known: Extensions = NONE) -> Iterator[Event]:
    """Give the events of a JSON batch one by one; a fault is `Rejected` at its place."""
    for index, (offset, piece) in enumerate(_pieces(chunks)):
        with inside(index, offset):
            event = json_format.read(piece, known)
        yield event


def write_json_batch(events: Iterable[Event]) -> Iterator[bytes]:
    """Write a JSON batch piece by piece."""
    separator = b"["
    for event in events:
        yield separator + json_format.write(event)
        separator = b","
    yield b"[]" if separator == b"[" else b"]"


def _pieces(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Cut the outermost array into its items, each with its offset; no byte is looked at twice."""
    buffer = bytearray()
    base = 0  # the offset of the buffer's first byte, where the item being read begins
    look = depth = count = 0
    begun = closed = in_string = False
    for chunk in chunks:
        buffer += chunk
        if len(buffer) > MAX_BYTES:
            raise _rejected(f"an event has more than {MAX_BYTES} bytes", "too_large", base)
        if not begun:
            begun = _begin(buffer, base)
            space = len(buffer) - len(buffer.lstrip(_SPACE)) + begun
            base += space
            del buffer[:space]
            if not begun:
                continue
        while not closed:
            if in_string:
                look = _end(_INSIDE_STRING(buffer, look), look)
                if look == len(buffer) or buffer[look] != ord('"'):
                    break  # the string goes on in the next chunk
                look, in_string = look + 1, False
            at = _start(_MARK(buffer, look), len(buffer))
            look = min(at + 1, len(buffer))
            if at == len(buffer):
                break
            byte = chr(buffer[at])
            if byte == '"':
                in_string = True
            elif byte in "{[":
                depth += 1
            elif depth and byte in "}]":
                depth -= 1
            elif not depth and byte in ",]":
                closed = byte == "]"
                piece = bytes(buffer[:at])
                if piece.strip(_SPACE) or not closed or count:
                    yield base, piece
                count += 1
                del buffer[:look]
                base, look = base + look, 0
            elif byte == "}":
                raise _rejected("not JSON: a } without a {", "not_json", base + at)
        if closed:
            rest = buffer.lstrip(_SPACE)
            if rest:
                place = base + len(buffer) - len(rest)
                raise _rejected("extra text after the batch", "trailing_data", place)
            base, buffer = base + len(buffer), bytearray()
    if not closed:
        fault = "the text ends inside the batch" if begun else "the text is empty"
        raise _rejected(fault, "truncated" if begun else "empty", base + len(buffer))


def _begin(buffer: bytearray, base: int) -> bool:
    """Tell whether the array has begun; what begins otherwise is no batch."""
    text = buffer.lstrip(_SPACE)
    if text and not text.startswith(b"["):
        fault = (
            "it starts with a byte order mark" if text.startswith(_BOM) else "it must be an array"
        )
        place = base + len(buffer) - len(text)
        raise _rejected(f"not a JSON batch: {fault}", "not_an_array", place)
    return bool(text)


def _start(match: re.Match[bytes] | None, otherwise: int) -> int:
    """Give a place without the match, which would hold the buffer."""
    return match.start() if match else otherwise


def _end(match: re.Match[bytes] | None, otherwise: int) -> int:
    return match.end() if match else otherwise


def _rejected(fault: str, code: str, offset: int) -> Rejected:
    return Rejected(fault, code=code, offset=offset)
