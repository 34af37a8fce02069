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
"""Those that carry no messages: the runtime keeps what it must remember in them."""


def find_server(name: str) -> Server:
    """Give a broker's recipe by name, or say which there are."""
    if name not in _ROWS:
        raise UsageError(
            f"there is no broker {name!r}",
            code="broker",
            hint=f"use one of {', '.join(NAMES)}",
        )
    server: Server = import_module(_ROWS[name]).SERVER
    return server
