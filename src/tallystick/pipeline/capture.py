"""Read captured frames as records: one JSON line, or one row of a Parquet file, per frame.

    {"kind":"capture","format":1,"direction":"received","broker":"kafka","queue":"orders",
     "node":"billing","at":1749132727000000000,"sequence":7,"body":"...","sections":{...}}

`core.capture` reads such a line. Any other line is a plain envelope: the line is the body. A line
that is neither becomes a record with a `fault`: it is counted and quarantined, never dropped.
Native fields stay text here; `core.capture` reads them when they are needed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tallystick.core.capture import MARK, is_capture, read_row
from tallystick.core.errors import Rejected

__all__ = ["Record", "faulty", "read_line", "rejected"]

_FAULTS: Final = {"capture_format": "capture.format", "capture_body": "capture.body"}


class Record(NamedTuple):
    """One frame as it was read: its position, its capture data, and its body.

    `fault` and `reason` are set if no frame could be read; the body is then the raw bytes, or their
    beginning.
    """

    source: str
    position: int
    direction: str | None
    broker: str | None
    queue: str | None
    node: str | None
    at: int | None
    clock_error: int | None
    sequence: int | None
    body: bytes
    sections: str | None
    fault: str | None = None
    reason: str | None = None


def read_line(line: bytes, source: str, position: int) -> Record:
    """Read one line: a capture, or else a plain envelope."""
    if MARK not in line or not is_capture(line):
        return Record(source, position, None, None, None, None, None, None, None, line, None)
    try:
        row = read_row(line)
    except Rejected as error:
        return rejected(source, position, line, error)
    # `Record._make` also counts the fields, which takes a twentieth of the time of a line.
    return tuple.__new__(Record, (source, position, *row, None, None))


def rejected(source: str, position: int, body: bytes, error: Rejected) -> Record:
    """Return the record of data that is not a capture, with the reason."""
    fault = _FAULTS.get(error.code, "capture.malformed")
    return faulty(source, position, body, fault, error.message)


def faulty(source: str, position: int, body: bytes, fault: str, reason: str) -> Record:
    """Return the record of data that is not a frame."""
    return Record(
        source, position, None, None, None, None, None, None, None, body, None, fault, reason
    )
