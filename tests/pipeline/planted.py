"""Generate traffic with faults at known places, to check the tables.

`plant` gives captures of five programs on Kafka with ten URNs, and a `Truth` that lists the
messages that were lost, duplicated, delayed, altered, invented, drifted, leaked and broken, and the
true latency of each queue. Clocks are skewed within the error that the captures state. Harmless
messages that look like faults are included: a retry is not a copy, and a higher count of attempts
is not an alteration.

Everything follows from the seed: it uses no clock and no other random numbers.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections import Counter
from dataclasses import dataclass, field
from hashlib import md5
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tallystick.pipeline.capture import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

__all__ = ["BREAKS", "WAYS", "Planted", "Truth", "Way", "plant", "write_registry"]

_START: Final = 1_749_132_727_000
_STEP: Final = 1_000_000
"""One millisecond between two messages, in nanoseconds."""
_TEXT: Final = {"type": "string", "maxLength": 200}
_ID: Final = {"type": "integer", "minimum": 1}


class Way(NamedTuple):
    """One URN: who sends it to whom on which queue in which language, how long, what data."""

    urn: str
    sender: str
    receiver: str
    queue: str
    lang: str
    milliseconds: int
    data: str
    properties: Mapping[str, Any]
    required: tuple[str, ...]


def _way(
    name: str,
    nodes: tuple[str, str, str],
    lang: str,
    milliseconds: int,
    data: str,
    /,
    **schema: Any,
) -> Way:
    required = schema.pop("required")
    sender, receiver, queue = nodes
    return Way(
        f"urn:babel:{name}", sender, receiver, queue, lang, milliseconds, data, schema, required
    )


WAYS: Final = (
    _way("orders:created", ("shop", "billing", "orders"), "php", 7,
         '{"amount":%(cents)d.25,"currency":"EUR","note":"order number %(n)d","order_id":%(n)d}',
         order_id=_ID, amount={"type": "number", "minimum": 0}, note=_TEXT,
         currency={"type": "string", "enum": ["EUR", "TRY", "USD"]},
         required=("order_id", "amount", "currency")),
    _way("invoices:issued", ("billing", "mailer", "invoices"), "python", 11,
         '{"invoice":"INV-%(n)08d","lines":[{"quantity":%(cents)d,"sku":"A-%(cents)d"}]}',
         invoice={"type": "string", "pattern": "^INV-\\d{8,10}$"},
         lines={"type": "array", "minItems": 1, "items": {
             "type": "object", "required": ["sku", "quantity"],
             "properties": {"sku": {"type": "string", "minLength": 1}, "quantity": _ID}}},
         required=("invoice", "lines")),
    _way("mails:sent", ("mailer", "archive", "mails"), "node", 5,
         '{"email":"user%(n)d@example.com","template":"invoice"}',
         email={"type": "string", "x-gdpr-sensitive": "email"}, template=_TEXT,
         required=("email", "template")),
    *(
        _way(f"{name}:changed", (sender, "archive", name), lang, 3 + at,
             '{"active":true,"name":"item %(n)d","number":%(n)d,"rate":%(cents)d.5,'
             '"tags":["a","b"]}',
             number=_ID, name=_TEXT, active={"type": "boolean"}, rate={"type": "number"},
             tags={"type": "array", "items": _TEXT, "maxItems": 5},
             spare={"type": "string"}, required=("number", "name"))
        for at, (name, sender, lang) in enumerate([
            ("stock", "shop", "php"), ("prices", "shop", "php"), ("ledger", "billing", "python"),
            ("reviews", "shop", "php"), ("routes", "mailer", "node"), ("carts", "shop", "php"),
            ("limits", "billing", "python"),
        ])
    ),
)  # fmt: skip
_CHAIN: Final = 3
_TRACES: Final = 10
"""Every tenth trace is an order, its invoice and its mail; the others are one message each."""

SKEW: Final = {"shop": -400_000, "billing": 350_000, "mailer": 0, "archive": 200_000}
ERROR: Final = 500_000
"""How far each clock says it may be off, and how far it is; in nanoseconds."""


class Break(NamedTuple):
    """One way to break a message, and what must be said of it."""

    name: str
    spoil: Callable[[bytes], bytes]
    stage: str
    code: str


def _swap(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda body: body.replace(old, new, 1)


_DATA: Final = b',"meta":{"id"'


def _spoil_data(body: bytes) -> bytes:
    """Put a list where the schema of any of the ways wants a scalar or objects."""
    start = body.find(b'"data":{') + 8
    end = body.find(b":", start) + 1
    stop = body.find(b',"', end) if b',"' in body[end : body.find(_DATA)] else body.find(_DATA) - 1
    return body[:end] + b"{}" + body[stop:]


BREAKS: Final = (
    Break("cut", lambda body: body[:-7], "decode", "not_json"),
    Break("garbage", lambda _: b"\xff\xfe\x00binary", "decode", "not_utf8"),
    Break("array", lambda body: b"[" + body + b"]", "decode", "not_an_object"),
    Break("empty", lambda _: b"", "decode", "empty"),
    Break("not_utf8", _swap(b'"meta"', b'"x\xff":1,"meta"'), "decode", "not_utf8"),
    Break("lone_surrogate", _swap(_DATA, b',"x":"\\ud800"' + _DATA), "decode", "lone_surrogate"),
    Break("trailing", lambda body: body + b"}", "decode", "trailing_data"),
    Break("nan", _swap(b'"attempts":0', b'"attempts":NaN'), "decode", "not_json"),
    Break("no_job", _swap(b'"job"', b'"jab"'), "decode", "no_identity"),
    Break("blank_job", lambda body: b'{"job":" "' + body[body.find(b',"trace_id"') :],
          "decode", "no_identity"),
    Break("trace_number", lambda body: body.replace(b'"trace_id":"', b'"trace_id":1,"y":"', 1),
          "decode", "wrong_type"),
    Break("attempts_text", _swap(b'"attempts":0', b'"attempts":"0"'), "decode", "wrong_type"),
    Break("attempts_fraction", _swap(b'"attempts":0', b'"attempts":0.0'), "decode", "wrong_type"),
    Break("attempts_huge", _swap(b'"attempts":0', b'"attempts":9223372036854775808'),
          "decode", "wrong_type"),
    Break("number_out_of_range", _swap(b'"data":{', b'"data":{"z":1e400,'), "decode",
          "number_out_of_range"),
    Break("version_two", _swap(b'"schema_version":1', b'"schema_version":2'), "accept",
          "not_accepted"),
    Break("no_attempts", _swap(b',"attempts":0', b""), "accept", "not_accepted"),
    Break("no_meta", lambda body: body[: body.find(b',"meta":{')] + b',"attempts":0}', "accept",
          "not_accepted"),
    Break("blank_trace", lambda body: body[: body.find(b'"trace_id":"') + 12] + b" "
          + body[body.find(b'","data"') :], "accept", "not_accepted"),
    Break("data_null", lambda body: body[: body.find(b'"data":') + 7] + b"null"
          + body[body.find(_DATA) :], "accept", "not_accepted"),
    Break("member_missing", lambda body: body[: body.find(b'"data":') + 7] + b"{}"
          + body[body.find(_DATA) :], "schema", "required"),
    Break("wrong_type", _spoil_data, "schema", "type"),
)  # fmt: skip


@dataclass(slots=True)
class Truth:
    """Where the faults are: by number of the message, and what the tables must say in all."""

    messages: int = 0
    lost: set[int] = field(default_factory=set)
    doubled: set[int] = field(default_factory=set)
    retried: set[int] = field(default_factory=set)
    delayed: set[int] = field(default_factory=set)
    altered: set[int] = field(default_factory=set)
    unexpected: set[int] = field(default_factory=set)
    drifted: dict[int, str] = field(default_factory=dict)
    leaked: dict[int, str] = field(default_factory=dict)
    broken: dict[int, Break] = field(default_factory=dict)
    foreign: set[int] = field(default_factory=set)
    undeclared: set[int] = field(default_factory=set)
    records: Counter[str] = field(default_factory=Counter)


class Planted(NamedTuple):
    """One record, the program whose log it is in, and the number of its message."""

    node: str
    number: int
    record: Record


def choose(count: int, seed: int, broken: float) -> Truth:
    """Decide which messages carry which fault; no message carries two."""
    random = Random(seed)
    most = range(count // 20, count - count // 20)
    free = random.sample(most, min(len(most), max(60, count // 3)))
    truth = Truth(messages=count)
    for name in ("lost", "doubled", "retried", "delayed", "altered", "unexpected", "undeclared"):
        setattr(truth, name, set(_take(free, 0.004, _any)))
    truth.foreign = set(_take(free, 0.004, _is_single))
    truth.drifted = {
        number: _DRIFT_KINDS[at % len(_DRIFT_KINDS)]
        for at, number in enumerate(_take(free, 0.01, _is_single))
    }
    truth.leaked = {
        number: _LEAK_KINDS[at % 2] for at, number in enumerate(_take(free, 0.004, _is_single))
    }
    spoiled = _take(free, broken * count / max(len(free), 1), _any)
    truth.broken = {number: BREAKS[at % len(BREAKS)] for at, number in enumerate(spoiled)}
    return truth


def _any(_: int) -> bool:
    return True


def _is_single(number: int) -> bool:
    return way_of(number)[1] >= _CHAIN


def _take(free: list[int], share: float, fits: Callable[[int], bool]) -> list[int]:
    """Take a share of the free numbers that fit, at least one."""
    wanted = max(1, round(len(free) * share))
    taken = [number for number in free if fits(number)][:wanted]
    gone = set(taken)
    free[:] = [number for number in free if number not in gone]
    return taken


def _uuid(number: int, kind: str) -> str:
    raw = md5(f"{kind}{number}".encode(), usedforsecurity=False).hexdigest()
    return f"{raw[:8]}-{raw[8:12]}-4{raw[13:16]}-8{raw[17:20]}-{raw[20:]}"


def way_of(number: int) -> tuple[int, int]:
    """Give (trace, which of the ways) of a message: an order's chain, then single messages."""
    group, place = divmod(number, _CHAIN + _TRACES - 1)
    if place < _CHAIN:
        return group * _TRACES, place
    return group * _TRACES + place - _CHAIN + 1, _CHAIN + (place + group) % (len(WAYS) - _CHAIN)


