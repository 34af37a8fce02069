"""What the Python client needs of AMQP: a connection one can await, bodies, and tagged values."""

from __future__ import annotations

import asyncio
import hashlib
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pika
import pika.exceptions
from pika.adapters.asyncio_connection import AsyncioConnection
from pika.compat import long


class Closed(Exception):
    """A channel or a connection has ended; `view` is what the broker said, if it did."""

    def __init__(self, level: str, error: BaseException) -> None:
        code, text = getattr(error, "reply_code", 0), getattr(error, "reply_text", "")
        super().__init__(text or repr(error))
        self.view = {"level": level, "code": code, "text": text} if code else None


class Link:
    """One connection. `closed` is how any of it ended first; then `news` is called."""

    def __init__(self, parameters: pika.ConnectionParameters, news: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[Closed] = loop.create_future()
        self.opened: asyncio.Future[Any] = loop.create_future()
        self.gone, self.news = asyncio.Event(), news
        self.connection = AsyncioConnection(
            parameters, self.opened.set_result, self.note, self.note
        )

    def note(self, place: Any, error: BaseException) -> None:
        """Keep how it was closed; a connection's close comes to its channels first."""
        if place is self.connection:
            self.gone.set()
        ended = place is self.connection or isinstance(error, pika.exceptions.ConnectionClosed)
        if not self.closed.done():
            self.closed.set_result(Closed("connection" if ended else "channel", error))
        self.news()

    async def channel(self) -> Any:
        await self.result(self.opened)
        channel = await self.call(self.connection.channel, name="on_open_callback")
        channel.add_on_close_callback(self.note)
        return channel

    async def call(self, method: Callable[..., Any], *given: Any, name: str = "callback",
                   **named: Any) -> Any:  # fmt: skip
        """Call a method of pika and wait for the broker's answer."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        named[name] = lambda value: answer.done() or answer.set_result(value)
        self.check()
        method(*given, **named)
        return await self.result(answer)

    async def result(self, answer: asyncio.Future[Any]) -> Any:
        """Wait for an answer, or raise what closed it meanwhile."""
        await asyncio.wait({answer, self.closed}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            self.check()
        return answer.result()

    def check(self) -> None:
        if self.closed.done():
            raise self.closed.result()

    async def close(self) -> None:
        if self.connection.is_open:
            self.connection.close()
        await self.gone.wait()


def make_body(seed: int, sequence: int, size: int) -> bytes:
    """Give the body of one message: the first 31 bytes of a hash, over and over."""
    pattern = hashlib.sha256(f"{seed}.{sequence}".encode()).digest()[:31]
    return (pattern * (size // 31 + 1))[:size]


def first_difference(wanted: bytes, found: bytes) -> int:
    """Give the offset where two bodies part, or -1."""
    if wanted == found:
        return -1
    pairs = enumerate(zip(wanted, found, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(wanted), len(found)))


WRITE: dict[str, Callable[..., Any]] = {
    "t": bool,
    "I": int,
    "l": long,
    "D": lambda scale, digits: Decimal(int(digits)).scaleb(-int(scale)),
    "S": str,
    "T": lambda text: datetime.fromtimestamp(int(text), UTC),
    "x": bytes.fromhex,
    "V": lambda: None,
    "A": lambda items: [WRITE[kind](*rest) for kind, *rest in items],
    "F": lambda members: {name: WRITE[kind](*rest) for name, (kind, *rest) in members.items()},
}
"""By tag, what pika writes with it."""


def tag_decimal(value: Decimal) -> list[Any]:
    scale = -int(value.as_tuple().exponent)
    return ["D", str(scale), str(int(value.scaleb(scale)))]


READ: dict[type, Callable[[Any], list[Any]]] = {
    type(None): lambda _: ["V"],
    bool: lambda value: ["t", value],
    int: lambda value: ["*", str(value)],
    long: lambda value: ["*", str(int(value))],
    float: lambda value: ["d", "0x" + struct.pack(">d", value).hex()],
    Decimal: tag_decimal,
    str: lambda value: ["S", value],
    bytes: lambda value: ["x", value.hex()],
    datetime: lambda value: ["T", str(int(value.timestamp()))],
    list: lambda value: ["A", [READ[type(item)](item) for item in value]],
    dict: lambda value: ["F", tag_table(value)],
}
"""By type, the tagged form of what pika read; it does not tell how wide an integer was."""


def tag_table(table: dict[str, Any] | None) -> dict[str, Any]:
    """Give a header table with its values tagged."""
    return {name: READ[type(value)](value) for name, value in (table or {}).items()}
