"""AMQP 0-9-1 in raw frames over one socket, for a client that must be able to send anything.

`pamqp` writes and reads methods; content headers and bodies stay bytes. When a broker closes a
channel or the connection, that is an answer: it is kept as a `Refusal` with level, code and text,
and raised to the caller that waits for a reply. A socket that closes without a reason is `Gone`.
Methods may be sent in a burst; the replies arrive in the same order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, Final, Self
from urllib.parse import unquote, urlsplit

from pamqp import commands, frame, header

from tallystick.core.errors import UsageError

__all__ = ["Address", "Channel", "Content", "Gone", "Refusal", "Wire", "encode", "read_address"]

_FRAME: Final = Struct(">BHI")
_METHOD, _HEADER, _BODY, _HEARTBEAT = 1, 2, 3, 8
_END: Final = 0xCE
_CARRYING: Final = (commands.Basic.Deliver, commands.Basic.Return, commands.Basic.GetOk)
_OVERHEAD: Final = 8


@dataclass(frozen=True, slots=True)
class Address:
    """Where a broker is, and as whom."""

    host: str
    port: int
    user: str
    password: str
    vhost: str


def read_address(url: str) -> Address:
    """Read `amqp://user:password@host:port/vhost`."""
    parts = urlsplit(url)
    try:
        port = parts.port or 5672
    except ValueError:  # it is no number, or too large for one
        port = 0
    if parts.scheme != "amqp" or not parts.hostname or not port:
        raise UsageError(
            f"{url!r} is not an AMQP URL", code="url", hint="amqp://user:pass@host:port/"
        )
    return Address(
        parts.hostname,
        port,
        unquote(parts.username or "guest"),
        unquote(parts.password or "guest"),
        unquote(parts.path[1:]) or "/",
    )


class Refusal(Exception):
    """The broker closed a channel or the connection and said why."""

    def __init__(self, level: str, code: int, text: str) -> None:
        super().__init__(f"{level} {code}: {text}")
        self.level: Final = level
        self.code: Final = code
        self.text: Final = text

    @property
    def word(self) -> str:
        """The refusal as observations have it."""
        return f"{self.level} {self.code}"


class Gone(Exception):
    """The socket ended without a word, or was ended by us."""


@dataclass(slots=True)
class Content:
    """A message that came: its method, its header's bytes, its body, in how many frames."""

    method: Any
    head: bytes = b""
    body: bytearray = field(default_factory=bytearray)
    frames: int = 0

    @property
    def size(self) -> int:
        """The length the header promises."""
        return int.from_bytes(self.head[4:12], "big")

    @property
    def properties(self) -> commands.Basic.Properties:
        """The properties, read by pamqp."""
        read = header.ContentHeader()
        read.unmarshal(self.head)
        return read.properties


