"""Ask a broker, in its own protocol, whether it is ready. An open port is not enough."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Final

from tallystick.brokers.servers.recipe import HOST, Probe

__all__ = ["answers"]

_PATIENCE: Final = 2.0
_ENOUGH: Final = 4096


def answers(probe: Probe, ports: Mapping[str, int]) -> bool:
    """Send the request; return whether the answer is right. Never raises for a closed port."""
    expected = probe.at + len(probe.expect)
    answer = b""
    try:
        with socket.create_connection((HOST, ports[probe.port]), timeout=_PATIENCE) as peer:
            peer.sendall(probe.send)
            while len(answer) < expected:
                chunk = peer.recv(_ENOUGH)
                if not chunk:
                    break
                answer += chunk
    except OSError:
        return False
    return answer[probe.at : expected] == probe.expect
