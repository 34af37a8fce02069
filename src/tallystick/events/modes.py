"""The modes in which a protocol carries events: binary, structured, batched; event <-> `Frame`.

| protocol | attribute | its native name | content type | batched |
|---|---|---|---|---|
| http | header, percent-encoded | `ce-` + name, any case | header `content-type` | yes |
| kafka | header, UTF-8 | `ce_` + name | header `content-type` | no |
| amqp | application property, native | `cloudEvents_` + name, or `cloudEvents:` | property `content-type` | no |
| mqtt | user property | name | property `content-type` | no |
| nats | header, percent-encoded | `ce-` + name, any case | binary: header `ce-datacontenttype` | no |

The content type alone decides the mode: `application/cloudevents-batch...` is batched, any
other `application/cloudevents...` is structured, any other type is binary. In binary mode an empty body
means no data; on Kafka, which has null values, `record.value` None means no data. A key or another
field beside the event does not change it.
"""  # noqa: E501 (a table)

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NoReturn

from tallystick.core.errors import Refused, Rejected, UsageError
from tallystick.core.frame import Frame
from tallystick.events.event import Event, make_of
from tallystick.events.extensions import NONE, Extensions
from tallystick.events.formats import Format, find_format, format_of_media_type
from tallystick.events.grammar import is_name, parse_media_type
from tallystick.events.headers import NATIVE, OCTETS, PERCENT, TEXT, Codec
from tallystick.events.payload import ABSENT, IMPLIED, octets_of, value_of
from tallystick.events.reject import reading
from tallystick.events.values import Kind

__all__ = [
    "PROTOCOLS",
    "Mode",
    "Protocol",
    "find_mode",
    "partition_key",
    "read_frame",
    "write_batched",
    "write_binary",
    "write_structured",
]


class Mode(StrEnum):
    """The three content modes of the specification."""

    BINARY = "binary"
    STRUCTURED = "structured"
    BATCHED = "batched"


@dataclass(frozen=True, slots=True)
class Protocol:
    """One row of the table above."""

    section: str
    prefixes: tuple[str, ...]
    codec: Codec
    content_type: tuple[str, str]
    any_case: bool = False
    batched: bool = False
    null_body: bool = False
    content_type_is_attribute: bool = False


PROTOCOLS: Final = MappingProxyType(
    {
        "http": Protocol(
            "headers", ("ce-",), PERCENT, ("headers", "content-type"), any_case=True, batched=True
        ),
        "kafka": Protocol("headers", ("ce_",), OCTETS, ("headers", "content-type"), null_body=True),
        "amqp": Protocol(
            "application_properties",
            ("cloudEvents_", "cloudEvents:"),
            NATIVE,
            ("properties", "content-type"),
        ),
        "mqtt": Protocol("user_properties", ("",), TEXT, ("properties", "content-type")),
        "nats": Protocol(
            "headers",
            ("ce-",),
            PERCENT,
            ("headers", "content-type"),
            any_case=True,
            content_type_is_attribute=True,
        ),
    }
)
_STRUCTURED: Final = "application/cloudevents"
_BATCHED: Final = "application/cloudevents-batch"
_EVERY_KIND: Final = frozenset(Kind)


def _find(protocol: str) -> Protocol:
    if protocol not in PROTOCOLS:
        raise UsageError(
            f"unknown protocol {protocol!r}",
            code="unknown_protocol",
            hint=f"use one of: {', '.join(PROTOCOLS)}",
        )
    return PROTOCOLS[protocol]


def write_binary(
    event: Event, protocol: str, key: Callable[[Event], bytes | None] | None = None
) -> Frame:
    """Carry an event in binary mode: attributes as native fields, data as the body."""
    row = _find(protocol)
    attributes = event.attributes
    if event.data is not ABSENT and not isinstance(event.data, bytes):
        attributes.setdefault("datacontenttype", IMPLIED)
    sections: dict[str, dict[str, Any]] = {row.section: {}}
    content_type = attributes.get("datacontenttype")
    if content_type is not None and not row.content_type_is_attribute:
        del attributes["datacontenttype"]
        section, name = row.content_type
        sections.setdefault(section, {})[name] = _native_text(str(content_type), row)
    for name, value in attributes.items():
        sections[row.section][row.prefixes[0] + name] = row.codec.write(value)
    record = _record(event, row, key)
    if record:
        sections["record"] = record
    body = b"" if event.data is ABSENT else octets_of(event.data, event.media)
    return Frame(body, sections)


def _record(
    event: Event, row: Protocol, key: Callable[[Event], bytes | None] | None
) -> dict[str, Any]:
    record: dict[str, Any] = {}
    if row.null_body and event.data is ABSENT:
        record["value"] = None
    chosen = key(event) if key is not None else None
    if chosen is not None:
        record["key"] = chosen
    return record


