"""The broker bindings: one folder and one row per broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tallystick.brokers.artemis.binding import BINDING as ARTEMIS
from tallystick.brokers.kafka.binding import BINDING as KAFKA
from tallystick.brokers.memory.binding import BINDING as MEMORY
from tallystick.brokers.pulsar.binding import BINDING as PULSAR
from tallystick.brokers.rabbitmq.binding import BINDING as RABBITMQ
from tallystick.brokers.redis.binding import BINDING as REDIS
from tallystick.brokers.redis.binding import LAYOUTS
from tallystick.brokers.servicebus.binding import BINDING as SERVICEBUS
from tallystick.brokers.sqs.binding import BINDING as SQS
from tallystick.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tallystick.core.binding import Binding

__all__ = ["BROKERS", "Broker", "find_binding"]


@dataclass(frozen=True, slots=True)
class Broker:
    """One row: the title of the broker, its binding, its URL schemes, and other layouts."""

    title: str
    binding: Binding
    schemes: tuple[str, ...]
    layouts: Mapping[str, Binding]


BROKERS: Final[Mapping[str, Broker]] = {
    "memory": Broker("Memory", MEMORY, ("memory",), {}),
    "redis": Broker("Redis", REDIS, ("redis", "rediss"), LAYOUTS),
    "rabbitmq": Broker("RabbitMQ", RABBITMQ, ("amqp", "amqps"), {}),
    "sqs": Broker("Amazon SQS", SQS, ("sqs",), {}),
    "servicebus": Broker(
        "Azure Service Bus", SERVICEBUS, ("sb", "servicebus", "azureservicebus"), {}
    ),
    "pulsar": Broker("Apache Pulsar", PULSAR, ("pulsar", "pulsar+ssl"), {}),
    "kafka": Broker("Apache Kafka", KAFKA, ("kafka", "kafka+ssl"), {}),
    "artemis": Broker("ActiveMQ Artemis", ARTEMIS, ("artemis", "artemis+ssl"), {}),
}


def find_binding(broker: str, layout: str = "") -> Binding:
    """Return the binding of a broker, in the given layout, or raise an error with the names."""
    if broker not in BROKERS:
        hint = f"use one of {', '.join(BROKERS)}"
        raise UsageError(f"unknown broker {broker!r}", code="broker", hint=hint)
    row = BROKERS[broker]
    if layout and layout not in row.layouts:
        known = ", ".join(row.layouts) or "none"
        raise UsageError(
            f"{broker} has no layout {layout!r}", code="layout", hint=f"its layouts: {known}"
        )
    return row.layouts[layout] if layout else row.binding
