"""A record as a frame: its headers, its key and its time stamp beside the value."""

from __future__ import annotations

from typing import Any

from tallystick.core.frame import Frame

__all__ = ["read_frame"]


def read_frame(message: Any) -> Frame:
    """Give the frame of a record that was consumed."""
    record = {"key": message.key(), "timestamp": message.timestamp()[1]}
    headers = dict(message.headers() or [])
    return Frame(message.value() or b"", {"headers": headers, "record": record})
