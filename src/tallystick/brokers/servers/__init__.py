"""Real brokers on this machine, without Docker and without root.

    with running("redis") as redis:         a broker of one's own, gone at the end
        connect(redis.url)

    up("kafka"), status("kafka"), down("kafka")     one that stays, shared by all processes

A broker is a recipe (`brokers/<name>/server.py`), its pins (`pins/<name>.txt`) and a row in
`table.py`. Nothing here knows one broker from another.
"""

from __future__ import annotations

from tallystick.brokers.servers.download import SILENT, Talk, fetch, is_fetched
from tallystick.brokers.servers.life import LIMIT, Status, down, running, status, up
from tallystick.brokers.servers.state import Running
from tallystick.brokers.servers.table import NAMES, STORES, find_server

__all__ = [
    "LIMIT", "NAMES", "SILENT", "STORES", "Running", "Status", "Talk", "down", "fetch",
    "find_server", "is_fetched", "running", "status", "up",
]  # fmt: skip
