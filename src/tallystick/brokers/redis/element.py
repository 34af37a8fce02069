"""The list element of Redis: the bare envelope, or a frame around it that carries headers.

    {"__bq_frame":1,"headers":{...},"body":"<the envelope as text>"}

Any other element is a bare body and is read byte for byte.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tallystick.core.errors import Refused
from tallystick.core.frame import Frame

__all__ = ["read_element", "write_element"]

_MARK: Final = b'"__bq_frame"'


class _Framed(msgspec.Struct, frozen=True):
    mark: int = msgspec.field(name="__bq_frame")
    headers: dict[str, str]
    body: str


_read: Final = msgspec.json.Decoder(_Framed).decode


def write_element(frame: Frame) -> bytes:
    """Give the element to push; a body that is not UTF-8 cannot be framed and is refused."""
    headers: dict[str, Any] = dict(frame.sections.get("headers", {}))
    if not headers:
        return frame.body
    try:
        body = frame.body.decode()
    except UnicodeDecodeError as error:
        raise Refused(
            "a body that is not UTF-8 cannot carry headers", code="not_utf8", offset=error.start
        ) from error
    return msgspec.json.encode(_Framed(1, headers, body))


def read_element(element: bytes) -> Frame:
    """Give the body and the headers of an element that was popped."""
    if _MARK not in element:
        return Frame(element)
    try:
        framed = _read(element)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Frame(element)
    if framed.mark != 1:
        return Frame(element)
    return Frame(framed.body.encode(), {"headers": framed.headers})
