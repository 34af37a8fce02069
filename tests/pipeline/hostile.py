"""Adversarial records: planted traffic, and what becomes of it when bytes and values go wrong."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from random import Random
from typing import Any

from tallystick.pipeline.capture import Record
from tests.pipeline.planted import plant

PIECES = [
    b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\u0041", b"\\ud800", b"\\u0000", b"1e400",
    b"-", b"0", b".0", b"e5", b"1E2", b"NaN", b"null", b"true", b"\x00", b"\xff", b"\xed\xa0\x80",
    b"\xef\xbb\xbf", b"\n", b" ", b"\r", b"9" * 400, b'"urn":"u",', b'"attempts":1,', b"\xc2\xa0",
    b'"x":1,', b'"timestamp":1,', b"@a.de", b"+4930123456", b"4111111111111111",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, -0.0, 1, -1, 1.0, 1.5, 1e16, 1e21, 1e-7, 5e-324, 2**53 + 1, 2**63, 2**64,
    10**30, 10**308, 10**309, -(10**400), 12345678901, 10000000146, 4111111111111111, "",
    " ", "x", "a" * 200, "a" * 201, "€" * 200,
    "\U0001f600", "\u2028", "EUR", "eur",
    "INV-00000001", "INV-00000001\n", "INV-" + "\u0660" * 8, "\ufeff",
    "jane@leak.example", "call +49 30 1234567", "DE89370400440532013000", "4111 1111 1111 1111",
    [], [None], ["a"] * 6, [1], [[]], {}, {"a": 1}, {"sku": "", "quantity": 0},
    [{"sku": "s", "quantity": 1}], [{"sku": "s", "quantity": 1.0}],
    [{"quantity": 1, "sku": "s", "z": 0}],
    {"reason": "failed", "error": "jane@leak.example"},
]  # fmt: skip
BROKERS = [None, "kafka", "kafka", "kafka", "rabbitmq", "sqs", "redis", "servicebus", "nobody"]


def records(count: int, seed: int) -> Iterator[Record]:
    """Give so many records, most of them spoiled somehow."""
    random = Random(seed)
    _, planted = plant(max(200, min(count, 3000)), seed=seed)
    bases = [one.record for one in planted]
    for number in range(count):
        record = random.choice(bases)._replace(source="hostile", position=number, sequence=number)
        for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
            record = random.choice(SPOILERS)(record, random)
        yield record


def _bytes(record: Record, random: Random) -> Record:
    body = bytearray(record.body)
    at = random.randrange(len(body) + 1)
    kind = random.randrange(4)
    if kind == 0:
        body[at:at] = random.choice(PIECES)
    elif kind == 1:
        del body[at : at + random.randrange(1, 12)]
    elif kind == 2 and body:
        body[min(at, len(body) - 1)] = random.randrange(256)
    else:
        piece = body[at : at + random.randrange(1, 30)]
        body[at:at] = piece
    return record._replace(body=bytes(body))


def _value(record: Record, random: Random) -> Record:
    """Change, add or take away one member somewhere, and write it in one of many forms."""
    try:
        message = json.loads(record.body)
    except ValueError:
        return record
    place: Any = message
    for _ in range(random.randrange(4)):
        inner = [one for one in (place.values() if isinstance(place, dict) else place or ())
                 if isinstance(one, dict | list)]  # fmt: skip
        if not inner:
            break
        place = random.choice(inner)
    value = random.choice(VALUES)
    if isinstance(place, dict):
        name = random.choice([*place, "zz", "a.b", "job", "email", "dead_letter"])
        if random.random() < 0.2:
            place.pop(name, None)
        else:
            place[name] = value
    elif isinstance(place, list):
        place.insert(random.randrange(len(place) + 1), value)
    return record._replace(body=_write(message, random))


def _write(message: Any, random: Random) -> bytes:
    tight = (",", ":")
    return json.dumps(
        message,
        ensure_ascii=random.random() < 0.2,
        separators=None if random.random() < 0.1 else tight,
        sort_keys=random.random() < 0.1,
    ).encode("utf-8", "surrogatepass")


def _double(record: Record, random: Random) -> Record:
    """Let a member stand twice."""
    name = random.choice([b"job", b"trace_id", b"attempts", b"meta", b"data", b"id", b"note"])
    value = random.choice([b"1", b'"x"', b"{}", b"null", b"0", b"9" * 400])
    at = record.body.find(b'"', random.randrange(max(1, len(record.body))))
    head, tail = record.body[: max(at, 1)], record.body[max(at, 1) :]
    return record._replace(body=head + b'"%s":%s,' % (name, value) + tail)


def _attempts(record: Record, random: Random) -> Record:
    count = random.choice([b"1", b"2", b"17", b"-1", b"00", b"9223372036854775807"])
    return record._replace(body=record.body.replace(b'"attempts":0', b'"attempts":' + count))


def _native(record: Record, random: Random) -> Record:
    """Spoil a native field, or the sections as a whole, or say it was another broker."""
    kind = random.randrange(4)
    if kind == 0:
        return record._replace(broker=random.choice(BROKERS))
    if kind == 1:
        bad = ["[]", "{", '{"headers":1}', '{"headers":{"a":{"$bytes":"?"}}}', "null", None,
               '{"headers":{"bq-job":{"$bytes":5}}}']  # fmt: skip
        return record._replace(sections=random.choice(bad))
    try:
        sections = json.loads(record.sections or "{}")
    except ValueError:
        return record
    if not isinstance(sections, dict):
        return record
    held = sections.setdefault(random.choice(["headers", "record", "properties"]), {})
    if not isinstance(held, dict):
        return record
    names = [
        *held,
        "bq-attempts",
        "bq-schema-version",
        "x-schema-version",
        "ApproximateReceiveCount",
    ]
    raw = random.choice([b"1", b"2", b"x", b"", b"urn:babel:orders:created", b" 1", b"\xff"])
    tagged = {"$bytes": b64encode(raw).decode()}
    held[random.choice(names)] = random.choice([tagged, tagged, "1", 1, 2, True, None, 3.5])
    return record._replace(sections=json.dumps(sections))


def _fault(record: Record, _: Random) -> Record:
    return record._replace(fault="line.cut", reason="half a pair: \ud800")


SPOILERS = [_bytes, _bytes, _bytes, _value, _value, _value, _value, _double, _attempts, _native,
            _native, _fault]  # fmt: skip
