"""A `Capture` is a frame with its time, place and direction: a JSON line or a table row.

    {"kind":"capture","format":1,"direction":"sent","broker":"kafka","queue":"orders","node":"shop",
     "at":<ns since the epoch>,"sequence":0,"body":"...","sections":{"headers":{...}}}

The exact frame can be read back from a line: `body` holds a UTF-8 body, `body64` any other, and the
native fields are tagged where JSON lacks their type (`core.native`). Members that a reader does
not know are ignored; another `format` is rejected. docs/reference/capture.md
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from tallystick.core.errors import Rejected
from tallystick.core.frame import Frame, Sections
from tallystick.core.native import from_json, to_json

__all__ = [
    "COLUMNS", "DIRECTIONS", "FORMAT", "Capture", "from_row", "read", "read_sections", "to_row",
    "write", "write_sections",
]  # fmt: skip

FORMAT: Final = 1
DIRECTIONS: Final = ("sent", "received", "tapped")
COLUMNS: Final = {
    "direction": "string", "broker": "string", "queue": "string", "node": "string", "at": "int64",
    "clock_error": "int64", "sequence": "int64", "body": "binary", "sections": "string",
}  # fmt: skip
"""The columns of a capture in Parquet; `clock_error` may be null, and `sections` is JSON."""

_MOST: Final = 2**63 - 1


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


class _Line(msgspec.Struct, frozen=True):
    kind: str
    format: int
    direction: str
    broker: str
    queue: str
    node: str
    at: int
    sequence: int
    sections: dict[str, Any]
    clock_error: int | None = None
    body: str | None = None
    body64: str | None = None


_read_line: Final = msgspec.json.Decoder(_Line).decode
_read_json: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


def write(capture: Capture) -> bytes:
    """Write a capture as one JSON line, without the line break."""
    line: dict[str, Any] = {
        "kind": "capture",
        "format": FORMAT,
        "direction": capture.direction,
        "broker": capture.broker,
        "queue": capture.queue,
        "node": capture.node,
        "at": capture.at,
    }
    if capture.clock_error is not None:
        line["clock_error"] = capture.clock_error
    line["sequence"] = capture.sequence
    try:
        line["body"] = capture.frame.body.decode()
    except UnicodeDecodeError:
        line["body64"] = base64.b64encode(capture.frame.body).decode()
    line["sections"] = to_json(capture.frame.sections)
    return _encode(line)


def read(line: bytes) -> Capture:
    """Read a capture from a line, or raise `Rejected` with the reason."""
    try:
        held = _read_line(line)
        sections = from_json(held.sections)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Rejected(f"this line is not a capture: {error}", code="capture_line") from error
    if held.kind != "capture":
        raise Rejected(f"`kind` must be 'capture', found {held.kind!r}", code="capture_kind")
    if held.format != FORMAT:
        raise Rejected(
            f"this capture has the unknown format {held.format}",
            code="capture_format",
            hint=f"this version of Tallystick reads format {FORMAT}",
        )
    return _checked(
        Capture(
            held.direction, held.broker, held.queue, held.node, held.at, held.sequence,
            Frame(_read_body(held), sections), held.clock_error,
        )
    )  # fmt: skip


def write_sections(sections: Sections) -> str:
    """Write the native fields as JSON."""
    return _encode(to_json(sections)).decode()


def read_sections(text: str | bytes) -> dict[str, dict[str, Any]]:
    """Read the native fields from JSON."""
    try:
        sections = from_json(_read_json(text))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Rejected(
            f"the native sections are not JSON: {error}", code="capture_sections"
        ) from error
    return _checked_sections(sections)


def to_row(capture: Capture) -> dict[str, Any]:
    """Write a capture as a table row with the columns `COLUMNS`."""
    return {
        "direction": capture.direction,
        "broker": capture.broker,
        "queue": capture.queue,
        "node": capture.node,
        "at": capture.at,
        "clock_error": capture.clock_error,
        "sequence": capture.sequence,
        "body": capture.frame.body,
        "sections": write_sections(capture.frame.sections),
    }


def from_row(row: Mapping[str, Any]) -> Capture:
    """Read a capture from a table row."""
    frame = Frame(row["body"], read_sections(row["sections"]))
    return _checked(
        Capture(
            row["direction"], row["broker"], row["queue"], row["node"], row["at"],
            row["sequence"], frame, row["clock_error"],
        )
    )  # fmt: skip


def _read_body(held: _Line) -> bytes:
    if (held.body is None) == (held.body64 is None):
        raise Rejected(
            "a capture must have either `body` or `body64`, and not both", code="capture_body"
        )
    if held.body is not None:
        return held.body.encode()
    try:
        return base64.b64decode(held.body64 or "", validate=True)
    except (binascii.Error, ValueError) as error:
        raise Rejected("`body64` is not base64", code="capture_body", pointer="/body64") from error


def _checked(capture: Capture) -> Capture:
    if capture.direction not in DIRECTIONS:
        raise Rejected(
            f"unknown direction {capture.direction!r}",
            code="capture_direction",
            pointer="/direction",
            hint=f"use one of: {', '.join(DIRECTIONS)}",
        )
    for name in ("at", "sequence", "clock_error"):
        number = getattr(capture, name)
        if number is not None and not 0 <= number <= _MOST:
            raise Rejected(
                f"`{name}` must be from 0 to {_MOST}, found {number}",
                code="capture_number",
                pointer=f"/{name}",
            )
    _checked_sections(capture.frame.sections)
    return capture


def _checked_sections(sections: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(sections, dict) or not all(
        isinstance(one, dict) for one in sections.values()
    ):
        raise Rejected(
            "`sections` must be an object of objects", code="capture_sections", pointer="/sections"
        )
    return sections
