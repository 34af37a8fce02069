"""The operations of the protocol, each done by the package's own functions.

A function takes `given` and gives `result` (docs/reference/protocol.md). `Rejected` and `Refused`
pass through: the caller turns them into a rejection.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any, Final

from tallystick.core import envelope as envelopes
from tallystick.core import splice
from tallystick.core.canonical import canonical_exact
from tallystick.core.errors import Refused, Rejected
from tallystick.events.subject import EVENT_OPERATIONS
from tallystick.runtime.idempotency import effects
from tallystick.runtime.retry import Backoff, backoff_range
from tallystick.runtime.tracing import extract
from tallystick.schemas.subset import find_violation
from tallystick.suites.broker_operations import BROKER_OPERATIONS, to_bytes, to_text
from tallystick.suites.compare import parse
from tallystick.suites.redis_steps import redis_steps

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["OPERATIONS"]

Given = dict[str, Any]
Result = dict[str, Any]


def _json(value: Any) -> str:
    return to_text(canonical_exact(value))


def _value(given: Given, member: str) -> Any:
    return parse(to_bytes(given, member))


def canonical(given: Given) -> Result:
    """Read a body as a consumer does (decode, then accept), and give its canonical bytes."""
    envelope = envelopes.decode(to_bytes(given))
    reason = envelopes.reason_not_accepted(envelope)
    if reason is not None:
        raise Rejected(reason, code="not_accepted")
    return {"bytes_base64": to_text(envelopes.encode(envelope))}


def decode(given: Given) -> Result:
    """Classify a body, and give the content of a valid one."""
    body = to_bytes(given)
    sorted_as = envelopes.classify(body)
    if sorted_as.verdict != "ok":
        return {"verdict": sorted_as.verdict, "reason": sorted_as.reason}
    envelope = envelopes.decode(body)
    meta = envelope.meta or envelopes.Meta()
    result = {
        "verdict": "ok",
        "reason": envelopes.reason_not_accepted(envelope) or "",
        "accepted": envelopes.accepts(envelope),
        "urn": envelope.urn,
        "attempts": envelope.attempts,
        "lang": meta.lang,
        "schema_version": meta.schema_version,
        "warnings": [notice.pointer for notice in envelope.warnings],
    }
    for member in ("data", "dead_letter"):
        if member in envelope.document:
            result[f"{member}_base64"] = _json(envelope.document[member])
    return result


def reencode(given: Given) -> Result:
    """Decode, set the count, encode; or move it to the dead letters the way a worker does."""
    envelope = envelopes.decode(to_bytes(given))
    body = envelopes.encode(envelopes.replace(envelope, attempts=given["attempts"]))
    if "dead_letter" in given:
        block = given["dead_letter"]
        body = splice.dead_letter(body, _record(block, given["attempts"]))
    warnings = [notice.pointer for notice in envelope.warnings]
    return {"bytes_base64": to_text(body), "warnings": warnings}


def _record(block: Given, attempts: int) -> envelopes.DeadLetter:
    return envelopes.DeadLetter(
        reason=block.get("reason", "poison"),
        error=block.get("error"),
        exception=block.get("exception"),
        failed_at=block.get("failed_at", 0),
        original_queue=block["original_queue"],
        attempts=attempts,
        lang=block.get("lang", "python"),
    )


def make(given: Given) -> Result:
    """Make a new message."""
    meta: dict[str, Any] = {}
    for member in ("meta_base64", "extras_meta_base64"):
        meta |= _value(given, member) if member in given else {}
    for key, value in (
        _value(given, "meta_entries_base64") if "meta_entries_base64" in given else ()
    ):
        if key in meta:
            raise Refused(
                f"the member {key!r} appears twice", code="repeated_member", pointer=f"/meta/{key}"
            )
        meta[key] = value
    envelope = envelopes.make(
        given["urn"],
        _value(given, "data_base64"),
        now_ms=time.time_ns() // 1_000_000,
        new_id=lambda: str(uuid.uuid4()),
        trace_id=given.get("trace_id", ""),
        queue=given["queue"],
        meta=meta,
        extensions=_value(given, "extras_top_base64") if "extras_top_base64" in given else None,
    )
    return {"bytes_base64": to_text(envelopes.encode(envelope))}


def retry(given: Given) -> Result:
    """Change only the count, byte for byte."""
    return {"bytes_base64": to_text(splice.retry(to_bytes(given), given["attempts"]))}


def dead_letter(given: Given) -> Result:
    """Add the dead-letter block."""
    record = _record(given, given["attempts"])
    return {"bytes_base64": to_text(splice.dead_letter(to_bytes(given), record))}


def redrive(given: Given) -> Result:
    """Remove the dead-letter block and set the count to 0."""
    return {"bytes_base64": to_text(splice.redrive(to_bytes(given)))}


def poison_record(given: Given) -> Result:
    """Give the dead-letter record of a body that cannot be decoded."""
    record = _record(given, given.get("attempts", 0))
    return {"bytes_base64": to_text(splice.poison_record(to_bytes(given), record))}


def backoff(given: Given) -> Result:
    """Give the bounds of the wait before a retry."""
    settings = Backoff(
        given["retry_backoff"],
        given["retry_backoff_multiplier"],
        given["retry_backoff_max"],
        given["retry_jitter"],
    )
    shortest, longest = backoff_range(settings, given["n"])
    return {"min": shortest, "max": longest}


def idempotency(given: Given) -> Result:
    """Say which deliveries run and which are skipped, and by which keys."""
    deliveries = [_identified(delivery) for delivery in given["deliveries"]]
    keys = [delivery["meta_id"] or "" for delivery in deliveries]
    return {"effects": effects(deliveries), "keys": keys}


def _identified(delivery: Given) -> Given:
    if "meta_id" in delivery:
        return delivery
    meta = envelopes.decode(to_bytes(delivery)).meta
    return {**delivery, "meta_id": meta.id if meta else None}


def traceparent(given: Given) -> Result:
    """Say which trace a delivery continues."""
    found = extract(given["traceparent"], given["trace_id"])
    members = ("source", "trace_id_hex", "parent_span_id", "flags")
    values = {member: getattr(found, member) for member in members}
    return {member: value for member, value in values.items() if value is not None}


def validate_subset(given: Given) -> Result:
    """Check a payload against a schema of the small subset."""
    violation = find_violation(_value(given, "schema_base64"), _value(given, "data_base64"))
    return {"valid": True} if violation is None else {"valid": False, "violation": violation}


OPERATIONS: Final[dict[str, Callable[[Given], Result]]] = {
    "canonical": canonical,
    "decode": decode,
    "reencode": reencode,
    "make": make,
    "retry": retry,
    "dead_letter": dead_letter,
    "redrive": redrive,
    "poison_record": poison_record,
    "backoff": backoff,
    "idempotency": idempotency,
    "traceparent": traceparent,
    "validate_subset": validate_subset,
    **BROKER_OPERATIONS,
    **EVENT_OPERATIONS,
    "redis_steps": redis_steps,
}
"""Operation -> the function that does it."""
