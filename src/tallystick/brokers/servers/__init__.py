"""Real brokers on this machine, without Docker and without root.

    with running("redis") as redis:         a private broker, stopped at the end
        connect(redis.url)

    up("kafka"), status("kafka"), down("kafka")     one that keeps running, shared by all processes
    resolve_url("kafka")                            the URL of that one

A broker is a recipe (`brokers/<name>/server.py`), its pins (`pins/<name>.txt`) and a row in
`table.py`. The other modules have no code for a particular broker.
"""

from __future__ import annotations

from tallystick.brokers.servers.download import SILENT, Talk, fetch, is_fetched
from tallystick.brokers.servers.life import LIMIT, Status, down, running, status, up
from tallystick.brokers.servers.named import resolve_url, running_url
from tallystick.brokers.servers.state import Running
from tallystick.brokers.servers.table import NAMES, STORES, find_server

__all__ = [
    "LIMIT", "NAMES", "SILENT", "STORES", "Running", "Status", "Talk", "down", "fetch",
    "find_server", "is_fetched", "resolve_url", "running", "running_url", "status", "up",
]  # fmt: skip
