"""ActiveMQ Artemis (clause 7): the fields that a JMS peer reads over AMQP 1.0.

JMS names are Java identifiers, so `bq_schema_version`. All properties are strings. The AMQP
delivery-count starts at 0; a JMS peer reports JMSXDeliveryCount from 1. `meta.id` is not projected.
"""

from __future__ import annotations

from typing import Final

from tallystick.core.binding import Binding, Count, Extras, Gate
from tallystick.core.delay import DelayRule
from tallystick.core.names import Names
from tallystick.core.settle import SettleRule
from tallystick.core.slot import Constant, Slot

__all__ = ["BINDING"]

BINDING: Final = Binding(
    name="artemis",
    slots=(
        Slot("annotations", "x-opt-jms-type", "urn", "text"),
        Slot("properties", "correlation-id", "trace_id", "text"),
        Slot("properties", "creation-time", "meta.created_at", "long"),
        Slot("application_properties", "bq_schema_version", "meta.schema_version", "text"),
        Slot("application_properties", "bq_source_lang", "meta.lang", "text"),
        Slot("application_properties", "bq_attempts", "attempts", "text"),
        Slot("application_properties", "bq_app_id", Constant("babelqueue"), "text"),
    ),
    counts=(
        Count("floor", "header", "delivery-count"),
        Count("floor", "application_properties", "JMSXDeliveryCount", 1),
    ),
    gate=Gate("application_properties", "bq_schema_version", ("text", "bytes", "integer")),
    extras=Extras("application_properties", "text", hyphen="_"),
    delay=DelayRule(
        (
            Slot("annotations", "x-opt-delivery-time", "delay.due", "long"),
            Slot("application_properties", "bq_delay", "delay.milliseconds", "text"),
        )
    ),
    names=Names({"work": "{queue}", "dead_letter": "{queue}{suffix}"}),
    settle=SettleRule(
        gated_off="ack",
        poison_off="bounded",
        verbs={"ack": "accepted", "retry": "republish", "unsettled": "released"},
    ),
)
