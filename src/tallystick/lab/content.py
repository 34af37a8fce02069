"""Envelope circuits and field tables between clients, judged by the whole received messages.

An envelope must arrive byte for byte, with the native fields of the RabbitMQ binding, and a
redelivery must not raise its attempts (that binding counts only in the body). A header table must
arrive with the same values; the type tag must be equal if the receiver's library shows it.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from tallystick.brokers.rabbitmq.binding import BINDING
from tallystick.core.binding import project, reconcile
from tallystick.core.envelope import decode, encode, make
from tallystick.core.verdict import Difference
from tallystick.lab.cases import Settings
from tallystick.lab.instance import BROKEN, Evidence, Finding, Group, Instance, broken_by
from tallystick.lab.judge import conclude, judge_trouble
from tallystick.lab.pairs import Trial, trial_group

__all__ = [
    "TABLES",
    "envelope_group",
    "field_groups",
    "judge_envelopes",
    "judge_tables",
    "make_envelopes",
    "plain_value",
]

_REQUEUED: Final = 1
_INTEGERS: Final = "bBsuIil*"
_FLOATS: Final = "fd"
_OURS: Final = ("CLIENT_NAME", "PUBLISHER", "SEQUENCE", "SENT_NS")
"""Headers of every test message."""


_SAMPLES: Final[Mapping[str, dict[str, Any]]] = {
    "urn:babel:orders:created": {"order_id": 1042, "amount": 12.5, "currency": "USD"},
    "urn:babel:lab:text": {"text": "Grüße, 世界 🌍", "nested": {"list": [1, 2.5, None, True]}},
    "urn:babel:lab:numbers": {"big": 9_007_199_254_740_993, "small": 1e-7, "zero": 0},
}
_NO_NAMES: Final = (b'""', rb'" \t"', b"null", b"5")
"""A `job` that names nothing: the `urn` beside it does (alias rule)."""


def make_envelopes(case: str) -> tuple[bytes, ...]:
    """Give the envelopes of a case, some named by `urn`; no two cases share an id or a trace."""
    plain = [_make_envelope(f"{case}/{at}", *sample) for at, sample in enumerate(_SAMPLES.items())]
    aliased = [
        _make_envelope(f"{case}/{job.decode()}", "urn:babel:lab:alias", {}).replace(
            b'"job":', b'"job":%b,"urn":' % job, 1
        )
        for job in _NO_NAMES
    ]
    return (*plain, *aliased)


def _make_envelope(name: str, urn: str, data: dict[str, Any]) -> bytes:
    return encode(
        make(
            urn,
            data,
            now_ms=1_763_251_200_000,
            new_id=partial(_name_by, f"{name}/id"),
            trace_id=_name_by(f"{name}/trace"),
            queue="orders",
        )
    )


def _name_by(text: str) -> str:
    return str(UUID(bytes=sha256(text.encode()).digest()[:16], version=4))


TABLES: Final[Mapping[str, list[Any]]] = {
    "boolean": ["t", "true"],
    "int8": ["b", "-128"],
    "uint8": ["B", "255"],
    "int16": ["s", "-32768"],
    "uint16": ["u", "65535"],
    "int32": ["I", "-2147483648"],
    "uint32": ["i", "4294967295"],
    "int64": ["l", "-9223372036854775808"],
    "float": ["f", "1.5"],
    "double": ["d", "1.5"],
    "decimal": ["D", "2", "314"],
    "string": ["S", "Grüße, 世界 🌍"],
    "timestamp": ["T", "1763251200"],
    "bytes": ["x", "00ff80"],
    "void": ["V"],
    "array": ["A", [["S", "a"], ["I", "1"], ["V"]]],
    "table": ["F", {"a": ["t", "false"], "b": ["F", {"c": ["S", ""]}]}],
}
"""One value of each type, at an end of its range where it has one."""


def envelope_group(settings: Settings) -> Group:
    """Give the envelope cases; the first delivery is put back, so that one is redelivered."""
    texts = _texts_of("Envelope")
    sending = {"envelopes": texts, "num_messages": len(texts)}
    receiving = {"echo": True, "requeue_first": _REQUEUED}
    trial = Trial("Envelope", "Envelope", sending, receiving, judge_envelopes, len(texts))
    group = trial_group(settings, trial)

    def make_all(senders: Sequence[str], receivers: Sequence[str]) -> list[Instance]:
        return [_with_own_envelopes(one) for one in group.make(senders, receivers)]

    return replace(group, make=make_all)


def _texts_of(case: str) -> list[str]:
    return [base64.b64encode(one).decode() for one in make_envelopes(case)]


def _with_own_envelopes(instance: Instance) -> Instance:
    """Give a case envelopes that no other has; the name of its queue is new in every run."""
    sender, *others = instance.parts
    body = {**sender.body, "envelopes": _texts_of(instance.queues[0].name)}
    return replace(instance, parts=(replace(sender, body=body), *others))


def field_groups(settings: Settings) -> tuple[Group, ...]:
    """Give one group for each type of a header value."""
    return tuple(
        trial_group(
            settings,
            Trial("FieldTable", f"FieldTable/{name}",
                  {"header_fields": {"value": value}, "num_messages": 1}, {"echo": True},
                  judge_tables, 1),
        )
        for name, value in TABLES.items()
    )  # fmt: skip


def _judged(instance: Instance, evidence: Evidence, found: Iterator[Difference]) -> Finding:
    try:
        return conclude([*judge_trouble(instance, evidence), *found])
    except BROKEN as error:
        return broken_by(error)


def judge_envelopes(instance: Instance, evidence: Evidence) -> Finding:
    """Judge bytes, projection, order, redelivery and attempts."""
    wanted = [base64.b64decode(one) for one in instance.parts[0].body["envelopes"]]
    return _judged(instance, evidence, _look_at_envelopes(wanted, evidence))


def _look_at_envelopes(wanted: Sequence[bytes], evidence: Evidence) -> Iterator[Difference]:
    deliveries = evidence.reports[1].body["echo"]
    first = [one for one in deliveries if not one["redelivered"]]
    again = [one for one in deliveries if one["redelivered"]]
    bodies = [base64.b64decode(one["body"]) for one in first]
    if bodies != wanted:
        yield from _name_bodies(wanted, bodies)
        return
    if [one["body"] for one in again] != [one["body"] for one in first[:_REQUEUED]]:
        found = [one["body"] for one in again]
        yield Difference("/receiver/redelivered", [one["body"] for one in first[:1]], found)
    for number, delivery in enumerate(deliveries):
        yield from _look_at_projection(f"/receiver/{number}", delivery)


def _name_bodies(wanted: Sequence[bytes], bodies: Sequence[bytes]) -> Iterator[Difference]:
    lost = [number for number, one in enumerate(wanted) if one not in bodies]
    strange = [one.decode("utf-8", "backslashreplace") for one in bodies if one not in wanted]
    if lost:
        yield Difference("/receiver/lost", [], lost)
    if strange:
        yield Difference("/receiver/altered", [], strange)
    if not lost and not strange:
        yield Difference("/receiver/reordered", [], [len(bodies)])


def _look_at_projection(where: str, delivery: Mapping[str, Any]) -> Iterator[Difference]:
    envelope = decode(base64.b64decode(delivery["body"]))
    wanted = project(BINDING, envelope)
    headers = {name: plain_value(value) for name, value in delivery["headers"].items()}
    sections = {"properties": dict(delivery["properties"]), "headers": headers}
    for section in ("properties", "headers"):
        if sections[section] != dict(wanted.sections[section]):
            expected = dict(wanted.sections[section])
            yield Difference(f"{where}/{section}", expected, sections[section])
    attempts = reconcile(BINDING, envelope.attempts, sections)
    if attempts != envelope.attempts:
        yield Difference(f"{where}/attempts", envelope.attempts, attempts)


def plain_value(value: Sequence[Any]) -> Any:
    """Give a tagged value as a binding reads it."""
    return int(value[1]) if value[0] in _INTEGERS else value[1] if value[0] == "S" else list(value)


def judge_tables(instance: Instance, evidence: Evidence) -> Finding:
    """Judge a header table: the same values, and the same tags where they are known."""
    wanted = instance.parts[0].body["header_fields"]
    return _judged(instance, evidence, _look_at_tables(wanted, evidence))


def _look_at_tables(wanted: Mapping[str, Any], evidence: Evidence) -> Iterator[Difference]:
    found = [one["headers"] for one in evidence.reports[1].body["echo"]]
    if len(found) != 1:
        yield Difference("/receiver/count", 1, len(found))
        return
    arrived = {name: value for name, value in found[0].items() if name not in _OURS}
    if not _same(["F", wanted], ["F", arrived]):
        yield Difference("/receiver/0/headers", wanted, arrived)


def _same(wanted: Sequence[Any], found: Sequence[Any]) -> bool:
    kind = wanted[0]
    if kind == "F" == found[0]:
        return wanted[1].keys() == found[1].keys() and all(
            _same(value, found[1][name]) for name, value in wanted[1].items()
        )
    if kind == "A" == found[0]:
        return len(wanted[1]) == len(found[1]) and all(map(_same, wanted[1], found[1]))
    if found[0] == "*" and kind in _INTEGERS:
        return bool(int(wanted[1]) == int(found[1]))
    if kind in _FLOATS and found[0] in (kind, "d"):
        return _bits(kind, wanted[1]) == _bits(found[0], found[1])
    return list(wanted) == list(found)


def _bits(kind: str, text: str) -> bytes:
    """Give the bits of a float, widened, or of a double: texts are the same when these are."""
    (value,) = struct.unpack(f">{kind}", struct.pack(f">{kind}", float(text)))
    return struct.pack(">d", value)
