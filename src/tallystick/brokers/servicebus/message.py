"""Convert a message of azure-servicebus to a frame and back: body, fields and properties."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from tallystick.core.frame import Frame
from tallystick.core.slot import Long

__all__ = ["fits", "read_frame", "write_message"]

_FIELDS: Final = ("subject", "correlation_id", "message_id", "content_type", "session_id")
_INT: Final = 2**31


def write_message(frame: Frame, session: str) -> Any:
    """Return the client's message of a frame; `session` is the default session."""
    from azure.servicebus import ServiceBusMessage  # noqa: PLC0415

    held = dict(frame.sections.get("message", {}))
    if session:
        held.setdefault("session_id", session)
    properties: Any = frame.sections.get("application_properties", {})
    due = held.get("scheduled_enqueue_time")
    return ServiceBusMessage(
        frame.body,
        application_properties={key: _typed(value) for key, value in properties.items()} or None,
        scheduled_enqueue_time_utc=due and datetime.fromtimestamp(due / 1000, UTC),
        **{key: held[key] for key in _FIELDS if key in held},
    )


def fits(batch: Any, message: Any) -> bool:
    """Add a message to a batch; return whether it had room."""
    from azure.servicebus.exceptions import MessageSizeExceededError  # noqa: PLC0415

    try:
        batch.add_message(message)
    except MessageSizeExceededError:
        return False
    return True


def _typed(value: Any) -> Any:
    """Mark a long as one: the client writes every whole number as an AMQP int, or fails to."""
    wide = isinstance(value, int) and not -_INT <= value < _INT
    return {"TYPE": "LONG", "VALUE": int(value)} if wide or isinstance(value, Long) else value


def read_frame(message: Any) -> Frame:
    """Give the frame of a message that was received."""
    fields = {key: value for key in _FIELDS if (value := getattr(message, key)) is not None}
    fields["delivery_count"] = (message.delivery_count or 0) + 1  # the client's first is 0
    properties = message.application_properties or {}
    return Frame(
        b"".join(message.body),
        {
            "message": fields,
            "application_properties": {_text(key): _text(one) for key, one in properties.items()},
        },
    )


def _text(value: Any) -> Any:
    """Return text as text: the client gives it as bytes."""
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value