def _body(number: int, trace: int, way: Way, data: str) -> bytes:
    return (
        f'{{"job":"{way.urn}","trace_id":"{_uuid(trace, "t")}","data":{data},'
        f'"meta":{{"id":"{_uuid(number, "m")}","queue":"{way.queue}","lang":"{way.lang}",'
        f'"schema_version":1,"created_at":{_START + number}}},"attempts":0}}'
    ).encode()


def _b64(text: str) -> str:
    return b64encode(text.encode()).decode()


def _sections(number: int, trace: int, way: Way, urn: str, attempts: int) -> str:
    return (
        f'{{"headers":{{"bq-job":{{"$bytes":"{_b64(urn)}"}},'
        f'"bq-trace-id":{{"$bytes":"{_b64(_uuid(trace, "t"))}"}},'
        f'"bq-message-id":{{"$bytes":"{_b64(_uuid(number, "m"))}"}},'
        f'"bq-schema-version":{{"$bytes":"MQ=="}},'
        f'"bq-source-lang":{{"$bytes":"{_b64(way.lang)}"}},'
        f'"bq-attempts":{{"$bytes":"{_b64(str(attempts))}"}}}},'
        f'"record":{{"timestamp":{_START + number}}}}}'
    )


def _escape(found: re.Match[bytes]) -> bytes:
    return b"%s\\u%04x" % (found[1], ord(found[2]))


