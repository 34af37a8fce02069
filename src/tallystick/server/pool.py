"""A pool of worker processes, so that no candidate can block the server.

If a job exceeds its time limit, its worker is killed and a new one is
started; a worker that does not start is started again. Reads never wait for workers. If too many
candidates wait, or no worker becomes free in time, a candidate is rejected.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from typing import TYPE_CHECKING, Final

import msgspec

from tallystick.core.errors import Unavailable, UsageError
from tallystick.schemas.guard import SECONDS
from tallystick.server.examine import Job, Report
from tallystick.server.worker import frame

if TYPE_CHECKING:
    from asyncio.subprocess import Process

__all__ = ["BUDGET_SECONDS", "Busy", "Pool"]

BUDGET_SECONDS: Final = SECONDS
_WORKERS: Final = 2
_WAITING: Final = 32
_START_SECONDS: Final = 60.0
_AGAIN_SECONDS: Final = 1.0
_PATIENCE: Final = 30.0
"""Maximum seconds that a candidate waits for a worker."""
_log: Final = logging.getLogger("tallystick.server")


class Busy(UsageError):
    """Too many candidates are waiting."""


class Pool:
    """The idle workers are in `idle`; `waiting` counts the accepted jobs."""

    def __init__(self, budget: float = BUDGET_SECONDS, patience: float = _PATIENCE) -> None:
        self.budget = budget
        self.patience = patience
        self.timeouts = 0
        self.waiting = 0
        self._idle: asyncio.Queue[Process] = asyncio.Queue()
        self._alive: set[Process] = set()
        self._starting: set[asyncio.Task[None]] = set()
        self._closed = False
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder: msgspec.msgpack.Decoder[Report] = msgspec.msgpack.Decoder(Report)

    async def open(self) -> None:
        """Start the workers; the first must be ready before the server answers."""
        await self._start()
        for _ in range(_WORKERS - 1):
            self._start_soon()

    async def close(self) -> None:
        """End every worker."""
        self._closed = True
        for task in list(self._starting):
            task.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)
        for process in list(self._alive):
            await self._end(process)

    async def examine(self, job: Job) -> Report:
        """Check a candidate; the time limit starts when a worker is free."""
        if self.waiting >= _WAITING:
            raise Busy("the server is checking too many schemas", code="server.busy")
        self.waiting += 1
        try:
            async with asyncio.timeout(self.patience):
                process = await self._idle.get()
        except TimeoutError:
            self.waiting -= 1
            raise Busy("no worker became free in time", code="server.busy") from None
        try:
            return await self._ask(process, job)
        finally:
            self.waiting -= 1

    async def _ask(self, process: Process, job: Job) -> Report:
        answered = False
        try:
            async with asyncio.timeout(self.budget):
                answer = self._decoder.decode(await _exchange(process, self._encoder.encode(job)))
            answered = True
        except TimeoutError:
            self.timeouts += 1
            return Report(
                fault=f"Checking the schema took more than {self.budget} seconds: simplify it"
            )
        except (asyncio.IncompleteReadError, ConnectionError):
            return Report(fault="Checking the schema needs too much memory: simplify the schema")
        finally:
            if answered:
                self._idle.put_nowait(process)
            else:
                await self._end(process)
                self._start_soon()
        if answer.defect:
            raise Unavailable(f"a worker failed:\n{answer.defect}", code="server.worker")
        return answer

    def _start_soon(self) -> None:
        if not self._closed:
            task = asyncio.create_task(self._start_surely())
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)

    async def _start_surely(self) -> None:
        """Start a worker, and repeat until it starts: every check needs a worker."""
        while True:
            try:
                await self._start()
            except (Unavailable, OSError) as error:
                _log.error("%s; the server tries again", error)
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                return

    async def _start(self) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tallystick.server.worker",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        self._alive.add(process)
        try:
            async with asyncio.timeout(_START_SECONDS):
                await _receive(process)
        except (TimeoutError, asyncio.IncompleteReadError) as error:
            await self._end(process)
            raise Unavailable("a worker process did not start", code="server.worker") from error
        self._idle.put_nowait(process)

    async def _end(self, process: Process) -> None:
        self._alive.discard(process)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _exchange(process: Process, payload: bytes) -> bytes:
    assert process.stdin is not None
    process.stdin.write(frame(payload))
    await process.stdin.drain()
    return await _receive(process)


async def _receive(process: Process) -> bytes:
    assert process.stdout is not None
    head = await process.stdout.readexactly(4)
    return await process.stdout.readexactly(int.from_bytes(head, "big"))
