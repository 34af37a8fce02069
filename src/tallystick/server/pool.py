"""A few worker processes, so that no candidate can hold up the server.

A job that exceeds the budget costs its worker its life: the process is killed and another takes
its place; one that does not come up is started again. Reads never wait for this. When too many
candidates wait, new ones are turned away, and so is one for which no worker comes free.
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
"""Seconds that a candidate waits for a worker before it is turned away."""
_log: Final = logging.getLogger("tallystick.server")


class Busy(UsageError):
    """Too many candidates wait already."""


class Pool:
    """Workers at rest stand in `idle`; `waiting` counts the jobs that were let in."""

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
        """Start the workers; the first must come up before anything is served."""
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
        """Give the report on a candidate, within the budget once a worker is free."""
        if self.waiting >= _WAITING:
            raise Busy("too many candidates are being checked", code="server.busy")
        self.waiting += 1
        try:
            async with asyncio.timeout(self.patience):
                process = await self._idle.get()
        except TimeoutError:
            self.waiting -= 1
            raise Busy("no worker came free", code="server.busy") from None
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
                fault=f"The schema could not be checked within {self.budget} seconds: simplify it"
            )
        except (asyncio.IncompleteReadError, ConnectionError):
            return Report(fault="The schema cannot be checked: it needs too much memory")
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
        """Start a worker, again and again if need be: without one nothing is ever judged."""
        while True:
            try:
                await self._start()
            except (Unavailable, OSError) as error:
                _log.error("%s: trying again", error)
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
