"""Read frames for the in-process broker (AMQP 0-9-1, 2.3.5 and 4.2.3), without I/O.

Bytes that are not a frame close the connection with 501, a frame without a valid method with 502:
the client always gets a reason. Any UTF-8 text is a valid name, as on real brokers. `pamqp` does
not check names when it reads, but refuses some when it writes (`vm_channel` writes those without
the check).
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError  # noqa: N812 (it is a class)
from typing import Final

from pamqp import frame as frames
from pamqp.base import Frame
from pamqp.exceptions import UnmarshalingException

from tallystick.lab.vm_broker import Fault

__all__ = ["BEAT", "BODY", "HEADER", "LEAST_FRAME", "METHOD", "cut", "join", "read_method"]

METHOD, HEADER, BODY, BEAT = 1, 2, 3, 8
LEAST_FRAME: Final = 4096
_KINDS: Final = frozenset((METHOD, HEADER, BODY, BEAT))
_UNREADABLE: Final = (
    UnmarshalingException, StructError, ValueError, TypeError, IndexError, RecursionError
)  # fmt: skip
_HEAD: Final = Struct(">BHI")
_END: Final = b"\xce"
_AROUND: Final = _HEAD.size + len(_END)


def cut(data: bytearray, frame_max: int) -> tuple[int, int, bytes] | None:
    """Take one frame off the front, when it is all there: kind, channel, payload."""
    if len(data) < _AROUND:
        return None
    kind, number, size = _HEAD.unpack_from(data)
    if kind not in _KINDS:
        raise Fault("connection", 501, f"FRAME_ERROR - {kind} is not a frame type")
    if size + _AROUND > frame_max:
        raise Fault("connection", 501, f"FRAME_ERROR - {size} octets are too many")
    if len(data) < size + _AROUND:
        return None
    payload = bytes(data[_HEAD.size : _HEAD.size + size])
    if data[_HEAD.size + size : size + _AROUND] != _END:
        raise Fault("connection", 501, "FRAME_ERROR - a frame has no end marker")
    del data[: size + _AROUND]
    return kind, number, payload


def join(kind: int, number: int, payload: bytes) -> bytes:
    """Give the bytes of a frame."""
    return _HEAD.pack(kind, number, len(payload)) + payload + _END


def read_method(payload: bytes) -> Frame:
    """Read a method, or say that it is none."""
    try:
        _, _, method = frames.unmarshal(join(METHOD, 0, payload))
    except _UNREADABLE as error:
        raise Fault("connection", 502, "SYNTAX_ERROR - a method could not be read") from error
    if not isinstance(method, Frame):
        raise Fault("connection", 502, "SYNTAX_ERROR - a method could not be read")
    return method
