"""Azure Service Bus: no broker that can be fetched, but our own emulator, and named as one.

The emulator is the module `tallystick.brokers.servicebus.server`, run as a program with the
options below; it listens on the loopback address and speaks AMQP 1.0.
"""

from __future__ import annotations

from typing import Final

from tallystick import __version__
from tallystick.brokers.servers.recipe import Here, Probe, Server

__all__ = ["SERVER"]

_PROGRAM: Final = "tallystick.brokers.servicebus.server"

SERVER: Final = Server(
    name="servicebus",
    title="Azure Service Bus (emulator)",
    version=__version__,
    fetch=Here((_PROGRAM, "proton")),
    ports=("amqp",),
    urls={
        "sb": "sb://$host:$port_amqp",
        "connection": "Endpoint=sb://$host:$port_amqp;SharedAccessKeyName=RootManageSharedAccessKey;"
        "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;",
    },
    command=("$python", "-m", _PROGRAM, "--host", "$host", "--port", "$port_amqp",
             "--data", "$data"),
    probe=Probe("amqp", b"AMQP\x03\x01\x00\x00", b"AMQP\x03\x01\x00\x00"),
    memory=25,
)  # fmt: skip
