"""A small broker that can misbehave."""

from __future__ import annotations

from typing import Final

import pytest

from tallystick.brokers.servers import life
from tallystick.brokers.servers.recipe import Here, Probe, Server

ANSWER: Final = """
import signal, socket, sys
stubborn = "stubborn" in sys.argv
if stubborn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
open(sys.argv[2] + "/started", "a").write("x")
while True:
    peer, _ = listener.accept()
    if peer.recv(5):
        peer.sendall(b"PONG")
    peer.close()
"""
FAKE: Final = Server(
    name="fake",
    title="Fake",
    version="1",
    fetch=Here(),
    ports=("main", "other"),
    urls={"fake": "fake://$host:$port_main"},
    files={"etc/fake.conf": "port=$port_main\n"},
    command=("$python", "-S", "-c", ANSWER, "$port_main", "$data"),
    probe=Probe("main", b"PING\n", b"PONG"),
    memory=1,
)


def serve(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    monkeypatch.setattr(life, "find_server", lambda _name: server)
