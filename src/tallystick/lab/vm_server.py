"""The in-process broker `vm` on a loopback socket: any AMQP 0-9-1 client can dial it.

    with running_vm() as vm:
        connect(vm.url)

It lives in a thread of this process and takes no time to start. Frames are cut and joined here;
what they mean is in `vm_channel` and `vm_broker`.
"""

from __future__ import annotations

import asyncio
import struct
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

__all__ = ["Vm", "VmServer", "running_vm"]

_HOST: Final = "127.0.0.1"
_PROTOCOL: Final = b"AMQP\x00\x00\x09\x01"
_METHOD, _HEADER, _BODY, _BEAT = 1, 2, 3, 8
_END: Final = b"\xce"
_FRAME_MAX: Final = 131072
_CHANNEL_MAX: Final = 2047
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
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()
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
        at = 0
        while len(self._in) - at >= 8:
            kind, number, size = struct.unpack_from(">BHI", self._in, at)
            if len(self._in) - at < size + 8:
                break
            payload = bytes(self._in[at + 7 : at + 7 + size])
            at += size + 8
            self._take(kind, number, payload)
        del self._in[:at]

    def _take(self, kind: int, number: int, payload: bytes) -> None:
        try:
            if kind == _METHOD:
                self._method(number, self._read(number, payload))
            elif kind == _BEAT:
                self._send(_frame(_BEAT, 0, b""))
            elif number in self._contents:
                self._content(kind, number, payload)
        except Fault as fault:
            self._refuse(number, fault)

    def _read(self, number: int, payload: bytes) -> Frame:
        whole = struct.pack(">BHI", _METHOD, number, len(payload)) + payload + _END
        _, _, value = frames.unmarshal(whole)
        assert isinstance(value, Frame)
        return value

    def _refuse(self, number: int, fault: Fault) -> None:
        if fault.level == "connection":
            self._write(0, Connection.Close(fault.code, fault.text, 0, 0))
            return
        self._channels.pop(number).close()
        self._contents.pop(number, None)
        self._closing.add(number)
        self._write(number, Channel.Close(fault.code, fault.text, 0, 0))

    def _method(self, number: int, asked: Frame) -> None:
        if number == 0:
            self._connection_method(asked)
        elif isinstance(asked, Channel.Open):
            self._channels[number] = self._open(number)
            self._write(number, Channel.OpenOk())
        elif isinstance(asked, Channel.CloseOk):
            self._closing.discard(number)
        elif isinstance(asked, Channel.Close):
            if number in self._channels:
                self._channels.pop(number).close()
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
            self._frame_max = asked.frame_max or _FRAME_MAX
        elif isinstance(asked, Connection.Open):
            self._write(0, Connection.OpenOk())
        elif isinstance(asked, Connection.Close):
            self._write(0, Connection.CloseOk())
            self.hang_up()
        elif isinstance(asked, Connection.CloseOk):
            self.hang_up()

    def _content(self, kind: int, number: int, payload: bytes) -> None:
        content = self._contents[number]
        if kind == _HEADER:
            content.header = payload
            (content.size,) = struct.unpack_from(">Q", payload, 4)
        elif kind == _BODY:
            content.body += payload
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
            + _frame(_HEADER, number, message.header)
            + b"".join(_frame(_BODY, number, part) for part in parts)
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


def _frame(kind: int, number: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, number, len(payload)) + payload + _END


class VmServer:
    """The broker and its socket, in an event loop of its own."""

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
