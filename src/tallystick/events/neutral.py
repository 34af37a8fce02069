"""The neutral form: an event as JSON that shows every type, for implementations and the suite.

    {"id": "1", "source": "/s", "type": "t", "specversion": "1.0",
     "extensions": {"seq": {"Integer": 5}, "key": {"Binary": "TWE="}},
     "data": {"json": {"a": 1}}}

Core attributes are members, unset ones are left out. `data` has one member: `json` (the value),
`text`, or `base64` (octets); an event without data has no `data`. It is not an event format:
only the protocol of docs/reference/events-protocol.md uses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tallystick.core.errors import Refused
from tallystick.events.event import CORE, Event, make_of
from tallystick.events.grammar import parse_media_type
from tallystick.events.payload import ABSENT, read_text
from tallystick.events.reject import reading
from tallystick.events.values import Kind, Value, kind_of, parse, read_base64, spell, write_base64

__all__ = [
    "data_from_neutral",
    "data_to_neutral",
    "from_neutral",
    "to_neutral",
    "value_from_neutral",
]

_NATIVE: Final = {Kind.BOOLEAN: bool, Kind.INTEGER: int}


def to_neutral(event: Event) -> dict[str, Any]:
    """Give an event as JSON with every type shown."""
    neutral: dict[str, Any] = {
        name: str(value) for name, value in event.attributes.items() if name in CORE
    }
    if event.extensions:
        neutral["extensions"] = {
            name: value_to_neutral(value) for name, value in event.extensions.items()
        }
    if event.data is not ABSENT:
        neutral["data"] = data_to_neutral(event)
    return neutral


def value_to_neutral(value: Value) -> dict[str, Any]:
    """Give a value with its type."""
    kind = kind_of(value)
    return {kind.value: value if kind in _NATIVE else spell(value)}


def data_to_neutral(event: Event) -> dict[str, Any]:
    """Give data that is not absent with its kind."""
    if isinstance(event.data, bytes):
        return {"base64": write_base64(event.data)}
    if isinstance(event.data, str) and (event.media is None or not event.media.is_json):
        return {"text": str(event.data)}
    return {"json": event.data}


def from_neutral(neutral: Any) -> Event:
    """Read the neutral form, or raise `Rejected`."""
    with reading():
        if not isinstance(neutral, dict):
            raise Refused("an event must be an object", code="bad_neutral")
        unknown = neutral.keys() - CORE.keys() - {"extensions", "data"}
        if unknown:
            name = min(unknown)
            raise Refused(f"{name}: unknown member", code="bad_neutral", pointer=f"/{name}")
        attributes: dict[str, Any] = {name: neutral[name] for name in CORE if name in neutral}
        extensions = neutral.get("extensions", {})
        if not isinstance(extensions, dict):
            raise Refused(
                "`extensions` must be an object", code="bad_neutral", pointer="/extensions"
            )
        for name, value in extensions.items():
            attributes[name] = value_from_neutral(name, value)
        return make_of(attributes, data_from_neutral(neutral.get("data"), attributes))


def value_from_neutral(name: str, value: Any) -> Any:
    """Read a value with its type."""
    for kind in Kind if isinstance(value, dict) and len(value) == 1 else ():
        content = value.get(kind.value)
        if kind in _NATIVE:
            if type(content) is _NATIVE[kind]:
                return content
        elif isinstance(content, str):
            return parse(kind, content)
    fault = f'{name}: write an extension as {{"type": value}}'
    raise Refused(fault, code="bad_neutral", pointer=f"/extensions/{name}")


def data_from_neutral(data: Any, attributes: Mapping[str, Any]) -> Any:
    """Read data with its kind; None is no data. Text under a JSON content type is JSON text."""
    if data is None:
        return ABSENT
    if isinstance(data, dict) and len(data) == 1:
        kind, content = next(iter(data.items()))
        if kind == "json":
            return content
        if kind == "base64" and isinstance(content, str):
            return read_base64(content)
        if kind == "text" and isinstance(content, str):
            content_type = attributes.get("datacontenttype")
            media = parse_media_type(content_type) if isinstance(content_type, str) else None
            return read_text(content, media)
    raise Refused(
        "data: must hold exactly one of json, text and base64", code="bad_neutral", pointer="/data"
    )
