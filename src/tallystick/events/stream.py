"""Batches as streams: events come out while bytes go in, in memory bounded by one event.

A JSON batch is cut at the commas of its outermost array; each piece is read as an event by the
JSON format. The cutter looks at quotes and brackets only, and leaves all judgement to the reader.
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
_MARK: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|"|[{}\[\],]', re.DOTALL)
_OPENERS: Final = b"{["
_CLOSERS: Final = b"}]"
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
    """Cut the outermost array into its items, each with its offset."""
    source = iter(chunks)
    buffer = b""
    base = 0  # the offset of the buffer's first byte
    begun = closed = False
    start = look = depth = count = 0
    for chunk in source:
        buffer += chunk
        if len(buffer) - start > MAX_BYTES:
            raise _rejected(f"an event of more than {MAX_BYTES} bytes", "too_large", base + start)
        if not begun:
            text = buffer.lstrip(_SPACE)
            if not text:
                continue
            start = look = len(buffer) - len(text) + 1
            if text[:1] != b"[":
                fault = "starts with a byte order mark" if text.startswith(_BOM) else "no array"
                raise _rejected(f"not a JSON batch: {fault}", "not_an_array", base + start - 1)
            begun = True
        while not closed:
            mark = _MARK.search(buffer, look)
            if mark is None or mark[0] == b'"':
                look = mark.start() if mark else len(buffer)
                break
            look = mark.end()
            byte = mark[0]
            if byte in _OPENERS:
                depth += 1
            elif byte in _CLOSERS and depth:
                depth -= 1
            elif byte in (b",", b"]") and not depth:
                piece = buffer[start : mark.start()]
                blank = not piece.strip(_SPACE)
                closed = byte == b"]"
                if not (blank and closed and count == 0):
                    yield base + start, piece
                count += 1
                start = look
            elif byte == b"}":
                raise _rejected("not JSON: a } without its {", "not_json", base + mark.start())
        if closed:
            rest = buffer[start:].lstrip(_SPACE)
            if rest:
                place = base + len(buffer) - len(rest)
                raise _rejected("something follows the batch", "trailing_data", place)
        buffer, base, look, start = buffer[start:], base + start, look - start, 0
    if not closed:
        fault = "ends inside the batch" if begun else "empty"
        raise _rejected(fault, "truncated" if begun else "empty", base + len(buffer))


def _rejected(fault: str, code: str, offset: int) -> Rejected:
    return Rejected(fault, code=code, offset=offset)
