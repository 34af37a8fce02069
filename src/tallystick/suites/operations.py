"""The operations of the subject protocol, each done by the package's own functions.

A function takes `given` and gives `result` (docs/reference/protocol.md). `Rejected` and `Refused`
pass through: the subject turns them into a rejection.
"""

from __future__ import annotations

import base64
import json
import time
import uuid
from typing import TYPE_CHECKING, Any, Final

from tallystick.brokers import find_binding
from tallystick.core import binding as bindings
from tallystick.core import delay as delays
from tallystick.core import envelope as envelopes
from tallystick.core import splice
from tallystick.core.errors import Refused
from tallystick.core.names import name, names
from tallystick.core.settle import (
    MAX_ATTEMPTS,
    Settlement,
    exhaust,
    settle_gated,
    settle_poison,
)
from tallystick.core.slot import TYPES, native_type
from tallystick.runtime.dead_letter import original_queue
from tallystick.runtime.idempotency import effects
from tallystick.runtime.retry import Backoff, backoff_range
from tallystick.runtime.tracing import extract
from tallystick.schemas.subset import find_violation
from tallystick.suites.compare import parse
from tallystick.suites.redis_steps import redis_steps

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["OPERATIONS"]

Given = dict[str, Any]
Result = dict[str, Any]


def _bytes(given: Given, member: str = "body_base64") -> bytes:
    return base64.b64decode(given[member], validate=True)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _json(value: Any) -> str:
    return _text(json.dumps(value, separators=(",", ":")).encode())


def _value(given: Given, member: str) -> Any:
    return parse(_bytes(given, member))


def canonical(given: Given) -> Result:
    """Give the canonical bytes of a message."""
    return {"bytes_base64": _text(envelopes.encode(envelopes.decode(_bytes(given))))}


def decode(given: Given) -> Result:
    """Sort a body, and say what a good one holds."""
    body = _bytes(given)
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
    envelope = envelopes.decode(_bytes(given))
    body = envelopes.encode(envelopes.replace(envelope, attempts=given["attempts"]))
    if "dead_letter" in given:
        block = given["dead_letter"]
        body = splice.dead_letter(body, _record(block, given["attempts"]))
    warnings = [notice.pointer for notice in envelope.warnings]
    return {"bytes_base64": _text(body), "warnings": warnings}


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
            raise Refused(f"{key!r} is given twice", code="repeated_member", pointer=f"/meta/{key}")
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
    return {"bytes_base64": _text(envelopes.encode(envelope))}


def retry(given: Given) -> Result:
    """Change only the count, byte for byte."""
    return {"bytes_base64": _text(splice.retry(_bytes(given), given["attempts"]))}


def dead_letter(given: Given) -> Result:
    """Add the dead-letter block."""
    record = _record(given, given["attempts"])
    return {"bytes_base64": _text(splice.dead_letter(_bytes(given), record))}


def redrive(given: Given) -> Result:
    """Take the dead-letter block away and start the count again."""
    return {"bytes_base64": _text(splice.redrive(_bytes(given)))}


def poison_record(given: Given) -> Result:
    """Give the dead-letter record of a body that cannot be decoded."""
    record = _record(given, given.get("attempts", 0))
    return {"bytes_base64": _text(splice.poison_record(_bytes(given), record))}


def project(given: Given) -> Result:
    """Give what the broker natively carries."""
    frame = bindings.project(
        find_binding(given["broker"]),
        envelopes.decode(_bytes(given)),
        **given.get("options", {}),
    )
    types = {
        f"/{section}/{key}": native_type(value)
        for section, fields in frame.sections.items()
        for key, value in fields.items()
    }
    carried = {"sections": _readable(frame.sections), "body_base64": _text(frame.body)}
    return {**carried, "types": types}


