"""RabbitMQ (clause 2): properties and natively typed headers; attempts are those of the body.

Delays need an `x-delayed-message` exchange and are below 2^32 ms. There is no version gate.
"""

from __future__ import annotations

from typing import Final

from tallystick.core.binding import Binding, Extras
from tallystick.core.delay import DelayRule
from tallystick.core.names import Names
from tallystick.core.settle import SettleRule
from tallystick.core.slot import Constant, Slot

__all__ = ["BINDING"]

BINDING: Final = Binding(
    name="rabbitmq",
    slots=(
        Slot("properties", "type", "urn", "text"),
        Slot("properties", "correlation_id", "trace_id", "text"),
        Slot("properties", "message_id", "meta.id", "text"),
        Slot("properties", "app_id", Constant("babelqueue"), "text"),
        Slot("properties", "content_type", Constant("application/json"), "text"),
        Slot("properties", "content_encoding", Constant("utf-8"), "text"),
        Slot("properties", "delivery_mode", Constant(2), "integer"),
        Slot("headers", "x-schema-version", "meta.schema_version", "integer"),
        Slot("headers", "x-source-lang", "meta.lang", "text"),
        Slot("headers", "x-attempts", "attempts", "integer"),
    ),
    extras=Extras("headers", "text"),
    delay=DelayRule(
        (Slot("headers", "x-delay", "delay.milliseconds", "integer"),),
        maximum=4294967,
        needs="delayed_exchange",
    ),
    names=Names({"work": "{queue}", "dead_letter": "{queue}{suffix}"}),
    settle=SettleRule(
        gated_off="",
        poison_off="bounded",
        verbs={"ack": "basic.ack", "retry": "republish", "unsettled": "no ack"},
    ),
)
