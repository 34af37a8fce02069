"""Amazon SQS (clause 3): typed message attributes, at most ten in all; receives are counted from 1.

A delay is 1..900 s on a standard queue and refused on FIFO. A release changes the visibility,
0..43200 s, and never sends again. An ordered queue deduplicates by `meta.id`.
"""

from __future__ import annotations

from typing import Final

from tallystick.core.binding import Binding, Count, Extras, Gate
from tallystick.core.delay import DelayRule, VisibilityRule
from tallystick.core.names import Names
from tallystick.core.settle import SettleRule
from tallystick.core.slot import Slot

__all__ = ["BINDING"]

BINDING: Final = Binding(
    name="sqs",
    slots=(
        Slot("message_attributes", "bq-job", "urn", "string_attribute"),
        Slot("message_attributes", "bq-trace-id", "trace_id", "string_attribute"),
        Slot("message_attributes", "bq-message-id", "meta.id", "string_attribute"),
        Slot("message_attributes", "bq-schema-version", "meta.schema_version", "number_attribute"),
        Slot("message_attributes", "bq-source-lang", "meta.lang", "string_attribute"),
        Slot("message_attributes", "bq-created-at", "meta.created_at", "number_attribute"),
        Slot("parameters", "MessageGroupId", "fifo.group", "text"),
        Slot("parameters", "MessageDeduplicationId", "fifo.deduplication", "text"),
    ),
    counts=(Count("floor", "attributes", "ApproximateReceiveCount", 1),),
    gate=Gate("message_attributes", "bq-schema-version"),
    extras=Extras("message_attributes", "string_attribute", limit=10),
    delay=DelayRule(
        (Slot("parameters", "DelaySeconds", "delay.seconds", "integer"),),
        maximum=900,
        fifo=False,
    ),
    visibility=VisibilityRule(0, 43200),
    names=Names(
        {"work": "{queue}{fifo}", "dead_letter": "{queue}{suffix}{fifo}"},
        suffix="-dlq",
        fifo=".fifo",
    ),
    settle=SettleRule(
        gated_off="native",
        poison_off="native",
        verbs={
            "ack": "DeleteMessage",
            "retry": "ChangeMessageVisibility",
            "unsettled": "no DeleteMessage",
            "native": "no DeleteMessage: the RedrivePolicy decides",
        },
    ),
)
