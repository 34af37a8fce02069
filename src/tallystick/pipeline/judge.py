"""The heart: what is to be said about one captured record, exactly; no Spark here.

`judge_record` is the rule. It asks `core` (decode, accept, attempts, canonical bytes) and `schemas`
(validate, mask) and gives one row. A record is refused at the first stage that turns it away:

    read      no frame could be read there           gate     the version property says no
    sections  the native fields cannot be read       decode   the contract's decoder rejects it
    accept    a consumer may not handle it           schema   its data breaks the schema of its URN

A URN that nobody registered is no fault of the message: its verdict is `unknown`. `judge_records`
gives the same rows faster, by `quick` where that is sure. Both are pure functions.
"""

from __future__ import annotations

import json
import re
from binascii import b2a_base64
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import UNSET

from tallystick.brokers import BROKERS
from tallystick.core.binding import envelope_facts, gate_frame, reconcile
from tallystick.core.canonical import canonical
from tallystick.core.envelope import (
    ASCII_SPACE,
    Envelope,
    accepts,
    decode,
    encode,
    reason_not_accepted,
)
from tallystick.core.errors import Rejected
from tallystick.core.splice import redrive, retry
from tallystick.pipeline.capture import Record, read_sections
from tallystick.pipeline.drifts import Drift, body_drifts, native_drifts
from tallystick.pipeline.exposures import Exposure, Memory, look, looks_personal
from tallystick.pipeline.quick import Quick, Shape, compile_quick, odd_float
from tallystick.schemas.catalog import Catalog, self_contained
from tallystick.schemas.mask import plan_envelope, splice
from tallystick.schemas.validate import Judge, build_judge, judge_value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tallystick.core.frame import Sections

__all__ = ["Judged", "Rules", "build_rules", "judge_body", "judge_record", "judge_records"]

_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
_DIGITS: Final = bytes.maketrans(b"123456789", b"0" * 9)
_CAPITALS: Final = bytes.maketrans(b"BCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", b"A" * 35)
_LONG_NUMBER: Final = b"0" * 11
_LONG_CODE: Final = b"A" * 15
_SCALARS: Final = re.compile(rb'"((?:[^"\\]|\\.)*+)"|(?<=[:,\[])([0-9]{11,19})(?=[,}\]])').finditer
_QUICK_FAULTS: Final = (msgspec.MsgspecError, UnicodeError, OverflowError, RecursionError)
_NO_SECTIONS: Final[dict[str, dict[str, Any]]] = {}
_HIDDEN: Final = "***"
_MILLISECONDS: Final = 13
_MOST_NATIVES: Final = 10_000


class Judged(NamedTuple):
    """One row: the verdict, what was decoded, and everything that is to be said beside it."""

    verdict: str
    stage: str | None
    code: str | None
    pointer: str | None
    reason: str | None
    hash: bytes
    key_high: int
    key_low: int
    content: int
    urn: str | None = None
    id: str | None = None
    trace_id: str | None = None
    lang: str | None = None
    meta_queue: str | None = None
    schema_version: int | None = None
    created_at: int | None = None
    body_attempts: int | None = None
    attempts: int | None = None
    dead_reason: str | None = None
    data: bytes | None = None
    canonical: bool | None = None
    masked: bytes | None = None
    violations: tuple[tuple[str, str, str, str, str], ...] = ()
    drifts: tuple[Drift, ...] = ()
    exposures: tuple[Exposure, ...] = ()
    declared: frozenset[str] | None = None
    undeclared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rules:
    """What records are judged by: the catalog with its compiled schemas, and the quick way."""

    catalog: Catalog
    judge: Judge
    quick: Quick
    schemas: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, Memory] = field(default_factory=dict)
    natives: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def schema(self, urn: str) -> Any:
        """Give the self-contained schema of a URN; one that is not registered declares nothing."""
        if urn not in self.catalog.entries:
            return {}
        if urn not in self.schemas:
            self.schemas[urn] = self_contained(self.catalog, urn)
        return self.schemas[urn]


