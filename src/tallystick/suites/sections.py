"""The table of section kinds: `<section>/<sub-block>` -> the function that makes its calls.

A block that names its `operation` itself needs no row. Otherwise the table is searched for the
name as written, then with a `*` for the broker's name. A section without a row is not skipped:
loading fails and says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tallystick.core.errors import Rejected
from tallystick.core.verdict import Case
from tallystick.suites import broker_sections as broker
from tallystick.suites import message_sections as message
from tallystick.suites import redis_sections as redis
from tallystick.suites.judge import STEPS
from tallystick.suites.raw import Ask, Raw
from tallystick.suites.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SECTIONS", "adapt"]


def adapt(name: str, raw: Raw) -> Case:
    """Turn a case of a manifest into a `Case`."""
    asked = _find(raw)(raw)
    clause = str(raw.case.get("source") or raw.case.get("clause") or "")
    asks = [asked] if isinstance(asked, Ask) else asked
    for rule in (rule for one in asks for rule in one.expect):
        if rule not in RULES:
            raise ValueError(f"unknown rule {rule!r}")
    if isinstance(asked, Ask):
        return Case(name, asked.operation, asked.given, asked.expect, clause)
    steps = [{"operation": one.operation, "given": one.given} for one in asked]
    return Case(name, STEPS, {STEPS: steps}, {STEPS: [one.expect for one in asked]}, clause)


def _find(raw: Raw) -> Callable[[Raw], Ask | list[Ask]]:
    if isinstance(raw.block.get("operation"), str):
        return message.operated
    sub = f"/{raw.sub}" if raw.sub else ""
    prefix = raw.section.rsplit("_", maxsplit=1)[0]
    for key in (f"{raw.section}{sub}", f"*{sub}", f"{prefix}_*{sub}", f"{raw.section}/*"):
        if key in SECTIONS and key != "*":
            return SECTIONS[key]
    raise Rejected(
        f"this version of Tallystick cannot run the section {raw.section}{sub}",
        code="unknown_section",
        hint="the suite is newer than Tallystick; upgrade Tallystick",
    )


LIVE_REDIS_BLOCKS: Final = (
    "delayed_score", "migrate", "reserve", "pcall_poison", "release", "processing_sweep",
    "processing_token", "late_ack", "identical_copies", "retry_after_null", "lrem_count",
    "malformed_member", "orphan", "legacy_release_gate", "legacy_dlq_gate",
)  # fmt: skip

SECTIONS: Final[dict[str, Callable[[Raw], Ask | list[Ask]]]] = {
    "bytes/*": message.byte_vector,
    "cases": message.cases,
    "roundtrip": message.roundtrip,
    "data_shape": message.data_shape,
    "forbidden_keys": message.forbidden_keys,
    "encode_reject": message.encode_reject,
    "extension_write": message.extension_write,
    "trim": message.trim,
    "job_type": message.decoding,
    "identity_verdict": message.identity_verdict,
    "kafka_poison": message.three_verdicts,
    "poison_dlq": message.poison_dlq,
    "idempotency/dedup_key": message.dedup_key,
    "idempotency/sequences": message.sequences,
    "payload_schema": message.payload_schema,
    "payload_schema_unicode": message.payload_schema,
    "traceparent": message.traceparent,
    "retry_backoff": message.retry_backoff,
    "*/attribute_projection": broker.projection,
    "*/property_projection": broker.projection,
    "artemis/property_projection": broker.artemis_projection,
    "*/payload_identity": broker.payload_identity,
    "*/attempts_reconciliation": broker.reconciliation,
    "*/schema_version_gate": broker.gate,
    "version_gate_*": broker.version_gate,
    "pulsar_exhaustion": broker.exhaustion,
    "delay": broker.sqs_delay,
    "delay/release_visibility": broker.visibility,
    "backoff": broker.requested_tier,
    "backoff/retry_republish": broker.retry_tier,
    "backoff/retry_attempt_tier": broker.retry_tier,
    "backoff/topic_names": broker.topic_name,
    "backoff/default_tiers": broker.default_tiers,
    "redis_delay": broker.redis_score,
    "redis_layout": broker.redis_names,
    **{f"redis_layout/{block}": redis.live_redis for block in LIVE_REDIS_BLOCKS},
}
"""`<section>/<sub-block>` -> the function that turns its cases into calls."""
