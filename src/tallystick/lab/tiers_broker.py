"""A broker for a tier: a private one with empty data that can be restarted, or a running one.

The profile is chosen by the version that the broker reports on connection, not by the recipe.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tallystick.brokers.owner import scratch
from tallystick.brokers.servers import SILENT, Talk, down, up
from tallystick.core.errors import Unavailable
from tallystick.lab.raw import Address, Gone, Refusal, Wire, read_address

__all__ = ["Broker", "ask_version", "at_url", "own_broker"]


@dataclass(frozen=True, slots=True)
class Broker:
    """Where it answers, and how to restart it (which only our own can be)."""

    address: Address
    restart: Callable[[], Awaitable[Address]] | None = None


@contextmanager
def own_broker(name: str, talk: Talk = SILENT) -> Iterator[Broker]:
    """Have a broker on empty data for a while; nothing stays of it."""
    with tempfile.TemporaryDirectory(dir=scratch()) as folder:
        home = Path(folder)

        async def restart() -> Address:
            await asyncio.to_thread(down, name, home=home)
            again = await asyncio.to_thread(up, name, home=home, talk=talk, stays=False)
            return read_address(again.url)

        try:
            server = up(name, fresh=True, home=home, talk=talk, stays=False)
            yield Broker(read_address(server.url), restart)
        finally:
            down(name, wipe=True, home=home, limit=0.0)


def at_url(url: str) -> Broker:
    """Use a running broker; it cannot be restarted."""
    return Broker(read_address(url))


async def ask_version(address: Address) -> str:
    """Give the version the broker says in its greeting."""
    try:
        wire = await Wire.open(address)
    except (OSError, TimeoutError, Refusal, Gone) as error:
        raise Unavailable(
            f"no broker answers at {address.host}:{address.port}: {error}",
            code="broker",
            hint="start one with `tally broker up NAME`, or leave out --url",
        ) from error
    await wire.close()
    return str(wire.server.get("version", ""))