def build_rules(catalog: Catalog, *, quick: bool = True) -> Rules:
    """Compile every schema now, so that a bad registry is an error before the first record."""
    judge = build_judge(catalog)
    for urn in catalog.entries:
        judge.checker(urn)
    return Rules(catalog, judge, compile_quick(catalog) if quick else Quick(None, encode, {}))


def judge_record(rules: Rules, record: Record) -> Judged:
    """Judge one record by the rule itself."""
    body = record.body
    digest = sha256(body).digest()
    unread = (digest, *_halves(digest), _number(digest))
    if record.fault is not None:
        return Judged("refused", "read", record.fault, None, _text(record.reason), *unread)
    try:
        sections = read_sections(record.sections) if record.sections else _NO_SECTIONS
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        return Judged("refused", "sections", "sections.malformed", None, _text(error), *unread)
    broker = BROKERS.get(record.broker or "")
    if broker is not None and not gate_frame(broker.binding, sections):
        reason = "the version property is not one that may be decoded"
        return Judged("refused", "gate", "version", None, reason, *unread)
    try:
        envelope = decode(body)
        document = envelope.document
    except Rejected as fault:
        pointer = None if fault.pointer is None else _text(fault.pointer)
        return Judged("refused", "decode", fault.code, pointer, _text(fault.message), *unread)
    return _judge_envelope(rules, record, envelope, document, sections, digest)


def _judge_envelope(
    rules: Rules,
    record: Record,
    envelope: Envelope,
    document: dict[str, Any],
    sections: Sections,
    digest: bytes,
) -> Judged:
    body = record.body
    broker = BROKERS.get(record.broker or "")
    verdict, stage, code, pointer, reason = "valid", None, None, None, None
    violations: tuple[tuple[str, str, str, str, str], ...] = ()
    fault = reason_not_accepted(envelope)
    if fault is not None:
        place, _, why = fault.partition(": ")
        verdict, stage, code, pointer, reason = "refused", "accept", "not_accepted", place, why
    else:
        try:
            finding = judge_value(rules.judge, document, "")
        except (ValueError, TypeError, RecursionError) as error:
            verdict, stage, code, pointer = "refused", "schema", "unjudgeable", "/data"
            reason = _text(error)
        else:
            if finding.outcome == "unknown":
                verdict = "unknown"
            elif finding.outcome != "ok":
                violations = tuple(
                    (
                        _text(one.pointer),
                        one.keyword,
                        _short(one.expected),
                        _short(one.found),
                        _text(one.message)[:1000],
                    )
                    for one in finding.violations
                )
                verdict, stage = "refused", "schema"
                pointer, code, _, _, reason = violations[0]
    meta = envelope.meta
    schema = rules.schema(envelope.urn)
    same = encode(envelope) == body
    drifts: tuple[Drift, ...] = () if same else body_drifts(envelope)
    attempts = envelope.attempts or 0
    if broker is not None:
        drifts += native_drifts(broker.binding, envelope_facts(envelope), sections)
        attempts = reconcile(broker.binding, envelope.attempts, sections)
    known = envelope.urn in rules.catalog.entries
    memory = rules.memory.setdefault(envelope.urn if known else "", {})
    exposures, declared, undeclared = look(schema, document, memory)
    redactions = plan_envelope(schema, document)
    identity = meta.id if meta else None
    return Judged(
        verdict, stage, code, pointer, reason,
        digest, *_key(identity, digest), _content(envelope, digest),
        envelope.urn, identity, envelope.trace_id,
        meta.lang if meta else None, meta.queue if meta else None,
        meta.schema_version if meta else None, meta.created_at if meta else None,
        envelope.attempts, attempts,
        envelope.dead_letter.reason if envelope.dead_letter else None,
        canonical(document["data"], ("data",)) if document.get("data") is not None else None,
        same, splice(body, redactions) if redactions else body, violations, drifts,
        exposures, declared, undeclared if known else (),
    )  # fmt: skip


def _text(value: object) -> str:
    """Give a text that any table can hold: half a surrogate pair is written as an escape."""
    return str(value).encode("utf-8", "backslashreplace").decode()


def _short(value: Any) -> str:
    text = _text(json.dumps(value, ensure_ascii=False, default=str)) if value is not None else ""
    return text if len(text) <= 200 else f"{text[:197]}..."


