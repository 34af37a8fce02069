"""A broker by name: `redis` means the Redis that `tally broker up redis` started on this machine.

Everything that takes the URL of a broker or a store takes such a name too, through `resolve_url`:
`App("redis")`, `Outbox("postgresql")`, `tally capture redis orders`. Options may follow the name as
they follow a URL: `redis?laravel=1`.
"""

from __future__ import annotations

from tallystick.brokers.servers.life import status
from tallystick.brokers.servers.table import NAMES
from tallystick.core.errors import UsageError

__all__ = ["resolve_url", "running_url"]


def resolve_url(name_or_url: str) -> str:
    """Return the URL of a broker: a name becomes its URL, any other text is returned unchanged."""
    name, mark, options = name_or_url.partition("?")
    if name not in NAMES:
        return name_or_url
    url = running_url(name)
    if url is None:
        raise UsageError(
            f"{name} is not running on this machine",
            code="url",
            hint=f"start it with `tally broker up {name}`, or give the URL of another one",
        )
    return f"{url}{'&' if '?' in url else '?'}{options}" if mark else url


def running_url(name: str) -> str | None:
    """Return the URL of the broker that runs on this machine under this name, if one does."""
    current = status(name)
    return current.found.url if current.state == "running" and current.found else None
