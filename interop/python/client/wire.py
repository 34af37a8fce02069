"""What the Python client needs of AMQP: a connection one can await, and values as tagged JSON.

pika calls back; `Link.call` turns that into something to await, and raises `Closed` when the broker
closes the channel or the connection meanwhile, with its code and text.
"""

# ruff: noqa: INP001 (a program of its own, not a package)

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pika
from pika.adapters.asyncio_connection import AsyncioConnection
from pika.compat import long

BLOCK = 65521
STRIDE = 257


class Closed(Exception):
    """The broker closed a channel or a connection."""

    def __init__(self, level: str, error: BaseException) -> None:
        code = getattr(error, "reply_code", 0)
        text = getattr(error, "reply_text", "") or str(error) or type(error).__name__
        super().__init__(text)
        self.view = {"level": level, "code": code, "text": text}


class Link:
    """One connection. `closed` is done when the broker closed any of it."""

    def __init__(self, parameters: pika.ConnectionParameters) -> None:
        loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[Closed] = loop.create_future()
        self._gone: asyncio.Future[None] = loop.create_future()
        self._opened: asyncio.Future[Any] = loop.create_future()
        self.connection = AsyncioConnection(
            parameters, self._opened.set_result, self._on_error, self._on_close
        )

    async def open(self) -> Link:
        """Wait until it is open."""
        await self._opened
        return self

    def _on_error(self, _connection: Any, error: BaseException) -> None:
        self._opened.set_exception(OSError(f"cannot connect: {error!r}"))

    def _on_close(self, _connection: Any, error: BaseException) -> None:
        self._note("connection", error)
        if not self._gone.done():
            self._gone.set_result(None)

    def _note(self, level: str, error: BaseException) -> None:
        """Keep how it was closed; a connection's close comes to its channels first."""
        if isinstance(error, pika.exceptions.ConnectionClosed):
            level = "connection"
        if not self.closed.done():
            self.closed.set_result(Closed(level, error))

    async def channel(self) -> Any:
        """Open a channel."""
        channel = await self.call(self.connection.channel, name="on_open_callback")
        channel.add_on_close_callback(lambda _channel, error: self._note("channel", error))
        return channel

    async def call(self, method: Callable[..., Any], *given: Any, name: str = "callback",
                   **named: Any) -> Any:  # fmt: skip
        """Call a method of pika and wait for the broker's answer."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        named[name] = lambda value: answer.done() or answer.set_result(value)
        self.check()
        method(*given, **named)
        return await self.wait(answer)

    async def wait(self, answer: asyncio.Future[Any]) -> Any:
        """Wait for a future, unless the broker closes first."""
        await asyncio.wait({answer, self.closed}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            self.check()
        return answer.result()

    def check(self) -> None:
        """Raise what closed it."""
        if self.closed.done():
            raise self.closed.result()

    async def close(self) -> None:
        """Close and wait until it is gone."""
        if self.connection.is_open:
            self.connection.close()
        if not self._gone.done() and self._opened.done() and not self._opened.exception():
            await asyncio.wait({self._gone})


@lru_cache(maxsize=64)
def block(seed: int) -> bytes:
    """Make the bytes all bodies of a seed are cut from."""
    state = seed & 0x7FFFFFFF
    made = bytearray()
    for _ in range(BLOCK):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        made.append((state >> 16) & 0xFF)
    return bytes(made)


def make_body(seed: int, sequence: int, size: int) -> bytes:
    """Give the body of one message."""
    source = block(seed)
    first = sequence * STRIDE % BLOCK
    return (source[first:] + source * (size // BLOCK + 1))[:size]


def first_difference(one: bytes, other: bytes) -> int:
    """Give the offset where two bodies part."""
    shorter = min(len(one), len(other))
    return next((at for at in range(shorter) if one[at] != other[at]), shorter)


def write_runs(numbers: Iterable[int]) -> str:
    """Write numbers in their order as runs: 0-3,5."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def untag(value: list[Any]) -> Any:
    """Give the value pika writes with this tag, as far as it can."""
    match value:
        case ["t", flag]:
            return bool(flag)
        case ["I", text]:
            return int(text)
        case ["l", text]:
            return long(text)
        case ["D", scale, text]:
            return Decimal(int(text)).scaleb(-int(scale))
        case ["d", text]:
            return struct.unpack(">d", int(text, 16).to_bytes(8, "big"))[0]
        case ["S", text]:
            return text
        case ["T", text]:
            return datetime.fromtimestamp(int(text), UTC)
        case ["x", text]:
            return bytes.fromhex(text)
        case ["V"]:
            return None
        case ["A", items]:
            return [untag(item) for item in items]
        case ["F", members]:
            return untag_table(members)
        case _:
            raise ValueError(f"pika cannot write {value[0]}")


def tags_in(value: list[Any]) -> set[str]:
    """Give every tag in a tagged value."""
    kind, *rest = value
    inner = rest[0].values() if kind == "F" else rest[0] if kind == "A" else ()
    return {kind}.union(*(tags_in(item) for item in inner))


def untag_table(members: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Give a header table."""
    return {name: untag(value) for name, value in members.items()}


def tag(value: Any) -> list[Any]:
    """Say what pika gave us."""
    match value:
        case None:
            return ["V"]
        case bool():
            return ["t", value]
        case int():
            return ["*", str(int(value))]
        case float():
            return ["d", "0x" + struct.pack(">d", value).hex()]
        case Decimal():
            shown = value.as_tuple()
            return ["D", str(-int(shown.exponent)), str(int(value.scaleb(-int(shown.exponent))))]
        case str():
            return ["S", value]
        case bytes():
            return ["x", value.hex()]
        case datetime():
            return ["T", str(int(value.timestamp()))]
        case list():
            return ["A", [tag(item) for item in value]]
        case _:
            return ["F", {str(name): tag(item) for name, item in value.items()}]
