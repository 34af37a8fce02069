"""Split an AMQP message into sections: those that a broker may change, and the bare message.

The bare message (properties, application properties, body) is kept byte for byte. Only dead-letter
reasons and modified properties are added to the application properties, and a message without a
message-id gets one, as in the service: the SDK for JavaScript needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from struct import pack
from typing import Any, Final
from uuid import UUID, uuid4

from proton import Data, int32, symbol, timestamp

__all__ = ["Message", "add_properties", "read_message", "read_transfer", "write_message"]

HEADER: Final = 0x70
DELIVERY_ANNOTATIONS: Final = 0x71
ANNOTATIONS: Final = 0x72
PROPERTIES: Final = 0x73
APPLICATION: Final = 0x74
DATA: Final = 0x75
_CODES: Final = range(HEADER, 0x79)
_GROUP: Final = 10
_FIXED: Final = {4: 0, 5: 1, 6: 2, 7: 4, 8: 8, 9: 16}
_SIZED: Final = {0xA: 1, 0xB: 4, 0xC: 1, 0xD: 4, 0xE: 1, 0xF: 4}


@dataclass(frozen=True, slots=True)
class Message:
    """One message as it was sent: the priority of its header, its annotations, its bare bytes."""

    bare: bytes
    session: str | None = None
    priority: int = 4
    ttl: int | None = None
    annotations: Mapping[Any, Any] = field(default_factory=dict)


def read_message(data: bytes) -> Message:
    """Split one encoded message into its parts."""
    header: list[Any] = []
    annotations: dict[Any, Any] = {}
    fields: list[Any] = []
    start, rest = len(data), 0
    for code, at, inside, end in _split(data):
        if code >= PROPERTIES:
            start = min(start, at)
        if code == HEADER:
            header = _decode(data[inside:end])
        elif code == ANNOTATIONS:
            annotations = _decode(data[inside:end])
        elif code == PROPERTIES:
            fields, rest = _decode(data[inside:end]), end
    session = fields[_GROUP] if len(fields) > _GROUP else None
    priority, ttl = ([*header, *[None] * 3])[1:3]
    bare = data[start:]
    if not fields or fields[0] is None:
        bare = _encode(PROPERTIES, [uuid4().hex, *fields[1:]]) + data[rest or start :]
    return Message(bare, session, 4 if priority is None else priority, ttl, annotations)


def read_transfer(data: bytes) -> list[Message]:
    """Give the messages of one transfer: one, or those of a batch.

    A batch has message-format 0x80013700, but proton does not show it. So a batch is recognised by
    its content: data sections that each contain a complete message.
    """
    inner = [_binary(data[inside:end]) for code, _, inside, end in _split(data) if code == DATA]
    if inner and all(_is_message(one) for one in inner):
        return [read_message(one) for one in inner]
    return [read_message(data)]


def write_message(
    message: Message,
    count: int,
    annotations: Mapping[Any, Any],
    delivery_annotations: Mapping[Any, Any] | None = None,
) -> bytes:
    """Encode a message for a receiver: a header of ours, annotations, and the bare bytes."""
    ttl = b"\x40" if message.ttl is None else b"\x70" + pack(">I", message.ttl)
    fields = b"\x41\x50" + bytes([message.priority]) + ttl + b"\x42" + b"\x70" + pack(">I", count)
    parts = [b"\x00\x53\x70\xc0", bytes([len(fields) + 1, 5]), fields]
    if delivery_annotations:
        parts.append(_encode_map(DELIVERY_ANNOTATIONS, delivery_annotations))
    parts += [_encode_map(ANNOTATIONS, {**message.annotations, **annotations}), message.bare]
    return b"".join(parts)


def add_properties(message: Message, changes: Mapping[str, Any]) -> Message:
    """Set application properties of a message; every other byte stays."""
    if not changes:
        return message
    bare, held, cut = message.bare, {}, (0, 0)
    for code, at, inside, end in _split(bare):
        if code == PROPERTIES:
            cut = (end, end)
        elif code == APPLICATION:
            held, cut = _decode(bare[inside:end]), (at, end)
    section = _encode(APPLICATION, {**held, **changes})
    return replace(message, bare=bare[: cut[0]] + section + bare[cut[1] :])


def _split(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Give (code, start, start of the value, end) of each section, or raise ValueError."""
    at = 0
    while at < len(data):
        code, inside = _descriptor(data, at)
        if code not in _CODES:
            raise ValueError(f"there is no message section at byte {at}")
        end = _skip(data, inside)
        if end > len(data):
            raise ValueError("the message is incomplete")
        yield code, at, inside, end
        at = end


def _descriptor(data: bytes, at: int) -> tuple[int, int]:
    if data[at : at + 2] == b"\x00\x53" and at + 2 < len(data):
        return data[at + 2], at + 3
    if data[at : at + 2] == b"\x00\x80":
        return int.from_bytes(data[at + 2 : at + 10]), at + 10
    raise ValueError(f"there is no message section at byte {at}")


def _skip(data: bytes, at: int) -> int:
    """Give the end of the value that begins here."""
    if at >= len(data):
        raise ValueError("the message is incomplete")
    if data[at] == 0:
        return _skip(data, _skip(data, at + 1))
    kind = data[at] >> 4
    if kind in _FIXED:
        return at + 1 + _FIXED[kind]
    if kind not in _SIZED:
        raise ValueError(f"there is no AMQP type at byte {at}")
    width = _SIZED[kind]
    return at + 1 + width + int.from_bytes(data[at + 1 : at + 1 + width])


def _is_message(data: bytes) -> bool:
    try:
        return bool(list(_split(data)))
    except ValueError:
        return False


def _binary(value: bytes) -> bytes:
    return value[2:] if value[:1] == b"\xa0" else value[5:]


def _decode(value: bytes) -> Any:
    data = Data()
    data.decode(value)
    data.rewind()
    data.next()
    return data.get_object()


_WRITERS: Final[Mapping[type, Callable[[Any], bytes]]] = {
    symbol: lambda value: b"\xb3" + pack(">I", len(value)) + value.encode("ascii"),
    int: lambda value: b"\x81" + pack(">q", value),
    int32: lambda value: b"\x71" + pack(">i", value),
    timestamp: lambda value: b"\x83" + pack(">q", value),
    UUID: lambda value: b"\x98" + value.bytes,
}
"""The types of our own annotations; every delivered message has some."""


def _encode_map(code: int, held: Mapping[Any, Any]) -> bytes:
    """Encode a section that is a map; what the table does not know is left to proton."""
    parts = [one for pair in held.items() for one in pair]
    if not all(type(one) in _WRITERS for one in parts):
        return _encode(code, dict(held))
    inside = b"".join([_WRITERS[type(one)](one) for one in parts])
    sizes = pack(">II", len(inside) + 4, len(parts))
    return b"\x00\x53" + bytes([code]) + b"\xd1" + sizes + inside


def _encode(code: int, value: dict[Any, Any] | list[Any]) -> bytes:
    data = Data()
    data.put_object(value)
    return b"\x00\x53" + bytes([code]) + bytes(data.encode())
