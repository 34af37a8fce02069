"""Apache Kafka (clause 6): headers are bytes; `bq-attempts` is authoritative, even when lower.

There is no native count, no native delay and no key by default. Waiting happens in tier topics,
by two rules that are not merged: a requested delay, and a retry (see `tallystick.core.delay`).
"""

from __future__ import annotations

from typing import Final

from tallystick.core.binding import Binding, Count, Extras, Gate
from tallystick.core.delay import DelayRule, RetryRule
from tallystick.core.names import Names
from tallystick.core.settle import SettleRule
from tallystick.core.slot import Field, Slot

__all__ = ["BINDING"]

BINDING: Final = Binding(
    name="kafka",
    slots=(
        Slot("headers", "bq-job", "urn", "bytes"),
        Slot("headers", "bq-trace-id", "trace_id", "bytes"),
        Slot("headers", "bq-message-id", "meta.id", "bytes"),
        Slot("headers", "bq-schema-version", "meta.schema_version", "bytes"),
        Slot("headers", "bq-source-lang", "meta.lang", "bytes"),
        Slot("headers", "bq-attempts", "attempts", "bytes"),
        Slot("record", "timestamp", "meta.created_at", "long"),
        Slot("record", "key", "key", "bytes"),
    ),
    counts=(Count("override", "headers", "bq-attempts"),),
    gate=Gate("headers", "bq-schema-version", ("text", "bytes")),
    extras=Extras("headers", "bytes"),
    delay=DelayRule(
        (
            Slot("record", "topic", "tier.topic", "text"),
            Slot("headers", "bq-delay", "delay.milliseconds", "bytes"),
            Slot("headers", "bq-original-topic", "queue", "bytes"),
        ),
        tier="requested",
    ),
    retry=RetryRule(
        (
            Slot("record", "topic", "tier.topic", "text"),
            Slot("headers", "bq-attempts", "retry.attempts", "bytes"),
            Slot("headers", "bq-delay", "tier.milliseconds", "bytes"),
            Slot("headers", "bq-original-topic", "queue", "bytes"),
        ),
        tier="retry",
    ),
    original=Field("headers", "bq-original-topic"),
    names=Names(
        {
            "work": "{queue}",
            "dead_letter": "{queue}{suffix}",
            "retry": "{queue}.retry.{n}",
            "group": "babelqueue",
            "reinject_group": "babelqueue-retry-reinject",
        }
    ),
    settle=SettleRule(
        gated_off="ack",
        poison_off="tiers",
        verbs={"ack": "commit", "retry": "produce to a tier", "unsettled": "seek back"},
    ),
)
