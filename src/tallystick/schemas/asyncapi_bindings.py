"""The AsyncAPI bindings of each protocol, as a table.

Only protocols whose bindings may say something stand here; redis and amqp1 (Service Bus, Artemis)
have empty ones. The versions are those that the schema of AsyncAPI 3.0 and 3.1 allows: sqs is held
at 0.2.0. Names are derived as in `check_names`; what a row says is how the envelope travels there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tallystick.schemas.check_names import kafka_topic, sqs_queue

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BINDINGS"]

Rows = dict[str, "Callable[[str], dict[str, Any]]"]
"""Place (`channel`, `message`, `send`, `receive`) -> what it says about a URN."""

_AMQP_QUEUE: Final = {"durable": True, "exclusive": False, "autoDelete": False, "vhost": "/"}

BINDINGS: Final[dict[str, tuple[str, Rows]]] = {
    "kafka": ("0.5.0", {
        "channel": lambda urn: {"topic": kafka_topic(urn)},
        "receive": lambda _: {"groupId": {"type": "string", "enum": ["babelqueue"]}},
    }),
    "amqp": ("0.3.0", {
        "channel": lambda urn: {"is": "queue", "queue": {"name": urn, **_AMQP_QUEUE}},
        "message": lambda urn: {"contentEncoding": "utf-8", "messageType": urn},
        "send": lambda _: {"deliveryMode": 2},
        "receive": lambda _: {"ack": True},
    }),
    "sqs": ("0.2.0", {
        "channel": lambda urn: {"queue": {"name": sqs_queue(urn), "fifoQueue": False}},
    }),
    "pulsar": ("0.1.0", {
        "channel": lambda _: {"namespace": "default", "persistence": "persistent"},
    }),
    "jms": ("0.0.1", {
        "channel": lambda urn: {"destination": urn, "destinationType": "queue"},
    }),
}  # fmt: skip
"""Protocol -> (the version of its bindings, its rows)."""