def partition_key(event: Event) -> bytes | None:
    """Give the record key that the `partitionkey` extension asks for (Kafka binding, 3.1)."""
    key = event.extensions.get("partitionkey")
    return key.encode() if isinstance(key, str) else None


def write_structured(event: Event, protocol: str, form: str = "json") -> Frame:
    """Carry an event in structured mode: the body is the event in a format."""
    each = find_format(form)
    return _formatted(protocol, each.media_type, each.write(event))


def write_batched(events: Iterable[Event], protocol: str, form: str = "json") -> Frame:
    """Carry events in batched mode, where the protocol and the format have one."""
    each = find_format(form)
    if not _find(protocol).batched or each.write_batch is None or each.batch_media_type is None:
        raise UsageError(
            f"{protocol} cannot carry a batch in the format {form}",
            code="no_batch",
            hint="only http carries batches, as json, protobuf or xml",
        )
    return _formatted(protocol, each.batch_media_type, each.write_batch(events))


def _formatted(protocol: str, media_type: str, body: bytes) -> Frame:
    row = _find(protocol)
    section, name = row.content_type
    return Frame(body, {section: {name: _native_text(media_type, row)}})


def _native_text(text: str, row: Protocol) -> str | bytes:
    return text.encode() if row.codec is OCTETS else text


def find_mode(frame: Frame, protocol: str) -> Mode:
    """Find the mode of a message by its content type (CloudEvents specification)."""
    content_type = (_content_type(frame, _find(protocol)) or "").lower()
    if content_type.startswith(_BATCHED):
        return Mode.BATCHED
    return Mode.STRUCTURED if content_type.startswith(_STRUCTURED) else Mode.BINARY


def _content_type(frame: Frame, row: Protocol) -> str | None:
    section, name = row.content_type
    for key, field in frame.sections.get(section, {}).items():
        if (key.lower() if row.any_case else key) == name:
            return field.decode("latin-1") if isinstance(field, bytes) else str(field)
    return None


def read_frame(frame: Frame, protocol: str, known: Extensions = NONE) -> Event | tuple[Event, ...]:
    """Read the event of a message in any mode (batched: a tuple), or raise `Rejected`."""
    row = _find(protocol)
    mode = find_mode(frame, protocol)
    if mode is Mode.BINARY:
        return _read_binary(frame, row, known)
    form = _format_of(_content_type(frame, row) or "", mode)
    if mode is Mode.STRUCTURED:
        return form.read(frame.body, known)
    if not row.batched or form.read_batch is None:
        raise Rejected(f"{protocol} cannot carry a batch", code="no_batch")
    return form.read_batch(frame.body, known)


def _format_of(content_type: str, mode: Mode) -> Format:
    media = parse_media_type(content_type)
    found = format_of_media_type(f"{media.type}/{media.subtype}") if media else None
    if found is None or found[1] is not (mode is Mode.BATCHED):
        raise Rejected(
            f"the content type {content_type!r:.80} names no supported event format",
            code="unknown_format",
        )
    return found[0]


def _read_binary(frame: Frame, row: Protocol, known: Extensions) -> Event:
    with reading():
        attributes = _read_attributes(frame.sections.get(row.section, {}), row)
        content_type = _content_type(frame, row)
        if row.content_type_is_attribute:
            content_type = attributes.get("datacontenttype")
        elif attributes.setdefault("datacontenttype", content_type) != content_type or (
            row.prefixes != ("",) and _is_repeated(frame, row)
        ):
            _refuse(
                "datacontenttype",
                "must be the content type of the message, and nowhere else",
                "misplaced_attribute",
            )
        media = parse_media_type(content_type) if isinstance(content_type, str) else None
        record = frame.sections.get("record", {})
        absent = record.get("value", ...) is None if row.null_body else not frame.body
        data = ABSENT if absent else value_of(frame.body, media)
        return make_of(attributes, data, known, _EVERY_KIND)


def _read_attributes(fields: Mapping[str, Any], row: Protocol) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for key, field in fields.items():
        name = _attribute_name(key, row)
        if name is None:
            continue
        if name in attributes:
            _refuse(name, "occurs twice", "duplicate_attribute")
        try:
            attributes[name] = row.codec.read(field)
        except Refused as error:
            _refuse(name, error.message, error.code)
    return attributes


def _attribute_name(key: str, row: Protocol) -> str | None:
    """Give the attribute that a native field carries, or None when it is not one of ours."""
    own = key.lower() if row.any_case else key
    for prefix in row.prefixes:
        if own.startswith(prefix):
            name = own[len(prefix) :]
            return name if prefix or is_name(name) else None
    return None


def _is_repeated(frame: Frame, row: Protocol) -> bool:
    fields = frame.sections.get(row.section, {})
    return any(_attribute_name(key, row) == "datacontenttype" for key in fields)


def _refuse(name: str, fault: str, code: str) -> NoReturn:
    raise Refused(f"{name}: {fault}", code=code, pointer=f"/{name}")
