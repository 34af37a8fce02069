"""Every AMQP 0-9-1 field-table type in raw bytes, and how each broker handles it (sheet, 5.8).

A value is written by hand into the content header, so that no library can correct it, and must come
back byte for byte. `s` is a signed 16-bit integer on both brokers, although the grammar says short
string. If a broker refuses a tag, its row says so. If the answer varies for an unknown reason, no
answer is expected: the case is run, reported, and judged unsupported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from struct import pack
from typing import Final

from pamqp import commands

from tallystick.core.verdict import Difference, Outcome, Verdict
from tallystick.lab.expected import FRAME_MAX
from tallystick.lab.probe import SYNCHRONISE, Lane, declare
from tallystick.lab.raw import Content, Refusal, encode

__all__ = [
    "TYPES", "FieldCase", "FieldType", "field_cases", "headers_of", "judge_field", "probe_field",
]  # fmt: skip

IDENTICAL: Final = "identical"
DROPPED: Final = "dropped"
_UNKNOWN: Final = "connection 541"
_STATE: Final = ""
"""Nothing is expected."""
_KEY: Final = b"\x05value"
_HEADERS: Final = 1 << 13


@dataclass(frozen=True, slots=True)
class FieldType:
    """A tag, its meaning, values as bytes, and the brokers that do not return them."""

    tag: str
    meaning: str
    values: tuple[bytes, ...]
    answers: Mapping[str, str] = field(default_factory=dict)


def _long(text: bytes) -> bytes:
    return pack(">I", len(text)) + text


_INNER: Final = b"\x01nI" + pack(">i", -7) + b"\x01sS" + _long(b"in")
_QPID_STATE: Final = {"qpid": _STATE}
_REFUSED: Final = {"rabbitmq": _UNKNOWN, "qpid": _STATE}

_ERLANG: Final = {"rabbitmq": _UNKNOWN}
"""Erlang's floats have no infinity and no NaN: RabbitMQ cannot read the table."""
_NO_NUMBERS: Final = (float("inf"), float("-inf"), float("nan"))

TYPES: Final = (
    FieldType("t", "boolean", (b"\x00", b"\x01")),
    FieldType("b", "int8", (b"\x80", b"\x00", b"\x7f")),
    FieldType("B", "uint8", (b"\x00", b"\xff")),
    FieldType("s", "int16 in practice", (b"\x80\x00", b"\x00\x00", b"\x7f\xff")),
    FieldType("u", "uint16", (b"\x00\x00", b"\xff\xff")),
    FieldType("I", "int32", tuple(pack(">i", one) for one in (-(2**31), -1, 0, 2**31 - 1))),
    FieldType("i", "uint32", tuple(pack(">I", one) for one in (0, 2**31, 2**32 - 1))),
    FieldType("l", "int64 in practice", tuple(pack(">q", n) for n in (-(2**63), 0, 2**63 - 1))),
    FieldType("f", "float", tuple(pack(">f", n) for n in (0.0, -0.0, 1.5))),
    FieldType("d", "double", tuple(pack(">d", n) for n in (0.0, -0.0, 0.1, 5e-324))),
    FieldType("f", "float, no number", tuple(pack(">f", n) for n in _NO_NUMBERS), _ERLANG),
    FieldType("d", "double, no number", tuple(pack(">d", n) for n in _NO_NUMBERS), _ERLANG),
    FieldType("D", "decimal", (pack(">Bi", 0, 1), pack(">Bi", 2, -12345))),
    FieldType("S", "long string", (_long(b""), _long("größe ✓".encode()), _long(bytes(300)))),
    FieldType("A", "array", (_long(b""), _long(b"I" + pack(">i", 1) + b"S" + _long(b"two")))),
    FieldType("T", "timestamp", (pack(">Q", 0), pack(">Q", 1_700_000_000))),
    FieldType("F", "table", (_long(b""), _long(_INNER))),
    FieldType("V", "void", (b"",)),
    FieldType("x", "byte array", (_long(b""), _long(b"\x00\xff\xce"))),
    FieldType("L", "int64 in the grammar", (pack(">q", -1), pack(">q", 2**62)), _QPID_STATE),
    FieldType("U", "int16 in the grammar", (b"\x80\x01",), _REFUSED),
    FieldType("C", "char", (b"A",), _REFUSED),
    FieldType("z", "no type at all", (b"\x00",), _REFUSED),
)


@dataclass(frozen=True, slots=True)
class FieldCase:
    """One value of one type on one broker; `expected` is empty where nothing is."""

    name: str
    tag: str
    value: bytes
    expected: str


def field_cases(broker: str) -> Iterator[FieldCase]:
    """Give the cases of a broker."""
    numbers: Counter[str] = Counter()
    for kind in TYPES:
        expected = kind.answers.get(broker, IDENTICAL)
        for value in kind.values:
            name = f"fields/0-9-1/{broker}/{kind.tag}/{numbers[kind.tag]}"
            yield FieldCase(name, kind.tag, value, expected)
            numbers[kind.tag] += 1


def _table(case: FieldCase) -> bytes:
    return _long(_KEY + case.tag.encode() + case.value)


def headers_of(head: bytes) -> bytes:
    """Return the headers table of a content header, as bytes on the wire."""
    flags = int.from_bytes(head[12:14], "big")
    at = 14
    for bit in (15, 14):  # the content type and encoding stand before it, as short strings
        if flags & 1 << bit:
            at += 1 + head[at]
    if not flags & _HEADERS:
        return b""
    return head[at : at + 4 + int.from_bytes(head[at : at + 4], "big")]


async def probe_field(lane: Lane, case: FieldCase) -> str:
    """Send and receive one value; return `identical`, `dropped`, the refusal, or what arrived."""
    queue = lane.fresh()
    control = await lane.open("control", declare(queue, durable=True))
    publisher = await lane.open("publisher")
    head = pack(">HHQH", 60, 0, 1, _HEADERS) + _table(case)
    publish = commands.Basic.Publish(routing_key=queue)
    try:
        await publisher.ask(encode(publisher, publish, head, b"x", FRAME_MAX), SYNCHRONISE)
        answer = ""
        await publisher.close()
    except Refusal as refusal:
        answer = refusal.word
    (found,) = await control.ask(commands.Basic.Get(queue=queue, no_ack=True))
    await control.ask(commands.Queue.Delete(queue=queue))
    await control.close()
    lane.forget(queue)
    if answer:
        return answer
    if not isinstance(found, Content):
        return DROPPED
    came = headers_of(found.head)
    return IDENTICAL if came == _table(case) else came.hex()


def judge_field(case: FieldCase, found: str) -> Verdict:
    """Say whether the value came back as it must, or that nothing was expected."""
    if not case.expected:
        reason = (
            f"no answer is expected for {case.tag!r} on this broker (it varies); this time: {found}"
        )
        return Verdict(case.name, Outcome.UNSUPPORTED, reason)
    if found == case.expected:
        return Verdict(case.name, Outcome.PASSED, found)
    difference = Difference(f"/{case.tag}", case.expected, found)
    return Verdict(case.name, Outcome.FAILED, f"sent {_table(case).hex()}", (difference,))