def _number(digest: bytes) -> int:
    return int.from_bytes(digest[:8], "big", signed=True)


def _halves(raw: bytes) -> tuple[int, int]:
    """Give 16 bytes as two numbers: engines group by numbers much faster than by bytes."""
    high = int.from_bytes(raw[:8], "big", signed=True)
    return high, int.from_bytes(raw[8:16], "big", signed=True)


def _key(identity: str | None, digest: bytes) -> tuple[int, int]:
    """Give the key that joins what was sent with what was received: the id, else the bytes."""
    if identity is None:
        return _halves(digest)
    if _UUID(identity):
        return _halves(bytes.fromhex(identity.replace("-", "")))
    return _halves(sha256(identity.encode("utf-8", "surrogatepass")).digest())


def _content(envelope: Envelope, digest: bytes) -> int:
    """Give a number that stays the same as long as only attempts and the dead letter change."""
    if envelope.dead_letter is not None:
        return _number(sha256(redrive(envelope.body)).digest())
    if envelope.attempts:
        return _number(sha256(retry(envelope.body, 0)).digest())
    return _number(digest)


def judge_body(rules: Rules, body: bytes) -> str:
    """Give only the verdict on a body, exactly: `valid`, `unknown` or `refused`."""
    quick = rules.quick
    if quick.decode is not None:
        try:
            message = quick.decode(body)
            if quick.encode(message) == body and message.trace_id.strip(ASCII_SPACE):
                return "valid"
        except _QUICK_FAULTS:
            message = None  # doubtful: the rule decides
    try:
        envelope = decode(body)
        document = envelope.document
    except Rejected:
        return "refused"
    if not accepts(envelope):
        return "refused"
    try:
        outcome = judge_value(rules.judge, document, "").outcome
    except (ValueError, TypeError, RecursionError):
        return "refused"
    return {"ok": "valid", "unknown": "unknown"}.get(outcome, "refused")


def judge_records(rules: Rules, records: Iterable[Record]) -> list[Judged]:
    """Judge many records: the quick way where it is sure, else by `judge_record`."""
    if rules.quick.decode is None:
        return [judge_record(rules, record) for record in records]
    return [_judge_quickly(rules, record) or judge_record(rules, record) for record in records]


def _judge_quickly(rules: Rules, record: Record) -> Judged | None:
    """Judge a record, or give None when anything at all is doubtful."""
    quick, body = rules.quick, record.body
    if record.fault is not None:
        return None
    try:
        message = quick.decode(body)  # type: ignore[misc]
        if quick.encode(message) != body:
            return None
    except _QUICK_FAULTS:
        return None
    shape = quick.shapes[type(message)]
    trace_id, meta, attempts = message.trace_id, message.meta, message.attempts
    if attempts < 0 or not shape.maskable:
        return None
    start = body.find(b',"data":') + 8
    data = body[start : body.rfind(b',"meta":{')]
    if shape.has_float and odd_float(data):
        return None
    identity = meta.id
    if not _UUID(identity) or not _UUID(trace_id) or not _plain(meta.queue, meta.lang, shape.urn):
        return None
    if record.sections or record.broker:
        counted = _native_attempts(rules, record, message, shape)
        if counted is None:
            return None
        attempts = counted
    masked = body
    exposures: tuple[Exposure, ...] = ()
    if shape.marked:
        masked, exposures = _mask(quick, message, shape)
        hidden = masked[masked.find(b',"data":') + 8 : masked.rfind(b',"meta":{')]
    else:
        hidden = data
    if _suspicious(hidden):
        return None
    digest = content = sha256(body).digest()
    if message.attempts:
        tail = len(str(message.attempts)) + 1
        content = sha256(body[:-tail] + b"0}").digest()
    raw = bytes.fromhex(identity.replace("-", ""))
    return Judged(
        "valid", None, None, None, None,
        digest, int.from_bytes(raw[:8], "big", signed=True),
        int.from_bytes(raw[8:], "big", signed=True),
        int.from_bytes(content[:8], "big", signed=True),
        shape.urn, identity, trace_id, meta.lang, meta.queue, 1, meta.created_at,
        message.attempts, attempts,
        None, data, True, masked, (), (), exposures,
    )  # fmt: skip


