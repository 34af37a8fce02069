"""Turn the URL of a namespace or an emulator into a client: address, TLS and login."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tallystick.brokers.tls import TLS_OPTIONS, read_tls
from tallystick.core.errors import UsageError
from tallystick.core.extras import importing
from tallystick.core.transport import Address, is_on, read_number

__all__ = ["ACCESS", "read_access", "write_connection"]

ACCESS: Final = ("emulator", "timeout", *TLS_OPTIONS)
"""The options of a URL for address, TLS and login."""

_HERE: Final = ("127.0.0.1", "localhost", "::1")
_NOBODY: Final = ("RootManageSharedAccessKey", "SAS_KEY_VALUE")
"""The login for an emulator, which does not check it."""


def read_access(address: Address) -> Callable[[], Any]:
    """Return a function that opens clients; a missing part of the URL is an error now."""
    host = address.host or _HERE[0]
    emulator = is_on(address, "emulator", default=host in _HERE)
    timeout = read_number(address, "timeout", 30.0)
    with importing("servicebus"):
        from azure.servicebus import ServiceBusClient  # noqa: PLC0415
    tls = read_tls(address, secure=not emulator, instead="emulator=0")
    if tls is not None and not tls.verify:
        raise UsageError(
            "Service Bus needs a checked TLS certificate", code="url_option", hint="pass ca=FILE"
        )
    if not emulator and not (address.user and address.password):
        raise UsageError(
            f"{address}: Service Bus needs a key",
            code="url",
            hint="sb://KEYNAME:KEY@NAMESPACE.servicebus.windows.net, with / + = of the key escaped",
        )
    name, key = (address.user, address.password) if address.user else _NOBODY
    endpoint = f"sb://{host}:{address.port}" if address.port else f"sb://{host}"
    text = write_connection(endpoint, name, key, emulator=emulator)

    trust: dict[str, Any] = {"connection_verify": tls.ca} if tls and tls.ca else {}

    def open_client() -> Any:
        return ServiceBusClient.from_connection_string(
            text,
            retry_total=0,
            socket_timeout=timeout,
            logging_enable=False,
            **trust,
        )

    return open_client


def write_connection(endpoint: str, name: str, key: str, *, emulator: bool) -> str:
    """Write a connection string as the official SDKs read it."""
    parts = {"Endpoint": endpoint, "SharedAccessKeyName": name, "SharedAccessKey": key}
    if emulator:
        parts["UseDevelopmentEmulator"] = "true"
    return "".join(f"{name}={value};" for name, value in parts.items())
