"""One event loop in its own thread, started when the first async handler needs it."""

from __future__ import annotations

import asyncio
from threading import Lock, Thread
from typing import Final

__all__ = ["Loop"]

_GOODBYE: Final = 5.0


class Loop:
    """An event loop for async handlers; `close` cancels the running ones."""

    def __init__(self) -> None:
        self._lock: Final = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None

    def get(self) -> asyncio.AbstractEventLoop:
        """Give the running loop."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = Thread(target=_run, args=(self._loop,), daemon=True)
                self._thread.start()
            return self._loop

    def close(self) -> None:
        """Stop the loop and wait for its end."""
        with self._lock:
            if self._loop is not None and self._thread is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join(_GOODBYE)  # a handler that blocks it is left behind
                self._loop = self._thread = None


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
        loop.run_until_complete(_cancel_all())
    finally:
        loop.close()


async def _cancel_all() -> None:
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
