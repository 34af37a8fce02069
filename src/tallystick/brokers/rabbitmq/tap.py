"""Read a queue without consuming it: a copy from the exchange that feeds it, or a peek.

    copy   an exclusive queue of our own, bound to the exchange with the key: it gets messages
           published from now on, and is deleted with the connection
    peek   messages are taken and put back when the tap closes. Meanwhile no other consumer gets
           them, they are then marked as redelivered, and a quorum queue counts a delivery

A queue that is fed through the default exchange, like those of the runtime, cannot be copied,
because nothing can be bound to that exchange. If neither way is allowed, the tap is refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from threading import Condition
from typing import Any, Final

from tallystick.brokers.rabbitmq.connection import Broken, Connection
from tallystick.core.errors import UsageError
from tallystick.core.frame import Frame
from tallystick.core.tap import Watch

__all__ = ["RabbitTap", "check_watch"]

_AHEAD: Final = 1_000


def check_watch(watch: Watch) -> None:
    """Refuse a tap that would affect the queue, unless the user asked for it."""
    if watch.exchange and watch.peek:
        raise UsageError("--peek and --exchange cannot be used together", code="tap")
    if watch.exchange and watch.start == "earliest":
        raise UsageError(
            "an exchange copies only new messages, not those already in the queue",
            code="tap",
            hint="add --from latest",
        )
    if not watch.exchange and not watch.peek:
        raise UsageError(
            "RabbitMQ cannot show a queue without taking messages from it",
            code="tap",
            hint="name the exchange that feeds the queue (--exchange NAME --key KEY --from "
            "latest), or capture in the app; --peek takes messages and puts them back, "
            "marked as redelivered",
        )


class RabbitTap:
    """One channel that consumes: a queue of our own, or the queue itself without acknowledging."""

    def __init__(
        self,
        connection: Connection,
        watch: Watch,
        frame_of: Callable[[Any, bytes], Frame],
        talking: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        self._connection: Final = connection
        self._frame_of: Final = frame_of
        self._talking: Final = talking
        self._peek: Final = watch.peek
        self._arrived: Final[deque[tuple[int, Frame]]] = deque()
        self._changed: Final = Condition()
        self._waiting: Future[Any] | None = None
        self._ended: BaseException | None = None
        self._channel: Final = connection.open_channel()
        self._channel.add_on_close_callback(self._on_close)
        self._ask(lambda done: self._channel.basic_qos(prefetch_count=_AHEAD, callback=done))
        queue = watch.queue if watch.peek else self._copy(watch)
        self._ask(lambda done: self._channel.basic_consume(queue, self._on_message, callback=done))

    def _copy(self, watch: Watch) -> str:
        made = self._ask(
            lambda done: self._channel.queue_declare("", exclusive=True, callback=done)
        )
        queue: str = made.method.queue
        self._ask(
            lambda done: self._channel.queue_bind(
                queue, watch.exchange, watch.key or watch.queue, callback=done
            )
        )
        return queue

    def read(self, limit: int, timeout: float) -> list[Frame]:
        """Return the received messages; a copy is acknowledged, a peek is not."""
        with self._talking(), self._changed:
            self._changed.wait_for(lambda: self._arrived or self._ended is not None, timeout)
            if not self._arrived and self._ended is not None:
                raise Broken(str(self._ended))
            taken = [self._arrived.popleft() for _ in range(min(limit, len(self._arrived)))]
        if taken and not self._peek:
            with self._talking():
                self._ask(lambda done: self._acknowledge(taken[-1][0], done))
        return [frame for _, frame in taken]

    def close(self) -> None:
        """Close the channel: peeked messages go back to their place."""
        if self._ended is None and self._connection.usable:
            with self._talking():
                self._ask(self._end)

    def _acknowledge(self, tag: int, done: Callable[[Any], None]) -> None:
        self._channel.basic_ack(tag, multiple=True)
        done(None)

    def _end(self, done: Callable[[Any], None]) -> None:
        self._waiting = None
        self._channel.add_on_close_callback(lambda _channel, _reason: done(None))
        self._channel.close()

    def _ask(self, act: Callable[[Callable[[Any], None]], Any]) -> Any:
        def run(done: Future[Any]) -> None:
            if self._ended is not None:
                raise Broken(str(self._ended))
            self._waiting = done
            act(done.set_result)

        return self._connection.call(run)

    def _on_message(self, _channel: Any, method: Any, properties: Any, body: bytes) -> None:
        with self._changed:
            self._arrived.append((method.delivery_tag, self._frame_of(properties, body)))
            self._changed.notify_all()

    def _on_close(self, _channel: Any, reason: BaseException) -> None:
        with self._changed:
            self._ended = reason
            self._changed.notify_all()
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(Broken(str(reason)))
