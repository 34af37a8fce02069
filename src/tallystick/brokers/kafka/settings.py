"""Turn a cluster URL into settings of confluent-kafka: address, TLS and login."""

from __future__ import annotations

from typing import Any, Final

from tallystick.brokers.tls import TLS_OPTIONS, Tls, read_tls
from tallystick.core.transport import Address, is_on

__all__ = ["ACCESS", "read_servers", "read_settings"]

ACCESS: Final = ("bootstrap", "tls", "mechanism", "timeout", *TLS_OPTIONS)
"""The options of a URL for address, TLS and login."""


def read_servers(address: Address) -> str:
    """Give the servers to ask first."""
    return address.options.get("bootstrap") or f"{address.host}:{address.port or 9092}"


def read_settings(address: Address) -> tuple[dict[str, Any], Tls | None]:
    """Return the settings of every client of the cluster, and its trusted certificates."""
    settings: dict[str, Any] = {"bootstrap.servers": read_servers(address)}
    secure = is_on(address, "tls", default=address.scheme == "kafka+ssl")
    tls = read_tls(address, secure=secure, instead="kafka+ssl://")
    if tls is not None:
        settings |= {
            "security.protocol": "SSL",
            "enable.ssl.certificate.verification": tls.verify,
            "ssl.endpoint.identification.algorithm": "https" if tls.verify else "none",
            **({"ssl.ca.location": tls.ca} if tls.ca else {}),
        }
    if address.user:
        settings |= {
            "security.protocol": "SASL_SSL" if tls else "SASL_PLAINTEXT",
            "sasl.mechanism": address.options.get("mechanism", "PLAIN"),
            "sasl.username": address.user,
            "sasl.password": address.password,
        }
    return settings, tls
