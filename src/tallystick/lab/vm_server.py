"""The in-process broker `vm` on a loopback socket: any AMQP 0-9-1 client can connect.

    with running_vm() as vm:
        connect(vm.url)

It runs in a thread of this process and starts at once. `vm_frames` splits frames, `vm_channel` and
`vm_broker` implement the methods; this module handles connections. A refused connection gets its
reason; after that only its close is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any, Final

from pamqp import frame as frames
from pamqp.base import Frame
from pamqp.commands import Basic, Channel, Connection

from tallystick.lab.vm_broker import Broker, Fault, Message
from tallystick.lab.vm_channel import VmChannel
from tallystick.lab.vm_frames import BEAT, BODY, HEADER, LEAST_FRAME, METHOD, cut, join, read_method

__all__ = ["Vm", "VmServer", "running_vm"]

_HOST: Final = "127.0.0.1"
_PROTOCOL: Final = b"AMQP\x00\x00\x09\x01"
_FRAME_MAX: Final = 131072
_CHANNEL_MAX: Final = 2047
_HEADER_LEAST: Final = 14
_TEXT_MOST: Final = 255
_ABOUT: Final[dict[str, Any]] = {
    "product": "Tallystick vm",
    "version": "1",
    "capabilities": {"publisher_confirms": True, "basic.nack": True},
}


class _Content:
    """A message on its way in: the method, then the header, then the body."""

    def __init__(self, asked: Basic.Publish) -> None:
        self.asked = asked
        self.header = b""
        self.size = -1
        self.body = bytearray()

    @property
    def whole(self) -> bool:
        return self.size == len(self.body)


class _Link(asyncio.Protocol):
    """One connection."""

    def __init__(self, broker: Broker, links: set[_Link]) -> None:
        self._broker = broker
        self._links = links
        self._in = bytearray()
        self._greeted = False
        self._refused = False
        self._frame_max = _FRAME_MAX
        self._channels: dict[int, VmChannel] = {}
        self._contents: dict[int, _Content] = {}
        self._closing: set[int] = set()
        self.transport: asyncio.Transport | None = None
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._links.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self._links.discard(self)
        self._end_channels()
        self._broker.forget(self)
        self.gone.set_result(None)

    def data_received(self, data: bytes) -> None:
        self._in += data
        if not self._greeted and len(self._in) >= len(_PROTOCOL):
            if self._in[: len(_PROTOCOL)] != _PROTOCOL:
                self._send(_PROTOCOL)
                self.hang_up()
                return
            del self._in[: len(_PROTOCOL)]
            self._greeted = True
            self._write(0, Connection.Start(server_properties=_ABOUT))
        elif not self._greeted:
            return
        try:
            while whole := cut(self._in, self._frame_max):
                self._take(*whole)
        except Fault as fault:
            self._in.clear()
            self._refuse(0, fault)

    def _take(self, kind: int, number: int, payload: bytes) -> None:
        try:
            if kind == METHOD:
                self._method(number, read_method(payload))
            elif kind == BEAT:
                self._send(join(BEAT, 0, b""))
            elif number not in self._closing and not self._refused:
                self._content(kind, number, payload)
        except Fault as fault:
            self._refuse(number, fault)

    def _refuse(self, number: int, fault: Fault) -> None:
        if self._refused:
            return
        text = fault.text.encode()[:_TEXT_MOST].decode(errors="ignore")
        if fault.level == "connection":
            self._refused = True
            self._end_channels()
            self._write(0, Connection.Close(fault.code, text, 0, 0))
            return
        self._end_channel(number)
        self._closing.add(number)
        self._write(number, Channel.Close(fault.code, text, 0, 0))

    def _end_channel(self, number: int) -> None:
        self._contents.pop(number, None)
        channel = self._channels.pop(number, None)
        if channel:
            channel.close()

    def _end_channels(self) -> None:
        for number in list(self._channels):
            self._end_channel(number)

    def _method(self, number: int, asked: Frame) -> None:
        if self._refused and not isinstance(asked, Connection.Close | Connection.CloseOk):
            return
        if number == 0:
            self._connection_method(asked)
        elif number in self._contents:
            raise Fault("connection", 505, "UNEXPECTED_FRAME - a method before the content's end")
        elif isinstance(asked, Channel.Open):
            if number in self._channels:
                raise Fault("connection", 504, f"CHANNEL_ERROR - channel {number} is open")
            self._channels[number] = self._open(number)
            self._write(number, Channel.OpenOk())
        elif isinstance(asked, Channel.CloseOk):
            self._closing.discard(number)
        elif isinstance(asked, Channel.Close):
            self._end_channel(number)
            self._write(number, Channel.CloseOk())
        elif number in self._channels:
            if isinstance(asked, Basic.Publish):
                self._contents[number] = _Content(asked)
            else:
                self._channels[number].handle(asked)
        elif number not in self._closing:
            raise Fault("connection", 504, f"CHANNEL_ERROR - channel {number} is not open")

    def _open(self, number: int) -> VmChannel:
        return VmChannel(
            self._broker,
            self,
            lambda method: self._write(number, method),
            lambda method, message: self._write_content(number, method, message),
        )

    def _connection_method(self, asked: Frame) -> None:
        if isinstance(asked, Connection.StartOk):
            self._write(0, Connection.Tune(_CHANNEL_MAX, _FRAME_MAX, 0))
        elif isinstance(asked, Connection.TuneOk):
            wanted = asked.frame_max or _FRAME_MAX
            if wanted < LEAST_FRAME:
                raise Fault("connection", 530, f"NOT_ALLOWED - frame_max is below {LEAST_FRAME}")
            self._frame_max = min(wanted, _FRAME_MAX)
        elif isinstance(asked, Connection.Open):
            self._write(0, Connection.OpenOk())
        elif isinstance(asked, Connection.Close):
            self._write(0, Connection.CloseOk())
            self.hang_up()
        elif isinstance(asked, Connection.CloseOk):
            self.hang_up()
        else:
            raise Fault("connection", 503, f"COMMAND_INVALID - {asked.name} on channel 0")

    def _content(self, kind: int, number: int, payload: bytes) -> None:
        content = self._contents.get(number)
        if content is None or (kind == HEADER) is bool(content.header):
            raise Fault("connection", 505, "UNEXPECTED_FRAME - content that nothing announced")
        if kind == BODY:
            content.body += payload
        elif len(payload) < _HEADER_LEAST:
            raise Fault("connection", 502, "SYNTAX_ERROR - a content header is cut short")
        else:
            content.header = payload
            content.size = int.from_bytes(payload[4:12], "big")
        if len(content.body) > content.size:
            raise Fault("connection", 501, "FRAME_ERROR - more content than was announced")
        if content.whole:
            del self._contents[number]
            asked = content.asked
            message = Message(
                asked.exchange, asked.routing_key, content.header, bytes(content.body), self
            )
            self._channels[number].publish(asked, message)

    def _write(self, number: int, method: Frame) -> None:
        self._send(frames.marshal(method, number))

    def _write_content(self, number: int, method: Frame, message: Message) -> None:
        room = self._frame_max - 8
        body = message.body
        parts = [body[at : at + room] for at in range(0, len(body), room)]
        self._send(
            frames.marshal(method, number)
            + join(HEADER, number, message.header)
            + b"".join(join(BODY, number, part) for part in parts)
        )

    def _send(self, data: bytes) -> None:
        if self.transport and not self.transport.is_closing():
            self.transport.write(data)

    def hang_up(self) -> None:
        """Close the socket when all is written."""
        if self.transport:
            self.transport.close()

    def cut(self) -> None:
        """Close the socket as a crash would."""
        if self.transport:
            self.transport.abort()


class VmServer:
    """The broker and its socket, in its own event loop."""

    def __init__(self) -> None:
        self.broker: Final = Broker()
        self._links: set[_Link] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = Event()
        self._thread = Thread(target=self._run, name="vm broker", daemon=True)
        self.port = 0

    def start(self) -> None:
        """Listen, then return."""
        self._thread.start()
        self._ready.wait()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._listen())
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _listen(self) -> None:
        self._server = await self._loop.create_server(
            lambda: _Link(self.broker, self._links), _HOST, 0
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def _end(self) -> None:
        self._server.close()
        left = list(self._links)
        for link in left:
            link.cut()
        await asyncio.gather(*(link.gone for link in left))

    def stop(self) -> None:
        """End at once, as a kill would: every connection is cut. Safe to repeat."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()


@dataclass(frozen=True, slots=True)
class Vm:
    """A broker that runs in this process."""

    port: int
    server: VmServer
    host: str = _HOST
    version: str = "1"

    @property
    def url(self) -> str:
        """The URL a client dials."""
        return f"amqp://guest:guest@{self.host}:{self.port}/%2F"


@contextmanager
def running_vm() -> Iterator[Vm]:
    """Have the in-process broker for a while."""
    server = VmServer()
    server.start()
    try:
        yield Vm(server.port, server)
    finally:
        server.stop()
