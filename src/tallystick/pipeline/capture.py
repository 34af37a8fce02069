"""Read captured frames as records: one JSON line, or one row of a Parquet file, per frame.

    {"kind":"capture","format":1,"direction":"received","broker":"kafka","queue":"orders",
     "node":"billing","at":1749132727000000000,"sequence":7,"body":"...","sections":{...}}

Any other line is a plain envelope: the line is the body. A line that is neither becomes a record
with a `fault`: it is counted and quarantined, never dropped. Native fields stay text here;
`core.capture` reads them when they are needed.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from tallystick.core.capture import FORMAT
from tallystick.pipeline.arrow import pa, pq

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = [
    "COLUMNS", "NO_BOUND", "Record", "faulty", "read_line", "write_capture", "write_parquet",
]  # fmt: skip

_INT64: Final = 2**63
_MARK: Final = b'"capture"'
NO_BOUND: Final = "clock_error is below 0"


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


COLUMNS: Final = Record._fields[2:-2]
"""What is captured of a frame: the columns of a Parquet capture."""


class _Line(msgspec.Struct, gc=False):
    kind: Any = UNSET
    format: Any = UNSET
    direction: Literal["sent", "received", "tapped"] | None = None
    broker: str | None = None
    queue: str | None = None
    node: str | None = None
    at: int | None = None
    clock_error: int | None = None
    sequence: int | None = None
    body: str | UnsetType = UNSET
    body64: str | UnsetType = UNSET
    sections: msgspec.Raw | UnsetType = UNSET


class _Kind(msgspec.Struct, gc=False):
    kind: Any = UNSET


_decode: Final = msgspec.json.Decoder(_Line).decode
_decode_kind: Final = msgspec.json.Decoder(_Kind).decode
_FAULTS: Final = (msgspec.MsgspecError, UnicodeError, RecursionError, binascii.Error, ValueError)


def read_line(line: bytes, source: str, position: int) -> Record:
    """Read one line: a capture, or else a plain envelope."""
    if _MARK not in line or not _is_capture(line):
        return Record(source, position, None, None, None, None, None, None, None, line, None)
    try:
        found = _decode(line)
        if found.format != FORMAT:
            return faulty(source, position, line, "capture.format", f"format {found.format!r}")
        if isinstance(found.body, str):
            body = found.body.encode()
        elif isinstance(found.body64, str):
            body = b64decode(found.body64, validate=True)
        else:
            return faulty(
                source, position, line, "capture.body", "neither body nor body64 is present"
            )
        sections = None if isinstance(found.sections, UnsetType) else str(found.sections, "utf-8")
    except _FAULTS as error:
        return faulty(source, position, line, "capture.malformed", str(error))
    for name in ("at", "clock_error", "sequence"):
        value = getattr(found, name)
        if value is not None and not -_INT64 <= value < _INT64:
            return faulty(source, position, line, "capture.malformed", f"{name} beyond 64 bits")
    if found.clock_error is not None and found.clock_error < 0:
        return faulty(source, position, line, "capture.malformed", NO_BOUND)
    return Record(
        source, position, found.direction, found.broker, found.queue, found.node, found.at,
        found.clock_error, found.sequence, body, sections,
    )  # fmt: skip


def _is_capture(line: bytes) -> bool:
    if line.startswith(b'{"kind":"capture",'):
        return True
    try:
        return bool(_decode_kind(line).kind == "capture")
    except _FAULTS:
        return False


def faulty(source: str, position: int, body: bytes, fault: str, reason: str) -> Record:
    """Return the record of data that is not a frame."""
    return Record(
        source, position, None, None, None, None, None, None, None, body, None, fault, reason
    )


def write_capture(record: Record) -> bytes:
    """Write a record as its line, without the newline."""
    members: dict[str, Any] = {"kind": "capture", "format": FORMAT}
    for name in COLUMNS[:-2]:
        value = getattr(record, name)
        if value is not None:
            members[name] = value
    try:
        members["body"] = record.body.decode()
    except UnicodeDecodeError:
        members["body64"] = binascii.b2a_base64(record.body, newline=False).decode()
    members["sections"] = msgspec.Raw(record.sections.encode() if record.sections else b"{}")
    return msgspec.json.encode(members)


def write_parquet(place: Path, records: Iterable[Record], **options: Any) -> None:
    """Write records as one Parquet capture; the options are those of Arrow's writer."""
    rows = [dict(zip(COLUMNS, record[2:-2], strict=True)) for record in records]
    pq.write_table(pa.Table.from_pylist(rows), place, **options)
