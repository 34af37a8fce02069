"""The Protobuf format: `application/cloudevents+protobuf`, and batches of it.

Rules (Protobuf format 1.0, with the field numbers of the published message): required attributes
are fields, the others are map entries that show their type, which must be the attribute's own;
data is `binary_data`, `text_data` or `proto_data`. JSON data travels as JSON text. A map entry
without a value, or a name that occurs twice, is no event. Fields that are unknown are ignored.

The message classes are made at run time from the table below, in a pool of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final, NoReturn

from tallystick.core.errors import Refused, Rejected
from tallystick.core.extras import importing
from tallystick.events.event import CORE, REQUIRED, Event, make_of
from tallystick.events.extensions import NONE, Extensions
from tallystick.events.formats.wire import Field, fields
from tallystick.events.grammar import parse_media_type
from tallystick.events.payload import ABSENT, Message, carry_text, read_text
from tallystick.events.reject import inside, reading
from tallystick.events.timestamp import Timestamp
from tallystick.events.values import Kind, Uri, UriReference, Value, kind_of

__all__ = [
    "BATCH_MEDIA_TYPE",
    "MEDIA_TYPE",
    "message_class",
    "read",
    "read_batch",
    "write",
    "write_batch",
]

MEDIA_TYPE: Final = "application/cloudevents+protobuf"
BATCH_MEDIA_TYPE: Final = "application/cloudevents-batch+protobuf"

_PACKAGE: Final = "io.cloudevents.v1"
_EVENT: Final = f".{_PACKAGE}.CloudEvent"
_VALUE: Final = f"{_EVENT}.CloudEventAttributeValue"
_ANY: Final = ".google.protobuf.Any"
_TIMESTAMP: Final = ".google.protobuf.Timestamp"
_EVENT_FIELDS: Final = {  # name: its number, its type, the oneof that it belongs to
    "id": (1, "string", ""),
    "source": (2, "string", ""),
    "spec_version": (3, "string", ""),
    "type": (4, "string", ""),
    "binary_data": (6, "bytes", "data"),
    "text_data": (7, "string", "data"),
    "proto_data": (8, _ANY, "data"),
}
_VALUE_FIELDS: Final = {
    "ce_boolean": (1, "bool", "attr"),
    "ce_integer": (2, "int32", "attr"),
    "ce_string": (3, "string", "attr"),
    "ce_bytes": (4, "bytes", "attr"),
    "ce_uri": (5, "string", "attr"),
    "ce_uri_ref": (6, "string", "attr"),
    "ce_timestamp": (7, _TIMESTAMP, "attr"),
}
_FIELD_OF: Final = {
    Kind.BOOLEAN: "ce_boolean",
    Kind.INTEGER: "ce_integer",
    Kind.STRING: "ce_string",
    Kind.BINARY: "ce_bytes",
    Kind.URI: "ce_uri",
    Kind.URI_REFERENCE: "ce_uri_ref",
    Kind.TIMESTAMP: "ce_timestamp",
}
_KIND_OF: Final = {field: kind for kind, field in _FIELD_OF.items()}
_NAMES: Final = {1: "id", 2: "source", 3: "specversion", 4: "type", 6: "data", 7: "data", 8: "data"}
_MAP: Final = 5
_BILLION: Final = 1_000_000_000
_YEAR_1: Final = -62_135_596_800
_YEAR_9999: Final = 253_402_300_799


@cache
def message_class(name: str) -> Any:
    """Give the class of `CloudEvent` or `CloudEventBatch`."""
    with importing("events"):
        from google.protobuf import message_factory  # type: ignore[import-untyped]  # noqa: PLC0415

    descriptor = _pool().FindMessageTypeByName(f"{_PACKAGE}.{name}")
    return message_factory.GetMessageClass(descriptor)


@cache
def _pool() -> Any:
    """Make the messages from the tables above; the library is heavy, so it loads when used."""
    from google.protobuf import (  # noqa: PLC0415
        any_pb2,
        descriptor_pb2,
        descriptor_pool,
        timestamp_pb2,
    )

    pool = descriptor_pool.DescriptorPool()
    file = descriptor_pb2.FileDescriptorProto(
        name="tallystick/cloudevents.proto", package=_PACKAGE, syntax="proto3"
    )
    for imported in (any_pb2, timestamp_pb2):
        pool.AddSerializedFile(imported.DESCRIPTOR.serialized_pb)
        file.dependency.append(imported.DESCRIPTOR.name)
    event = file.message_type.add(name="CloudEvent")
    _add_fields(event, _EVENT_FIELDS)
    _add_fields(event.nested_type.add(name="CloudEventAttributeValue"), _VALUE_FIELDS)
    entry = event.nested_type.add(name="AttributesEntry")
    entry.options.map_entry = True
    _add_fields(entry, {"key": (1, "string", ""), "value": (2, _VALUE, "")})
    _add_repeated(event, "attributes", _MAP, f"{_EVENT}.AttributesEntry")
    _add_repeated(file.message_type.add(name="CloudEventBatch"), "events", 1, _EVENT)
    pool.AddSerializedFile(file.SerializeToString())
    return pool


def _add_fields(message: Any, table: dict[str, tuple[int, str, str]]) -> None:
    oneofs = list(dict.fromkeys(oneof for _, _, oneof in table.values() if oneof))
    for oneof in oneofs:
        message.oneof_decl.add(name=oneof)
    for name, (number, kind, oneof) in table.items():
        field = message.field.add(name=name, number=number)
        field.label = field.LABEL_OPTIONAL
        if kind.startswith("."):
            field.type, field.type_name = field.TYPE_MESSAGE, kind
        else:
            field.type = getattr(field, f"TYPE_{kind.upper()}")
        if oneof:
            field.oneof_index = oneofs.index(oneof)


def _add_repeated(message: Any, name: str, number: int, kind: str) -> None:
    field = message.field.add(name=name, number=number, type_name=kind)
    field.type, field.label = field.TYPE_MESSAGE, field.LABEL_REPEATED


def read(body: bytes, known: Extensions = NONE) -> Event:
    """Read one event, or raise `Rejected` with the attribute's pointer and the byte offset."""
    kind = message_class("CloudEvent")  # says which extra is missing, before the import below
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # noqa: PLC0415

    try:
        message = kind.FromString(bytes(body))
    except DecodeError:
        _places(body)
        raise Rejected("not a Protobuf CloudEvent", code="not_protobuf") from None
    if message.ByteSize() != len(body):
        _places(body)  # something is written twice, unknown or wide: look for a name twice
    with reading(lambda name: _places(body).get(name)):
        return _judge(message, known)


