"""The definition of the verdict on one captured record, without Spark.

`judge_record` is the rule. It uses `core` (decode, accept, attempts, canonical bytes) and `schemas`
(validate, mask) and gives one row. A record is refused at the first stage that rejects it:

    read      no frame could be read there           gate     the version property says no
    sections  the native fields cannot be read       decode   the contract's decoder rejects it
    accept    a consumer may not handle it           schema   its data violates its schema

A URN that is not registered is not a fault of the message: its verdict is `unknown`. `judge_many`
gives the same rows faster, and uses `quick` where `quick` is certain.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tallystick.brokers import BROKERS
from tallystick.core.binding import envelope_facts, gate_frame, reconcile
from tallystick.core.canonical import canonical
from tallystick.core.capture import read_sections
from tallystick.core.envelope import (
    Envelope,
    decode,
    encode,
    reason_not_accepted,
)
from tallystick.core.errors import Refused, Rejected
from tallystick.core.splice import redrive, retry
from tallystick.pipeline.capture import Record
from tallystick.pipeline.drifts import Drift, body_drifts, native_drifts
from tallystick.pipeline.exposures import Exposure, Memory, look
from tallystick.pipeline.quick import Quick, compile_quick
from tallystick.schemas.catalog import Catalog, self_contained
from tallystick.schemas.mask import plan_envelope, splice
from tallystick.schemas.validate import Judge, build_judge, judge_value

if TYPE_CHECKING:
    from tallystick.core.frame import Sections

__all__ = ["UUID", "Judged", "Rules", "build_rules", "judge_record"]

UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
_NO_SECTIONS: Final[dict[str, dict[str, Any]]] = {}


class Judged(NamedTuple):
    """One row: the verdict, the decoded message, and all other columns."""

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
    """The rules for records: the catalog with its compiled schemas, and the fast path."""

    catalog: Catalog
    judge: Judge
    quick: Quick
    schemas: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, Memory] = field(default_factory=dict)
    natives: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def schema(self, urn: str) -> Any:
        """Return the bundled schema of a URN; an unregistered URN declares nothing."""
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
    except Rejected as error:
        return Judged("refused", "sections", "sections.malformed", None, _text(error), *unread)
    broker = BROKERS.get(record.broker or "")
    if broker is not None and not gate_frame(broker.binding, sections):
        reason = "the schema version property has a value that must not be decoded"
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
    same = _is_canonical(envelope)
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


def _is_canonical(envelope: Envelope) -> bool:
    """Tell whether a body is its own canonical form; a number beyond a double has none."""
    try:
        return encode(envelope) == envelope.body
    except Refused:
        return False


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
    """Return the key that joins sent and received messages: the id, else the bytes."""
    if identity is None:
        return _halves(digest)
    if UUID(identity):
        return _halves(bytes.fromhex(identity.replace("-", "")))
    return _halves(sha256(identity.encode("utf-8", "surrogatepass")).digest())


def _content(envelope: Envelope, digest: bytes) -> int:
    """Give a number that stays the same as long as only attempts and the dead letter change."""
    if envelope.dead_letter is not None:
        return _number(sha256(redrive(envelope.body)).digest())
    if envelope.attempts:
        return _number(sha256(retry(envelope.body, 0)).digest())
    return _number(digest)
