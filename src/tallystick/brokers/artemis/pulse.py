"""Answer AMQP 1.0 heartbeats while a connection is idle, because handlers may run for hours.

Each side of AMQP 1.0 treats the other as dead if it sends nothing for an idle timeout (transport,
2.4.5). proton sends only when it is called, so a thread calls it a few times per timeout, under the
lock that every other call takes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from threading import Event, Thread
from typing import Any, Final

__all__ = ["Pulse"]

_SHARE: Final = 4
_TURN: Final = 0.001


class Pulse:
    """A thread that keeps one connection alive until `stop`, or calls `broke` when it cannot."""

    def __init__(
        self,
        connection: Any,
        lock: AbstractContextManager[Any],
        heartbeat: float,
        broke: Callable[[], None],
    ) -> None:
        self._connection: Final = connection
        self._lock: Final = lock
        self._broke: Final = broke
        self._ended: Final = Event()
        timeouts = (heartbeat, connection.conn.transport.remote_idle_timeout)
        shortest = min((one for one in timeouts if one), default=0.0)
        if shortest:
            every = shortest / _SHARE
            Thread(target=self._run, args=(every,), name="tallystick-amqp", daemon=True).start()

    def stop(self) -> None:
        """End the thread; the caller holds the lock."""
        self._ended.set()

    def _run(self, every: float) -> None:
        import proton  # noqa: PLC0415
        from proton.utils import LinkDetached  # noqa: PLC0415

        while not self._ended.wait(every):
            with self._lock:
                if self._ended.is_set():
                    return
                try:
                    with suppress(proton.Timeout):  # which is how a turn ends
                        self._connection.wait(lambda: False, timeout=_TURN)
                except (proton.ProtonException, LinkDetached, OSError):
                    self._broke()  # whoever comes next opens another, and is told what fails
