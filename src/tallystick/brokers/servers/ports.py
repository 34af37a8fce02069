"""Choose free ports on the loopback address: the ports of the last run if they are still free.

The ports are below the range that the kernel uses for outgoing connections. So a client that tries
to connect while the broker is down cannot occupy its port.
"""

from __future__ import annotations

import errno
import json
import secrets
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tallystick.brokers.servers.recipe import HOST
from tallystick.core.errors import Unavailable, UsageError

__all__ = ["choose_ports", "is_free", "read_ports", "write_ports"]

_LOWEST: Final = 20_000
_COUNT: Final = 12_000


def is_free(port: int) -> bool:
    """Return whether a server can listen on the port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
    return True


def choose_ports(
    names: Sequence[str], before: Mapping[str, int], wanted: int | None = None
) -> dict[str, int]:
    """Choose a free port for every name: the requested one, the earlier one, or any."""
    chosen: dict[str, int] = {}
    if wanted is not None:
        _demand(wanted)
        chosen[names[0]] = wanted
    for name in names:
        if name in chosen:
            continue
        port = before.get(name)
        while port is None or port in chosen.values() or not is_free(port):
            port = _LOWEST + secrets.randbelow(_COUNT)
        chosen[name] = port
    return chosen


def _demand(port: int) -> None:
    if not 0 < port < 65_536:
        raise UsageError(f"{port} is not a port", code="port", hint="use 1 to 65535")
    if not is_free(port):
        raise Unavailable(
            f"port {port} is in use", code="port_in_use", hint="leave out --port, or free the port"
        )


def read_ports(path: Path) -> dict[str, int]:
    """Read the ports of the last run; none if there was no last run."""
    if not path.exists():
        return {}
    ports: dict[str, int] = json.loads(path.read_text(encoding="utf-8"))
    return ports


def write_ports(path: Path, ports: Mapping[str, int]) -> None:
    """Save the ports for the next run."""
    path.write_text(json.dumps(ports), encoding="utf-8")
