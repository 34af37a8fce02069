"""What both roles of the Python client have: parameters, connections, and how the end came."""

# ruff: noqa: INP001 (a program of its own, not a package)

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from wire import Closed, Link


class Role:
    """What both have: parameters, connections, and how the end came."""

    def __init__(self, client: Any, parameters: Mapping[str, Any]) -> None:
        self.client = client
        self.parameters = parameters
        self.links: list[Link] = []
        self.failure: BaseException | None = None
        self.lock = asyncio.Lock()

    def get(self, name: str, default: Any) -> Any:
        """Give a parameter."""
        return self.parameters.get(name, default)

    async def open_link(self) -> Link:
        """Open a test connection."""
        link = Link(self.client.connection_parameters())
        self.links.append(link)
        return await link.open()

    def trouble(self) -> dict[str, Any]:
        """Say what closed or broke it."""
        closed = self.failure.view if isinstance(self.failure, Closed) else None
        error = "" if closed or self.failure is None else repr(self.failure)
        return {"closed": closed, "error": error}

    async def close(self) -> None:
        """Close all connections."""
        for link in self.links:
            await link.close()


def present(members: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is not there."""
    return {name: value for name, value in members.items() if value is not None}
