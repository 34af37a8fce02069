"""Convert a record to a frame and back: value, headers, key and time stamp."""

from __future__ import annotations

from typing import Any, Final

from tallystick.core.frame import Frame

__all__ = ["NOW", "Record", "read_frame", "write_record"]

Headers = dict[str, str | bytes | None] | list[tuple[str, str | bytes | None]]
Record = tuple[str, bytes | None, bytes | str | None, Headers, int]
"""Topic, value, key, headers, and a time stamp in ms."""

NOW: Final = 0
"""The time stamp that the client sets by itself."""


def read_frame(message: Any) -> Frame:
    """Give the frame of a record that was consumed."""
    headers = message.headers()
    sections = {
        "headers": dict(headers) if headers else {},
        "record": {"key": message.key(), "timestamp": message.timestamp()[1]},
    }
    return Frame(message.value() or b"", sections)


def write_record(frame: Frame, queue: str) -> Record:
    """Return the record to produce for a frame; the frame may name its tier topic."""
    sections = frame.sections
    record = sections.get("record", {})
    stamp = record.get("timestamp")
    return (
        record.get("topic") or queue,
        frame.body,
        record.get("key"),
        dict(sections.get("headers", ())),
        NOW if stamp is None else int(stamp),
    )