def _judge(message: Any, known: Extensions) -> Event:
    attributes: dict[str, Any] = {
        "specversion": message.spec_version or None,
        "id": message.id or None,
        "source": message.source or None,
        "type": message.type or None,
    }
    for name, value in message.attributes.items():
        if name in REQUIRED:
            _refuse(
                name, "must be a field of the message, found in `attributes`", "misplaced_attribute"
            )
        attributes[name] = _read_value(name, value)
    content_type = attributes.get("datacontenttype")
    media = None if content_type is None else parse_media_type(content_type)
    branch = message.WhichOneof("data")
    data: Any = ABSENT
    if branch == "text_data":
        data = read_text(message.text_data, media)
    elif branch == "binary_data":
        data = message.binary_data
    elif branch == "proto_data":
        data = Message.of(message.proto_data.value, message.proto_data.type_url)
    return make_of(attributes, data, known)


def _read_value(name: str, value: Any) -> Value:
    field = value.WhichOneof("attr")
    if field is None:
        _refuse(name, "has no value", "no_value")
    kind = _KIND_OF[field]
    if CORE.get(name, kind) is not kind:
        _refuse(name, f"must be a {CORE[name]}, found {kind}", "bad_type")
    found: Value = getattr(value, field)
    try:
        return _TYPED[kind](found) if kind in _TYPED else found
    except Refused as error:
        _refuse(name, error.message, error.code)


