"""Whether the emulator that is part of Tallystick, and what it runs on, is installed."""

from __future__ import annotations

from importlib.util import find_spec

from tallystick.brokers.servers.recipe import Here, Server
from tallystick.core.errors import Unavailable

__all__ = ["check_modules", "missing_modules"]


def missing_modules(server: Server) -> list[str]:
    """Name the modules that it needs and that cannot be imported."""
    wanted = server.fetch.modules if isinstance(server.fetch, Here) else ()
    return [name for name in wanted if find_spec(name) is None]


def check_modules(server: Server) -> None:
    """Raise one clear line if one is missing."""
    if missing := missing_modules(server):
        raise Unavailable(
            f"{server.name} needs the Python module {missing[0]}",
            code="no_module",
            hint=f"pip install 'tallystick[{server.name}]'",
        )
