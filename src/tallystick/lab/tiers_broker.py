"""A broker for a tier: one of our own on empty data that can be restarted, or one that is there.

The profile follows the version the broker itself says when one connects to it, not the recipe.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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
    with tempfile.TemporaryDirectory(prefix="tally-") as folder:
        home = Path(folder)

        async def restart() -> Address:
            await asyncio.to_thread(down, name, home=home)
            again = await asyncio.to_thread(up, name, home=home, talk=talk)
            return read_address(again.url)

        try:
            yield Broker(read_address(up(name, fresh=True, home=home, talk=talk).url), restart)
        finally:
            down(name, wipe=True, home=home, limit=0.0)


def at_url(url: str) -> Broker:
    """Use a broker that runs already; it is not ours to restart."""
    return Broker(read_address(url))


async def ask_version(address: Address) -> str:
    """Give the version the broker says in its greeting."""
    try:
        wire = await Wire.open(address)
    except (OSError, TimeoutError, Refusal, Gone) as error:
        raise Unavailable(
            f"no broker at {address.host}:{address.port}: {error}",
            code="broker",
            hint="tally broker up NAME, or leave --url away",
        ) from error
    await wire.close()
    return str(wire.server.get("version", ""))
