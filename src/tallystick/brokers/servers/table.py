"""Every broker that can be started here: a name, and the module that holds its recipe."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from tallystick.brokers.servers.recipe import Server
from tallystick.core.errors import UsageError

__all__ = ["NAMES", "STORES", "find_server"]

_ROWS: Final[Mapping[str, str]] = {
    "redis": "tallystick.brokers.redis.server",
    "rabbitmq": "tallystick.brokers.rabbitmq.server",
    "kafka": "tallystick.brokers.kafka.server",
    "pulsar": "tallystick.brokers.pulsar.server",
    "sqs": "tallystick.brokers.sqs.server",
    "artemis": "tallystick.brokers.artemis.server",
    "qpid": "tallystick.brokers.qpid.server",
    "servicebus": "tallystick.brokers.servicebus.server",
    "postgresql": "tallystick.brokers.postgresql.server",
}

NAMES: Final = tuple(_ROWS)

STORES: Final = ("postgresql",)
"""Servers that carry no messages: the runtime stores its data in them."""


def find_server(name: str) -> Server:
    """Return the recipe of a broker, or raise an error with the known names."""
    if name not in _ROWS:
        raise UsageError(
            f"there is no broker {name!r}",
            code="broker",
            hint=f"use one of {', '.join(NAMES)}",
        )
    server: Server = import_module(_ROWS[name]).SERVER
    return server
