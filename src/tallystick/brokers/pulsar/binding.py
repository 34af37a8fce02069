"""Apache Pulsar (clause 5): text properties; `bq-attempts` overrides, RedeliveryCount is a minimum.

RedeliveryCount starts at 0, so nothing is subtracted. `bq-job` is the routing key: where it differs
from the body, the property wins.
"""

from __future__ import annotations

from typing import Final

from tallystick.core.binding import Binding, Count, Extras, Gate
from tallystick.core.delay import DelayRule
from tallystick.core.names import Names
from tallystick.core.settle import SettleRule
from tallystick.core.slot import Field, Slot

__all__ = ["BINDING"]

BINDING: Final = Binding(
    name="pulsar",
    slots=(
        Slot("properties", "bq-job", "urn", "text"),
        Slot("properties", "bq-trace-id", "trace_id", "text"),
        Slot("properties", "bq-message-id", "meta.id", "text"),
        Slot("properties", "bq-schema-version", "meta.schema_version", "text"),
        Slot("properties", "bq-source-lang", "meta.lang", "text"),
        Slot("properties", "bq-attempts", "attempts", "text"),
    ),
    counts=(
        Count("override", "properties", "bq-attempts"),
        Count("floor", "message", "redelivery_count"),
    ),
    gate=Gate("properties", "bq-schema-version"),
    extras=Extras("properties", "text"),
    delay=DelayRule(
        (
            Slot("message", "deliver_after", "delay.milliseconds", "long"),
            Slot("properties", "bq-delay", "delay.milliseconds", "text"),
        )
    ),
    route=Field("properties", "bq-job"),
    names=Names(
        {
            "work": "{queue}",
            "topic": "persistent://public/default/{queue}",
            "dead_letter": "{queue}{suffix}",
            "subscription": "babelqueue",
        }
    ),
    settle=SettleRule(
        gated_off="ack",
        poison_off="bounded",
        verbs={"ack": "acknowledge", "retry": "republish", "unsettled": "negative_acknowledge"},
    ),
)