def _read_timestamp(found: Any) -> Timestamp:
    if not (_YEAR_1 <= found.seconds <= _YEAR_9999 and 0 <= found.nanos < _BILLION):
        raise Refused("is outside the range of a Protobuf Timestamp", code="bad_timestamp")
    return Timestamp.of_nanoseconds(found.seconds * _BILLION + found.nanos)


_TYPED: Final[dict[Kind, Callable[[Any], Value]]] = {
    Kind.URI: Uri,
    Kind.URI_REFERENCE: UriReference,
    Kind.TIMESTAMP: _read_timestamp,
}


def _refuse(name: str, fault: str, code: str) -> NoReturn:
    raise Refused(f"{name}: {fault}", code=code, pointer=f"/{name}")


def _places(body: bytes) -> dict[str, int]:
    """Find where each attribute stands; reject a fault of the wire, or a name that is twice."""
    places: dict[str, int] = {}
    for field in fields(body):
        if field.number == _MAP and field.wire == 2:
            name = _entry_name(body, field)
            if name in places:
                fault = f"{name}: occurs twice"
                raise Rejected(
                    fault, code="duplicate_attribute", pointer=f"/{name}", offset=field.start
                )
            places[name] = field.start
        elif field.number in _NAMES:
            name = _NAMES[field.number]
            places[name] = field.start
            if field.number not in (6, 8):
                _text(body, field, name)
    return places


def _entry_name(body: bytes, entry: Field) -> str:
    name = ""
    for field in fields(body, entry.start, entry.end):
        if field.number == 1:
            name = _text(body, field, "attributes")
    return name


def _text(body: bytes, field: Field, name: str) -> str:
    try:
        return body[field.start : field.end].decode()
    except UnicodeDecodeError as error:
        raise Rejected(
            f"{name}: not UTF-8: {error.reason}",
            code="not_utf8",
            pointer=f"/{name}",
            offset=field.start + error.start,
        ) from None


def read_batch(body: bytes, known: Extensions = NONE) -> tuple[Event, ...]:
    """Read a batch; the pointer of a fault begins with the event's index."""
    events: list[Event] = []
    for field in fields(body):
        if field.number != 1:
            continue
        if field.wire != 2:
            raise Rejected(
                "an event of the batch is not a Protobuf message",
                code="bad_wire_type",
                offset=field.start,
            )
        with inside(len(events), field.start):
            events.append(read(body[field.start : field.end], known))
    return tuple(events)


def write(event: Event) -> bytes:
    """Write one event; the same event always gives the same bytes."""
    return _message(event).SerializeToString(deterministic=True)  # type: ignore[no-any-return]


def write_batch(events: Iterable[Event]) -> bytes:
    """Write a batch."""
    batch = message_class("CloudEventBatch")(events=[_message(event) for event in events])
    return batch.SerializeToString(deterministic=True)  # type: ignore[no-any-return]


def _message(event: Event) -> Any:
    message = message_class("CloudEvent")(
        id=event.id, source=event.source, spec_version=event.specversion, type=event.type
    )
    content_type, data = event.datacontenttype, event.data
    if isinstance(data, Message):
        message.proto_data.type_url, message.proto_data.value = data.type_url, bytes(data)
    elif isinstance(data, bytes):
        message.binary_data = data
    elif data is not ABSENT:
        message.text_data, content_type = carry_text(data, event.media, content_type)
    attributes = event.attributes | ({"datacontenttype": content_type} if content_type else {})
    for name, value in attributes.items():
        if name not in REQUIRED:
            _write_value(name, message.attributes[name], value)
    return message


def _write_value(name: str, message: Any, value: Value) -> None:
    kind = CORE.get(name) or kind_of(value)
    if not isinstance(value, Timestamp):
        setattr(message, _FIELD_OF[kind], value)
        return
    seconds, nanos = divmod(value.nanoseconds, _BILLION)
    if not _YEAR_1 <= seconds <= _YEAR_9999:
        _refuse(name, f"{value} is outside the years of a Protobuf Timestamp", "bad_timestamp")
    message.ce_timestamp.SetInParent()
    message.ce_timestamp.seconds, message.ce_timestamp.nanos = seconds, nanos
