"""Tallystick's operations for event cases (docs/reference/events-protocol.md).

Each takes the request of the protocol and returns the result; input that is not an event raises
`Rejected` or `Refused`, which the caller turns into `{"rejected": ...}`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final

from tallystick.core.errors import Refused, UsageError
from tallystick.core.frame import Frame
from tallystick.events.event import Event
from tallystick.events.extensions import CONSTRAINED, NONE, SAMPLES, Extensions
from tallystick.events.formats import find_format
from tallystick.events.modes import Mode, read_frame, write_batched, write_binary, write_structured
from tallystick.events.neutral import from_neutral, to_neutral
from tallystick.events.timestamp import Timestamp
from tallystick.events.values import read_base64, write_base64

__all__ = ["EVENT_OPERATIONS", "extensions_given"]

Given = dict[str, Any]


def extensions_given(given: Given) -> Extensions:
    """Give the extensions that a case declares: the samples, and those with constraints."""
    known = dict(SAMPLES) if given.get("extensions") else {}
    if given.get("constraints"):
        known |= CONSTRAINED
    return known or NONE


def _events(found: Event | Iterable[Event]) -> dict[str, Any]:
    if isinstance(found, Event):
        return {"event": to_neutral(found)}
    return {"events": [to_neutral(each) for each in found]}


def ce_read(given: Given) -> dict[str, Any]:
    """Read bytes in a format as one event or as a batch."""
    form = find_format(given["format"])
    body, known = read_base64(given["body_base64"]), extensions_given(given)
    if given.get("kind", "event") == "event":
        return _events(form.read(body, known))
    if form.read_batch is None:
        raise UsageError(f"the format {form.name} has no batches", code="no_batch")
    return _events(form.read_batch(body, known))


def ce_write(given: Given) -> dict[str, Any]:
    """Write one event, or a batch, in a format."""
    form = find_format(given["format"])
    if "event" in given:
        return {"bytes_base64": write_base64(form.write(from_neutral(given["event"])))}
    if form.write_batch is None:
        raise UsageError(f"the format {form.name} has no batches", code="no_batch")
    events = [from_neutral(each) for each in given["events"]]
    return {"bytes_base64": write_base64(form.write_batch(events))}


def ce_to_frame(given: Given) -> dict[str, Any]:
    """Carry an event over a protocol in one of the modes."""
    mode, protocol, form = Mode(given["mode"]), given["protocol"], given.get("format", "json")
    if mode is Mode.BATCHED:
        events = [from_neutral(each) for each in given["events"]]
        frame = write_batched(events, protocol, form)
    else:
        event = from_neutral(given["event"])
        binary = mode is Mode.BINARY
        frame = write_binary(event, protocol) if binary else write_structured(event, protocol, form)
    sections = {
        section: {key: _shown(field) for key, field in fields.items()}
        for section, fields in frame.sections.items()
    }
    return {"sections": sections, "body_base64": write_base64(frame.body)}


def _shown(field: Any) -> Any:
    """Give a native field as JSON: octets and moments as their text."""
    if isinstance(field, bytes):
        return field.decode()
    return str(Timestamp.of_datetime(field)) if isinstance(field, datetime) else field


def ce_from_frame(given: Given) -> dict[str, Any]:
    """Read what a protocol carried, in the mode it has."""
    sections = given["sections"]
    if not isinstance(sections, dict):
        raise Refused("`sections` must be an object", code="bad_frame", pointer="/sections")
    frame = Frame(read_base64(given.get("body_base64", "")), sections)
    return _events(read_frame(frame, given["protocol"], extensions_given(given)))


EVENT_OPERATIONS: Final[dict[str, Callable[[Given], dict[str, Any]]]] = {
    "ce_read": ce_read,
    "ce_write": ce_write,
    "ce_to_frame": ce_to_frame,
    "ce_from_frame": ce_from_frame,
}
"""Every operation on events, by the protocol's name for it."""