def _readable(value: Any) -> Any:
    """Give native values as JSON can carry them: bytes as UTF-8 text."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {key: _readable(inner) for key, inner in value.items()}
    return value


def reconcile(given: Given) -> Result:
    """Give the attempts of a delivery."""
    binding = find_binding(given["broker"])
    attempts = bindings.reconcile(binding, given.get("body_attempts"), given.get("native", {}))
    return {"attempts": attempts}


def gate(given: Given) -> Result:
    """Say whether a body may be decoded, from a delivery with this version property."""
    binding = find_binding(given["broker"])
    rule = binding.gate
    if rule is None or given.get("absent"):
        return {"decode": bindings.gate_frame(binding, {})}
    carrier = next(s for s in binding.slots if (s.section, s.key) == (rule.section, rule.key))
    value = given["value"]
    if given.get("value_type") == "double":
        value = float(value)
    if isinstance(value, str) and carrier.type != "integer":
        value = TYPES[carrier.type].write(value)
    return {"decode": bindings.gate_frame(binding, {rule.section: {rule.key: value}})}


def settle(given: Given) -> Result:
    """Say how a delivery that the gate turned away ends, and what is written."""
    outcome = settle_gated(
        find_binding(given["broker"]).settle,
        given.get("on_unknown_urn"),
        given["dead_letter"] == "on",
        dlq_write=given.get("dlq_write", "ok"),
    )
    record = {"record_base64": given["body_base64"]} if outcome == "dlq_raw" else {}
    return {"outcome": outcome, **record}


def exhaustion(given: Given) -> Result:
    """Say how a delivery that failed ends."""
    binding = find_binding(given["broker"])
    attempts = bindings.reconcile(binding, given.get("body_attempts"), given.get("native", {}))
    ended = exhaust(
        binding.settle,
        given["kind"],
        attempts,
        strategy=given.get("on_unknown_urn"),
        dead_letter=given["dead_letter"],
        max_attempts=given.get("max_attempts", MAX_ATTEMPTS),
    )
    return _ended(ended)


def _ended(ended: Settlement) -> Result:
    if ended.reason is None:
        return {"outcome": ended.outcome}
    return {"outcome": ended.outcome, "reason": ended.reason, "attempts": ended.attempts}


def poison(given: Given) -> Result:
    """Say how a poison body ends."""
    options = {key: given[key] for key in ("dlq_write", "writer", "tiers") if key in given}
    binding = find_binding(given["broker"])
    ended = settle_poison(
        binding.settle,
        bindings.reconcile(binding, given.get("body_attempts"), given.get("native", {})),
        strategy=given.get("on_unknown_urn"),
        dead_letter=given["dead_letter"],
        max_attempts=given.get("max_attempts", MAX_ATTEMPTS),
        **options,
    )
    return _ended(ended)


def origin(given: Given) -> Result:
    """Give the `original_queue` of a dead letter."""
    queue = original_queue(
        find_binding(given["broker"]),
        given["meta_queue"],
        given["consumed"],
        given.get("native", {}),
    )
    return {"original_queue": queue}


def route(given: Given) -> Result:
    """Give the URN by which a delivery is routed."""
    binding, envelope = find_binding(given["broker"]), envelopes.decode(_bytes(given))
    return {"urn": bindings.route(binding, given.get("native", {}), envelope.urn)}


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


def delay(given: Given) -> Result:
    """Give the native fields of a delayed publish."""
    fifo = {"fifo": given["queue_type"] == "fifo"} if "queue_type" in given else {}
    sections = bindings.delay_fields(
        find_binding(given["broker"], given.get("layout", "")),
        given["delay_seconds"],
        now=given.get("now", 0),
        delayed_exchange=given.get("delayed_exchange", False),
        **fifo,
    )
    fields = {key: value for section in sections.values() for key, value in section.items()}
    return {"fields": _readable(fields)}


def visibility(given: Given) -> Result:
    """Give the visibility timeout of a release."""
    rule = find_binding(given["broker"]).visibility
    return {"visibility_timeout": delays.visibility(rule, given["delay_seconds"])}


def tier(given: Given) -> Result:
    """Pick a retry topic, by one of two rules; or name one; or give the default list."""
    return _TIER_MODES[given["mode"]](given)


def _requested_tier(given: Given) -> Result:
    picked = delays.requested_tier(given["tiers_ms"], given["delay_ms"])
    sections = bindings.delay_fields(
        find_binding("kafka"),
        given["delay_ms"] / 1000,
        queue=given["topic"],
        tiers_ms=given["tiers_ms"],
    )
    return _parked(_readable(sections), picked)


def _retry_tier(given: Given) -> Result:
    before = given["attempts"]
    picked = delays.retry_tier(given["tiers_ms"], before)
    message = envelopes.make("urn:tallystick:retry", {}, now_ms=0, new_id=lambda: "id")
    frame = bindings.project(
        find_binding("kafka"),
        envelopes.replace(message, attempts=before + 1),
        queue=given["topic"],
        tiers_ms=given["tiers_ms"],
        attempts_before=before,
        key=_bytes(given, "key_base64") if "key_base64" in given else None,
    )
    key = frame.get("record", "key")
    parked = _parked(_readable(frame.sections), picked)
    parked["attempts"] = envelopes.decode(frame.body).attempts
    return parked if key is None else {**parked, "key_base64": _text(key)}


def _parked(sections: dict[str, dict[str, Any]], picked: delays.Tier) -> Result:
    headers = sections["headers"]
    return {
        "topic": sections["record"]["topic"],
        "tier_ms": picked.milliseconds,
        "headers": headers,
    }


def _topic_name(given: Given) -> Result:
    return {"topic": name(find_binding("kafka").names, "retry", given["topic"], n=given["n"])}


def _default_tiers(_given: Given) -> Result:
    return {"tiers_ms": list(delays.DEFAULT_RETRY_TIERS_MS)}


_TIER_MODES: Final[dict[str, Callable[[Given], Result]]] = {
    "requested": _requested_tier,
    "retry": _retry_tier,
    "name": _topic_name,
    "default": _default_tiers,
}


def names_of(given: Given) -> Result:
    """Say what a broker calls the keys, topics and queues of a queue."""
    table = find_binding(given["broker"], given.get("layout", "")).names
    options = {key: given[key] for key in ("suffix", "prefix", "fifo") if key in given}
    return {"keys": names(table, given["queue"], **options)}


def redis_score(given: Given) -> Result:
    """Give the score of a delayed member."""
    return {"score": delays.score(given["now"], given["delay"])}


def idempotency(given: Given) -> Result:
    """Say which deliveries run and which are skipped, and by which keys."""
    deliveries = [_identified(delivery) for delivery in given["deliveries"]]
    keys = [delivery["meta_id"] or "" for delivery in deliveries]
    return {"effects": effects(deliveries), "keys": keys}


def _identified(delivery: Given) -> Given:
    if "meta_id" in delivery:
        return delivery
    meta = envelopes.decode(_bytes(delivery)).meta
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
    "project": project,
    "reconcile": reconcile,
    "gate": gate,
    "settle_gated": settle,
    "exhaustion": exhaustion,
    "settle_poison": poison,
    "original_queue": origin,
    "route": route,
    "backoff": backoff,
    "delay": delay,
    "visibility": visibility,
    "tier": tier,
    "names": names_of,
    "redis_score": redis_score,
    "idempotency": idempotency,
    "traceparent": traceparent,
    "validate_subset": validate_subset,
    "redis_steps": redis_steps,
}
"""Operation -> the function that does it."""
