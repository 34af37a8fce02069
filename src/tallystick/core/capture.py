"""A `Capture` is a frame with its time, place and direction: a JSON line or a table row.

    {"kind":"capture","format":1,"direction":"sent","broker":"kafka","queue":"orders","node":"shop",
     "at":<ns since the epoch>,"sequence":0,"body":"...","sections":{"headers":{...}}}

`core.capture_columns` declares the members and the columns. The exact frame can be read back from a
line: `body` holds a UTF-8 body, `body64` any other, and the native fields are tagged where JSON
lacks their type (`core.native`). Members that a reader does not know are ignored; another `format`
is rejected. docs/reference/capture.md

`read_row` is the one reader of a line. It gives what the line says, and a member may be absent: the
pipeline needs only a body. `read` gives a `Capture`, which is complete.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from operator import itemgetter
from typing import Annotated, Any, Final, Literal

import msgspec

from tallystick.core.capture_columns import (
    AROUND,
    COLUMNS,
    FORMAT,
    MEMBERS,
    MOST,
    NUMBERS,
    CaptureRow,
)
from tallystick.core.errors import Rejected
from tallystick.core.frame import Frame, Sections
from tallystick.core.native import from_json, to_json

__all__ = [
    "MARK", "Capture", "check_row", "from_row", "is_capture", "read", "read_row", "read_sections",
    "write", "write_sections",
]  # fmt: skip

MARK: Final = b'"capture"'
"""The `kind` of a capture in its line: the pipeline takes a line without it as an envelope."""
_MALFORMED: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)
_START: Final = b'{"kind":"capture",'


@dataclass(frozen=True, slots=True)
class Capture:
    """One frame, its direction, and the node and time of the capture.

    `at` is in nanoseconds since the epoch by the clock of `node`, accurate to `clock_error` if that
    is known. `sequence` numbers every frame that a node saw, stored or not: a gap means a loss.
    """

    direction: str
    broker: str
    queue: str
    node: str
    at: int
    sequence: int
    frame: Frame
    clock_error: int | None = None


class _Head(msgspec.Struct, frozen=True):
    """The member that tells captures from other lines."""

    kind: Any = None


_Line: Any = msgspec.defstruct(
    "_Line",
    [
        ("kind", Literal["capture"]),
        ("format", Annotated[int, msgspec.Meta(ge=FORMAT, le=FORMAT)]),
        *((member, kind, None) for member, kind in MEMBERS),
    ],
    omit_defaults=True,
    gc=False,
)
"""The line itself: what the one reader accepts and the one writer writes."""
_Doubtful: Any = msgspec.defstruct(
    "_Doubtful", [(member, Any, None) for member in ("kind", "format", *AROUND)]
)
"""A line with any values, to find out which of them is wrong."""
_decode_line: Final = msgspec.json.Decoder(_Line).decode
_decode_doubtful: Final = msgspec.json.Decoder(_Doubtful).decode
_decode_head: Final = msgspec.json.Decoder(_Head).decode
_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode
_required: Final = itemgetter(
    *(place for place, column in enumerate(COLUMNS.values()) if not column.optional)
)


def write(capture: Capture) -> bytes:
    """Write a capture as one JSON line, without the line break."""
    body, packed = capture.frame.body, None
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text, packed = None, base64.b64encode(body).decode()
    line = _Line(
        "capture", FORMAT, capture.direction, capture.broker, capture.queue, capture.node,
        capture.at, capture.clock_error, capture.sequence, text, packed,
        to_json(capture.frame.sections),
    )  # fmt: skip
    return _encode(line)


def read(line: bytes) -> Capture:
    """Read a capture from a line, or raise `Rejected` with the reason."""
    return _complete(read_row(line))


def is_capture(line: bytes) -> bool:
    """Tell whether the `kind` of a line is `capture`; of a broken line, its beginning decides."""
    if line.startswith(_START):
        return True
    try:
        return bool(_decode_head(line).kind == "capture")
    except _MALFORMED:
        return False


def read_row(line: bytes) -> CaptureRow:
    """Read what a line says of its capture, or raise `Rejected` with the reason."""
    try:
        members = _decode_line(line)
        body, sections = members.body, members.sections
        raw = _unpack(members) if body is None or members.body64 is not None else body.encode()
        text = None if sections is None else str(sections, "utf-8")
    except _MALFORMED as error:
        raise _explain(line, error) from error
    return CaptureRow(
        members.direction, members.broker, members.queue, members.node, members.at,
        members.clock_error, members.sequence, raw, text,
    )  # fmt: skip


def write_sections(sections: Sections) -> str:
    """Write the native fields as JSON."""
    return _encode(to_json(sections)).decode()


def read_sections(text: str | bytes) -> dict[str, dict[str, Any]]:
    """Read the native fields from JSON."""
    try:
        sections = from_json(_decode(text))
    except _MALFORMED as error:
        raise Rejected(
            f"the native sections are not JSON: {error}", code="capture_sections"
        ) from error
    return _checked_sections(sections)


def from_row(row: CaptureRow) -> Capture:
    """Read a capture from a row, or raise `Rejected` if the row is not a complete capture."""
    return _complete(check_row(row))


def _complete(row: CaptureRow) -> Capture:
    values: Any = row
    if None in _required(row):
        missing = next(
            name
            for name, column in COLUMNS.items()
            if not column.optional and getattr(row, name) is None
        )
        raise Rejected(f"`{missing}` is missing", code="capture_line", pointer=f"/{missing}")
    for name in NUMBERS:
        number = getattr(row, name)
        if number is not None and number < 0:
            raise _out_of_range(name, number, 0)
    frame = Frame(values.body, read_sections(values.sections))
    return Capture(
        values.direction, values.broker, values.queue, values.node, values.at, values.sequence,
        frame, values.clock_error,
    )  # fmt: skip


def check_row(row: CaptureRow) -> CaptureRow:
    """Give a row back, or raise `Rejected` if a column has a value that it must not have."""
    for name, value in zip(AROUND, row, strict=False):
        column = COLUMNS[name]
        if value is None:
            continue
        if column.values and value not in column.values:
            raise Rejected(
                f"unknown {name} {value!r}",
                code=f"capture_{name}",
                pointer=f"/{name}",
                hint=f"use one of: {', '.join(column.values)}",
            )
        if type(value) is int and not column.least <= value <= MOST:
            raise _out_of_range(name, value, column.least)
    return row


def _out_of_range(name: str, number: int, least: int) -> Rejected:
    text = f"`{name}` must be from {least} to {MOST}, found {number}"
    return Rejected(text, code="capture_number", pointer=f"/{name}")


def _explain(line: bytes, error: Exception) -> Rejected:
    """Give the reason why a line is not a capture: its kind, format, a value, or the error."""
    text = f"this line is not a capture: {error}"
    try:
        members = _decode_doubtful(line)
        if members.kind != "capture":
            return Rejected(
                f"`kind` must be 'capture', found {members.kind!r}", code="capture_kind"
            )
        if type(members.format) is not int or members.format != FORMAT:
            return Rejected(
                f"this capture has the unknown format {members.format!r}",
                code="capture_format",
                hint=f"this version of Tallystick reads format {FORMAT}",
            )
        check_row(CaptureRow._make((*(getattr(members, name) for name in AROUND), b"", None)))
    except Rejected as reason:
        return reason
    except _MALFORMED:
        pass
    return Rejected(text, code="capture_line")


def _unpack(members: Any) -> bytes:
    """Give the body of a line that does not have it as text alone."""
    if members.body is not None or members.body64 is None:
        raise Rejected(
            "a capture must have either `body` or `body64`, and not both", code="capture_body"
        )
    try:
        return base64.b64decode(members.body64, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Rejected(
            "`body64` is not base64", code="capture_base64", pointer="/body64"
        ) from error


def _checked_sections(sections: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(sections, dict) or not all(
        isinstance(section, dict) for section in sections.values()
    ):
        raise Rejected(
            "`sections` must be an object of objects", code="capture_sections", pointer="/sections"
        )
    return sections
