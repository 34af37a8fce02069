"""A TCP proxy that cuts connections: it resets them, or forwards nothing while they stay open.

It runs on a thread of its own. A connection that cannot be forwarded, because the broker is down,
is reset as the broker's own port would refuse it.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Coroutine
from contextlib import suppress
from threading import Thread
from typing import Any, Final, Self

__all__ = ["Proxy"]

_CHUNK: Final = 1 << 16
_RESET: Final = struct.pack("ii", 1, 0)
_LIMIT: Final = 30.0
_HOST: Final = "127.0.0.1"


class Proxy:
    """Forwards one port of this machine to another while it is entered."""

    def __init__(self, target: int, port: int = 0) -> None:
        self.port = port
        self.carried = 0
        self._target: Final = target
        self._loop: Final = asyncio.new_event_loop()
        self._open: Final[set[asyncio.StreamWriter]] = set()
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._flowing = asyncio.Event()
        self._thread: Final = Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> int:
        """Reset every connection; give how many there were."""
        return self._call(self._cut())

    def hang(self) -> None:
        """Forward nothing more, on old connections and new ones; they stay open."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def flow(self) -> None:
        """Forward again."""
        self._loop.call_soon_threadsafe(self._flowing.set)

    def _call(self, work: Coroutine[Any, Any, int]) -> int:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_LIMIT)

    async def _listen(self) -> int:
        self._flowing.set()
        self._server = await asyncio.start_server(self._accept, _HOST, self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self.port

    async def _end(self) -> int:
        self._server.close()
        await self._cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        return 0

    async def _cut(self) -> int:
        alive = [writer for writer in self._open if not writer.transport.is_closing()]
        for writer in alive:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()
        self._open.clear()
        return len(alive) // 2

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._open.add(writer)
        try:
            await self._flowing.wait()
            there, here = await asyncio.open_connection(_HOST, self._target)
            self._open.add(here)
            self.carried += 1
            await asyncio.gather(self._pump(reader, here), self._pump(there, writer))
        except OSError:
            writer.transport.abort()  # the broker is down, or one side was reset: so is the other
        finally:
            self._open.discard(writer)
            self._tasks.discard(task)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(_CHUNK):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()
        finally:
            self._open.discard(writer)
            with suppress(OSError):
                writer.close()