@lru_cache(maxsize=4096)
def _plain(*texts: str) -> bool:
    """Tell that none of some texts looks personal; they are few and come again."""
    return all(looks_personal(text) is None for text in texts)


def _native_attempts(rules: Rules, record: Record, message: Any, shape: Shape) -> int | None:
    """Give the attempts of a delivery whose native fields all agree with its body, else None.

    Native fields mostly differ in the ids and the time alone. Their text with these three taken out
    is remembered: the rules compare values and nothing else, so what held for one message holds for
    the next with the same text. That is sure only as long as the three are different things.
    """
    text, meta = record.sections or "", message.meta
    stamp = str(meta.created_at)
    pattern = None
    if len(stamp) == _MILLISECONDS and meta.id != message.trace_id and not message.attempts:
        trace, own = message.trace_id.encode(), meta.id.encode()
        plain = text.replace(b2a_base64(trace, newline=False).decode(), "\0a")
        plain = plain.replace(b2a_base64(own, newline=False).decode(), "\0b")
        plain = plain.replace(message.trace_id, "\0c").replace(meta.id, "\0d")
        plain = plain.replace(f":{stamp}}}", ":\0e}").replace(f":{stamp},", ":\0e,")
        if stamp not in plain and stamp not in shape.urn and "\0" not in text:
            pattern = (record.broker, shape.urn, meta.queue, meta.lang, plain)
            known = rules.natives.get(pattern)
            if known is not None:
                return known
    found = _compare_natives(record, message, shape)
    if pattern is not None and found is not None and len(rules.natives) < _MOST_NATIVES:
        rules.natives[pattern] = found
    return found


def _compare_natives(record: Record, message: Any, shape: Shape) -> int | None:
    try:
        sections = read_sections(record.sections) if record.sections else _NO_SECTIONS
    except (msgspec.MsgspecError, ValueError, TypeError):
        return None
    broker = BROKERS.get(record.broker or "")
    if broker is None:
        return int(message.attempts)
    binding, meta = broker.binding, message.meta
    if not gate_frame(binding, sections):
        return None
    facts = {
        "urn": shape.urn, "trace_id": message.trace_id, "meta.id": meta.id,
        "meta.queue": meta.queue, "meta.lang": meta.lang, "meta.schema_version": 1,
        "meta.created_at": meta.created_at,
    }  # fmt: skip
    if native_drifts(binding, facts, sections):
        return None
    return reconcile(binding, message.attempts, sections)


def _suspicious(data: bytes) -> bool:
    """Tell whether some value might look personal: then it gets the exact look."""
    if b"@" not in data and b"+" not in data:
        long_number = _LONG_NUMBER in data.translate(_DIGITS, b" -")
        if not long_number and _LONG_CODE not in data.translate(_CAPITALS, b" "):
            return False
    for found in _SCALARS(data):
        text, number = found.groups()
        if text is not None and (b"\\" in text or looks_personal(text.decode()) is not None):
            return True
        if number is not None and looks_personal(int(number)) is not None:
            return True
    return False


def _mask(quick: Quick, message: Any, shape: Shape) -> tuple[bytes, tuple[Exposure, ...]]:
    """Mask the marked fields of a message that conforms; the message is changed."""
    found = [
        Exposure(f"data.{path}" if path else "data", "mark", category)
        for steps, path, category in shape.marked
        if _hide(message.data, steps)
    ]
    return quick.encode(message), tuple(sorted(found))


def _hide(value: Any, steps: tuple[str, ...]) -> bool:
    """Mask what stands at a place below a value; tell whether anything stood there."""
    step, rest = steps[0], steps[1:]
    if step == "[]":
        if rest:
            hits = [_hide(item, rest) for item in value if item is not None]
            return any(hits)
        value[:] = [_stars(item) for item in value]
        return bool(value)
    name = f"f_{step}"
    held = getattr(value, name)
    if held is UNSET:
        return False
    if not rest:
        setattr(value, name, _stars(held))
        return True
    return held is not None and _hide(held, rest)


def _stars(value: Any) -> str:
    if isinstance(value, str) and len(value) >= 4:
        return value[0] + _HIDDEN
    return _HIDDEN