class Channel:
    """One channel: replies in order, and unrequested methods in separate lists."""

    def __init__(self, wire: Wire, number: int) -> None:
        self._wire: Final = wire
        self.number: Final = number
        self.deliveries: Final[list[Content]] = []
        self.returns: Final[list[Content]] = []
        self.confirms: Final[list[Any]] = []
        self.refusal: Refusal | Gone | None = None
        self._replies: Final[deque[Any]] = deque()
        self._partial: Content | None = None
        self._changed: asyncio.Future[None] | None = None

    async def ask(self, *parts: Any) -> list[Any]:
        """Send methods and messages in one burst; give the replies of the methods that have one."""
        self.send(*parts)
        waited = [one for one in parts if getattr(one, "synchronous", False)]
        return [await self._reply() for _ in waited]

    def send(self, *parts: Any) -> None:
        """Send without waiting: methods, or bytes that are frames already."""
        if self.refusal:
            raise self.refusal
        self._wire.write(b"".join(self.encode(part) for part in parts))

    def encode(self, part: Any) -> bytes:
        """Give the frames of a method on this channel."""
        return part if isinstance(part, bytes) else frame.marshal(part, self.number)

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until something is true of this channel; a refusal is raised."""
        while not holds():
            if self.refusal:
                raise self.refusal
            self._changed = asyncio.get_running_loop().create_future()
            await self._changed

    async def _reply(self) -> Any:
        await self.until(lambda: self._replies)
        return self._replies.popleft()

    async def close(self) -> None:
        """Close the channel, and free its number."""
        await self.ask(commands.Channel.Close(200, "done", 0, 0))
        self._wire.forget(self)

    def feed_method(self, method: Any) -> None:
        """Take a method that came on this channel."""
        if isinstance(method, _CARRYING):
            self._partial = Content(method)
            return
        if isinstance(method, commands.Channel.Close):
            self._wire.write(frame.marshal(commands.Channel.CloseOk(), self.number))
            self._wire.forget(self)
            self.fail(Refusal("channel", method.reply_code or 0, method.reply_text or ""))
            return
        if isinstance(method, commands.Basic.Ack | commands.Basic.Nack):
            self.confirms.append(method)
        else:
            self._replies.append(method)
        self._wake()

    def feed_content(self, kind: int, payload: bytes) -> None:
        """Take a header or a body frame."""
        content = self._partial
        if content is None:
            raise Gone("content arrived without a method before it")
        if kind == _HEADER:
            content.head = payload
        else:
            content.body += payload
            content.frames += 1
        if len(content.body) >= content.size:
            self._partial = None
            places = {"Basic.Deliver": self.deliveries, "Basic.Return": self.returns}
            places.get(content.method.name, self._replies).append(content)
            self._wake()

    def fail(self, refusal: Refusal | Gone) -> None:
        """Close the channel and wake all waiters."""
        self.refusal = self.refusal or refusal
        self._wake()

    def _wake(self) -> None:
        if self._changed and not self._changed.done():
            self._changed.set_result(None)


class Wire(asyncio.Protocol):
    """One connection. `refusal` says why it ended."""

    def __init__(self, address: Address, frame_max: int) -> None:
        self._address: Final = address
        self._wanted: Final = frame_max
        self.frame_max = frame_max
        self.server: dict[str, Any] = {}
        self.refusal: Refusal | Gone | None = None
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._channels: Final[dict[int, Channel]] = {}
        self._opened: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        self._ended: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()

    @classmethod
    async def open(cls, address: Address, frame_max: int = 131_072, limit: float = 30.0) -> Self:
        """Connect and shake hands."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(limit):
            _, wire = await loop.create_connection(
                lambda: cls(address, frame_max), address.host, address.port
            )
            try:
                await wire._opened  # noqa: SLF001 (its own)
            except BaseException:
                wire.cut()
                raise
        return wire

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet the broker."""
        self._transport = transport  # type: ignore[assignment]
        self.write(b"AMQP\x00\x00\x09\x01")

    def connection_lost(self, exc: Exception | None) -> None:
        """Wake all waiters with the error."""
        self._end(Gone(str(exc or "the connection was closed")))
        if not self._ended.done():
            self._ended.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Cut the stream into frames and pass each on."""
        buffer = self._buffer
        buffer += data
        at = 0
        while len(buffer) - at >= _OVERHEAD:
            kind, number, size = _FRAME.unpack_from(buffer, at)
            end = at + _FRAME.size + size + 1
            if kind == ord("A"):
                self._end(Gone("the broker does not support AMQP 0-9-1"))
                return
            if len(buffer) < end:
                break
            whole = bytes(buffer[at:end])
            at = end
            if whole[-1] != _END:
                self._end(Gone("a frame has no end marker"))
                return
            self._take(kind, number, whole)
        del buffer[:at]

    def _take(self, kind: int, number: int, whole: bytes) -> None:
        if kind == _HEARTBEAT:
            return
        if number == 0:
            self._shake(frame.unmarshal(whole)[2])
            return
        channel = self._channels.get(number)
        if channel is None:
            return  # it has just been closed
        if kind == _METHOD:
            channel.feed_method(frame.unmarshal(whole)[2])
        else:
            channel.feed_content(kind, whole[_FRAME.size : -1])

    def _shake(self, method: Any) -> None:
        match method:
            case commands.Connection.Start():
                self.server = dict(method.server_properties)
                login = f"\0{self._address.user}\0{self._address.password}"
                self._say(
                    commands.Connection.StartOk(_ABOUT, "PLAIN", login, "en_US"),
                )
            case commands.Connection.Tune():
                offered = method.frame_max or self._wanted
                self.frame_max = min(offered, self._wanted)
                self._say(commands.Connection.TuneOk(method.channel_max, self.frame_max, 0))
                self._say(commands.Connection.Open(self._address.vhost))
            case commands.Connection.OpenOk():
                self._opened.set_result(None)
            case commands.Connection.Close():
                self._say(commands.Connection.CloseOk())
                self._end(Refusal("connection", method.reply_code or 0, method.reply_text or ""))
                self.cut()
            case commands.Connection.CloseOk():
                self.cut()

    def _say(self, method: Any) -> None:
        self.write(frame.marshal(method, 0))

    def _end(self, why: Refusal | Gone) -> None:
        self.refusal = self.refusal or why
        if not self._opened.done():
            self._opened.set_exception(self.refusal)
        for channel in self._channels.values():
            channel.fail(self.refusal)
        self._channels.clear()

    def write(self, data: bytes) -> None:
        """Write frames."""
        if self.refusal:
            raise self.refusal
        if self._transport:
            self._transport.write(data)

    def channel(self) -> Channel:
        """Take a free channel number; the caller opens it with its first burst."""
        if self.refusal:
            raise self.refusal
        number = next(n for n in range(1, 256) if n not in self._channels)
        self._channels[number] = Channel(self, number)
        return self._channels[number]

    def forget(self, channel: Channel) -> None:
        """Free the number of a channel that is closed."""
        self._channels.pop(channel.number, None)

    async def close(self) -> None:
        """Say goodbye, and wait until the socket is closed."""
        if self.refusal is None:
            self._say(commands.Connection.Close(200, "done", 0, 0))
        await self._ended

    def cut(self) -> None:
        """End the socket at once, without a word, as a crash does."""
        self._end(Gone("cut"))
        if self._transport:
            self._transport.abort()

    async def ended(self) -> None:
        """Wait until the socket is closed."""
        await self._ended


_ABOUT: Final[dict[str, Any]] = {
    "product": "tallystick",
    "capabilities": {"basic.nack": True, "publisher_confirms": True},
}


def encode(channel: Channel, publish: Any, head: bytes, body: bytes, frame_max: int) -> bytes:
    """Return the frames of one message: the method, the unchanged content header, the body."""
    size = frame_max - _OVERHEAD
    parts = [channel.encode(publish), _framed(_HEADER, channel.number, head)]
    parts += [
        _framed(_BODY, channel.number, body[at : at + size]) for at in range(0, len(body), size)
    ]
    return b"".join(parts)


def _framed(kind: int, number: int, payload: bytes) -> bytes:
    return _FRAME.pack(kind, number, len(payload)) + payload + bytes((_END,))