_QUEUE: Final = re.compile(rb'("queue":")(.)')
_DRIFTS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "whitespace": lambda body: body.replace(b',"meta"', b', "meta"', 1),
    "number_form": lambda body: body.replace(b'.5,"tags"', b'.50,"tags"', 1),
    "member_order": lambda body: b'{"trace_id"' + body[body.find(b'"trace_id"') + 10 :
        body.find(b',"data"')] + b"," + body[1 : body.find(b',"trace_id"')]
        + body[body.find(b',"data"') :],
    "string_form": lambda body: _QUEUE.sub(_escape, body, 1),
    "native": lambda body: body,
}  # fmt: skip
_DRIFT_KINDS: Final = tuple(_DRIFTS)
_LEAKS: Final = {"email": "write to jane%d@leak.example", "phone": "call +49 30 %07d"}
_LEAK_KINDS: Final = tuple(_LEAKS)


def plant(count: int, *, seed: int = 1, broken: float = 0.01) -> tuple[Truth, Iterator[Planted]]:
    """Give the truth and the records of `count` messages, sent and received."""
    truth = choose(count, seed, broken)
    return truth, _records(truth)


def _records(truth: Truth) -> Iterator[Planted]:
    """Give the records of every program in the order in which it saw them."""
    waiting: list[tuple[int, int, str, Record]] = []
    sequences: Counter[str] = Counter()
    events: list[tuple[int, int, str, Record]] = []
    for number in range(truth.messages):
        now = _START * 1_000_000 + number * _STEP
        events = list(_events(truth, number, now))
        waiting.extend(events)
        if len(waiting) > 4096 or number == truth.messages - 1:
            waiting.sort()
            safe = now - _STEP if number < truth.messages - 1 else 1 << 62
            done = [one for one in waiting if one[0] < safe]
            waiting = waiting[len(done) :]
            for _, which, node, record in done:
                sequence = sequences[node]
                sequences[node] += 1
                truth.records[record.direction or ""] += 1
                yield Planted(node, which // 4, record._replace(sequence=sequence))


def _events(truth: Truth, number: int, now: int) -> Iterator[tuple[int, int, str, Record]]:
    trace, at = way_of(number)
    way = WAYS[at]
    data = way.data % {"n": number + 1, "cents": number % 900 + 1}
    if number in truth.leaked:
        data = _leak(data, truth.leaked[number], number)
    if number in truth.undeclared:
        data = '{"zz_extra":1}' if data == "{}" else data[:-1] + ',"zz_extra":1}'
    urn = "urn:babel:nobody:knows" if number in truth.foreign else way.urn
    body = _body(number, trace, way._replace(urn=urn), data)
    drift = truth.drifted.get(number)
    if drift is not None:
        body = _DRIFTS[drift](body)
    if number in truth.broken:
        body = truth.broken[number].spoil(body)
    told = "urn:babel:other" if drift == "native" else urn
    sections = _sections(number, trace, way, told, 0)
    taken = way.milliseconds * 1_000_000
    if at < _CHAIN:
        now += sum(one.milliseconds * 1_000_000 + 2_000_000 for one in WAYS[:at])

    def seen(direction: str, node: str, when: int, raw: bytes, native: str, place: int) -> Any:
        record = Record(
            "", 0, direction, "kafka", way.queue, node, when + SKEW[node], ERROR, None, raw, native
        )
        return when, number * 4 + place, node, record

    if number not in truth.unexpected:
        yield seen("sent", way.sender, now, body, sections, 0)
    if number in truth.lost:
        return
    if number in truth.delayed:
        taken += 400_000_000
    arrived = body
    if number in truth.altered:
        other = data.replace(str(number + 1), str(number + 2), 1)
        arrived = _body(number, trace, way, other)
    yield seen("received", way.receiver, now + taken, arrived, sections, 1)
    if number in truth.doubled:
        yield seen("received", way.receiver, now + taken + 300_000, body, sections, 2)
    if number in truth.retried:
        again = body.replace(b'"attempts":0}', b'"attempts":1}')
        native = _sections(number, trace, way, urn, 1)
        yield seen("received", way.receiver, now + taken + 600_000, again, native, 3)


def _leak(data: str, kind: str, number: int) -> str:
    """Put an address or a telephone number into a text that nobody marked."""
    return re.sub(r'"name":"[^"]*"', f'"name":"{_LEAKS[kind] % number}"', data)


def write_registry(folder: Path) -> Path:
    """Write the schemas of the ways as a registry and give its manifest."""
    (folder / "schemas").mkdir(parents=True, exist_ok=True)
    rows = []
    for way in WAYS:
        path = f"schemas/{way.urn.removeprefix('urn:babel:').replace(':', '-')}.json"
        schema = {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "required": list(way.required),
            "properties": dict(way.properties),
        }
        (folder / path).write_text(json.dumps(schema, indent=1))
        rows.append({"urn": way.urn, "schema": path})
    manifest = folder / "registry.json"
    manifest.write_text(json.dumps({"schemas": rows}, indent=1))
    return manifest
