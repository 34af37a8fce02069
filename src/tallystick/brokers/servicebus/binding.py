"""Azure Service Bus (clause 4): native message fields, AMQP-typed properties; deliveries from 1.

`bq-created-at` must be an AMQP long: epoch milliseconds do not fit an int. The version property is
typed too: an integral 1 of any width is accepted, a floating-point 1.0 or a boolean is not. A key
is the session id: it orders messages in a queue with sessions; other queues only carry it.
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
    name="servicebus",
    slots=(
        Slot("message", "subject", "urn", "text"),
        Slot("message", "correlation_id", "trace_id", "text"),
        Slot("message", "message_id", "meta.id", "text"),
        Slot("message", "content_type", Constant("application/json"), "text"),
        Slot("message", "session_id", "key", "text"),
        Slot("application_properties", "bq-schema-version", "meta.schema_version", "integer"),
        Slot("application_properties", "bq-source-lang", "meta.lang", "text"),
        Slot("application_properties", "bq-created-at", "meta.created_at", "long"),
    ),
    counts=(Count("floor", "message", "delivery_count", 1),),
    gate=Gate("application_properties", "bq-schema-version", ("text", "integer")),
    extras=Extras("application_properties", "text"),
    delay=DelayRule(
        (
            Slot("message", "scheduled_enqueue_time", "delay.due", "long"),
            Slot("application_properties", "bq-delay", "delay.milliseconds", "long"),
        )
    ),
    names=Names(
        {
            "work": "{queue}",
            "dead_letter": "{queue}{suffix}",
            "native_dead_letter": "{queue}/$DeadLetterQueue",
        }
    ),
    settle=SettleRule(
        gated_off="native",
        poison_off="native",
        verbs={
            "ack": "Complete",
            "retry": "republish",
            "unsettled": "Abandon when gated; leave to the lock when poison",
            "native": "DeadLetter: `unsupported schema version` or `poison`",
        },
    ),
)
