"""Redis 7.0.15 from Debian's packages.

Every write is appended to a file, so a crash of the process loses nothing (brokers sheet, 3 and
13).
"""

from __future__ import annotations

from typing import Final

from tallystick.brokers.servers.recipe import Debian, Probe, Server

__all__ = ["SERVER"]

_CONFIGURATION: Final = """\
bind $host
port $port_redis
dir $data
protected-mode yes
daemonize no
appendonly yes
appendfsync everysec
save ""
set-proc-title no
"""

SERVER: Final = Server(
    name="redis",
    title="Redis",
    version="7.0.15",
    fetch=Debian(),
    ports=("redis",),
    urls={"redis": "redis://$host:$port_redis/0"},
    files={"redis.conf": _CONFIGURATION},
    command=("$install/usr/bin/redis-server", "$data/redis.conf"),
    environment={"LD_LIBRARY_PATH": "$install/usr/lib/x86_64-linux-gnu"},
    probe=Probe("redis", b"PING\r\n", b"+PONG\r\n"),
    memory=12,
)
