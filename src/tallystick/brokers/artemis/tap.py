"""Browse a queue: a link with the distribution mode `copy` shows waiting messages and takes none.

A browser ends at the end of the queue, so the tap browses it again and reports the messages that it
has not seen before (`Looks`). It misses messages that are consumed between two polls, or that
the broker has already pushed to a consumer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from time import monotonic, sleep
from typing import Any, Final
from uuid import uuid4

from proton import Timeout
from proton.handlers import MessagingHandler
from proton.reactor import Copy, LinkOption

from tallystick.brokers.artemis.transport import mark_queue, read_frame
from tallystick.core.frame import Frame
from tallystick.core.tap import Looks, Watch

__all__ = ["ArtemisTap", "drain"]

_EVERY: Final = 0.25
_CREDIT: Final = 200
_EMPTY: Final = 2
"""Empty drains in a row that mean an empty queue: the first answer may come too early."""
_ASK_AGAIN: Final = 0.5


class ArtemisTap:
    """Browses one queue again and again, over the connection that `talking` keeps."""

    def __init__(
        self,
        watch: Watch,
        connection: Callable[[], Any],
        talking: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        self._queue: Final = watch.queue
        self._connection: Final = connection
        self._talking: Final = talking
        self._looks: Final = Looks()
        self._arrived: Final[deque[Frame]] = deque()
        self._new: Final[deque[Frame]] = deque()
        self._browser: Any = None
        self._empty = 0
        if watch.start == "latest":
            while not self._look():
                self._new.clear()
            self._new.clear()

    def read(self, limit: int, timeout: float) -> list[Frame]:
        """Browse until there is something new, four times a second."""
        end = monotonic() + timeout
        while not self._new:
            ended = self._look()
            left = end - monotonic()
            if not self._new and left <= 0:
                break
            if not self._new and ended:
                sleep(min(_EVERY, left))
        return [self._new.popleft() for _ in range(min(limit, len(self._new)))]

    def _look(self) -> bool:
        """Take the next messages of this look; say whether it came to its end."""
        with self._talking():
            connection = self._connection()
            if self._browser is None:
                self._looks.begin()
                self._browser, self._empty = self._browse(connection), 0
            drain(connection, self._browser.link)
            self._empty = 0 if self._arrived else self._empty + 1
            self._new.extend(self._looks.unseen(self._arrived))
            self._arrived.clear()
            if self._empty < _EMPTY:
                return False
            self._browser.close()
            self._browser = None
            return True

    def _browse(self, connection: Any) -> Any:
        arrived = self._arrived

        class Collect(MessagingHandler):
            def on_message(self, event: Any) -> None:
                arrived.append(read_frame(event.message))
                event.delivery.settle()

        class Anycast(LinkOption):
            def apply(self, link: Any) -> None:
                mark_queue(link.source)

        return connection.create_receiver(
            self._queue,
            name=f"tally-tap-{uuid4().hex}",
            handler=Collect(prefetch=0, auto_accept=False, auto_settle=False),
            options=[Anycast(), Copy()],
        )

    def close(self) -> None:
        """Do nothing: the link ends with the connection of its transport."""


def drain(connection: Any, link: Any) -> None:
    """Drain the credit of the link; ask again until the broker answers.

    Artemis answers a drain before it has finished it, and drops another drain that arrives
    meanwhile.
    """
    end = monotonic() + connection.timeout
    link.drain(_CREDIT)
    while link.credit:
        try:
            connection.wait(lambda: link.credit == 0, timeout=_ASK_AGAIN)
        except Timeout:
            if monotonic() >= end:
                raise
            link.drain(0)
