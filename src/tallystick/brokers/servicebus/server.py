"""Azure Service Bus cannot be downloaded, so this starts our own emulator.

    python -m tallystick.brokers.servicebus.server --host 127.0.0.1 --port 5675 --lock 30

It speaks AMQP 1.0. With `--data FILE` its messages survive a restart. Its version is the version of
Tallystick.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import Final

from tallystick.brokers.servers.recipe import Here, Probe, Server

__all__ = ["SERVER", "main"]

_PROGRAM: Final = "tallystick.brokers.servicebus.server"
_LOCK: Final = 10
"""Seconds that a lock lasts here; the service's own default is 60."""

SERVER: Final = Server(
    name="servicebus",
    title="Azure Service Bus (emulator)",
    version="emulator",
    fetch=Here("artemis"),
    ports=("amqp",),
    urls={
        "sb": "sb://$host:$port_amqp",
        "connection": "Endpoint=sb://$host:$port_amqp;SharedAccessKeyName=RootManageSharedAccessKey;"
        "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;",
    },
    command=("$python", "-m", _PROGRAM, "--host", "$host", "--port", "$port_amqp",
             "--lock", str(_LOCK), "--data", "$data/messages.db"),
    probe=Probe("amqp", b"AMQP\x03\x01\x00\x00", b"AMQP\x03\x01\x00\x00"),
    memory=30,
)  # fmt: skip


def main(words: list[str] | None = None) -> None:
    """Run the emulator until it is stopped."""
    parser = argparse.ArgumentParser(prog=_PROGRAM, description="Azure Service Bus (emulator)")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=5675)
    parser.add_argument(
        "--lock", type=float, default=30.0, help="seconds that a message lock lasts"
    )
    parser.add_argument(
        "--max-deliveries",
        type=int,
        default=10,
        help="number of deliveries before a message goes to the dead-letter queue",
    )
    parser.add_argument("--data", type=Path, help="keep messages in this file (SQLite)")
    given = parser.parse_args(words)
    from tallystick.brokers.servicebus.emulator.entity import Rules  # noqa: PLC0415
    from tallystick.brokers.servicebus.emulator.listener import serve  # noqa: PLC0415
    from tallystick.brokers.servicebus.emulator.space import Space  # noqa: PLC0415
    from tallystick.brokers.servicebus.emulator.store import Store  # noqa: PLC0415

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    store = Store(given.data) if given.data else None
    serve(Space(Rules(given.lock, given.max_deliveries), store=store), given.host, given.port)


if __name__ == "__main__":
    main()
