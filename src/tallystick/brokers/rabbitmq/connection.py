"""One AMQP 0-9-1 connection in its own thread, so that heartbeats never wait for a handler.

pika's `SelectConnection` runs in that thread; other threads use it through `call`, with a timeout.
Publishing is confirmed and mandatory: a message that reaches no queue is an error, not a loss.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from itertools import takewhile
from threading import Condition, Thread
from time import monotonic
from typing import Any, Final

import pika  # type: ignore[import-untyped]

__all__ = ["Broken", "Connection", "Publication"]

Publication = tuple[str, Any, bytes]
"""A routing key, its properties, and a body."""


class Broken(Exception):
    """The connection or a channel ended, or did not answer in time."""


class _Batch:
    """Messages published together: done when each of them is confirmed."""

    def __init__(self, count: int, done: Future[None]) -> None:
        self.unconfirmed = count
        self.done: Final = done

    def confirm(self) -> None:
        self.unconfirmed -= 1
        if not self.unconfirmed and not self.done.done():
            self.done.set_result(None)

    def fail(self, text: str) -> None:
        if not self.done.done():
            self.done.set_exception(Broken(text))


class Connection:
    """An open connection, until `close` or a failure; a broken one is not used again."""

    def __init__(self, parameters: Any, timeout: float, prefetch: int) -> None:
        self._timeout: Final = timeout
        self._prefetch: Final = prefetch
        self._opened: Final[Future[None]] = Future()
        self._failure: BaseException | None = None
        self._arrived: Final = Condition()
        self._deliveries: Final[dict[str, deque[tuple[Any, Any, bytes]]]] = {}
        self._unsettled: Final[dict[int, str]] = {}
        self._windows: Final[dict[str, str]] = {}
        self._told = True
        self._blocked = ""
        self._unconfirmed: Final[dict[int, tuple[str, _Batch]]] = {}
        self._published = 0
        self._publishing: Any = None
        self._consuming: Any = None
        self._connection = pika.SelectConnection(
            parameters, self._on_open, self._on_open_error, self._on_close
        )
        self._thread: Final = Thread(target=self._run, name="tallystick-amqp", daemon=True)
        self._thread.start()
        try:
            self._opened.result(timeout)
        except Late as error:
            self.close()
            raise Broken(f"no answer within {timeout:g} s") from error

    @property
    def usable(self) -> bool:
        """Whether the connection is still usable."""
        return self._failure is None

    def call(self, function: Callable[[Future[Any]], None]) -> Any:
        """Run a function on the thread of the connection, and wait for its future."""
        future: Future[Any] = Future()

        def run() -> None:
            if self._failure is not None:
                future.set_exception(Broken(_words(self._failure)))
                return
            try:
                function(future)
            except pika.exceptions.AMQPError as error:
                future.set_exception(Broken(repr(error)))
            except Exception as error:  # noqa: BLE001 (raised again where it was called)
                future.set_exception(error)

        if self._failure is not None:
            raise Broken(_words(self._failure))
        self._connection.ioloop.add_callback_threadsafe(run)
        end = monotonic() + self._timeout
        while True:
            try:
                return future.result(min(0.2, max(end - monotonic(), 0.001)))
            except Late:
                if self._failure is not None:
                    raise Broken(_words(self._failure)) from None
                if monotonic() >= end:
                    why = (
                        f": the broker has blocked publishers ({self._blocked})"
                        if self._blocked
                        else ""
                    )
                    raise Broken(f"no answer within {self._timeout:g} s{why}") from None

    def open_channel(self) -> Any:
        """Open another channel beside the two standard ones."""
        return self.call(lambda done: self._connection.channel(on_open_callback=done.set_result))

    def declare(self, queue: str, arguments: dict[str, Any]) -> None:
        """Create a durable queue if it does not exist, on a separate channel that may fail."""
        try:
            self.call(lambda done: self._declare(done, queue, passive=True, arguments={}))
        except Broken:
            self.call(lambda done: self._declare(done, queue, passive=False, arguments=arguments))

    def count(self, queue: str) -> int:
        """Return the number of ready messages of a queue."""
        declare = self._declare
        return int(self.call(lambda done: declare(done, queue, passive=True, arguments={})))

    def publish(self, messages: Sequence[Publication]) -> None:
        """Publish all, and wait until the broker has confirmed all."""

        def send(done: Future[None]) -> None:
            batch = _Batch(len(messages), done)
            for queue, properties, body in messages:
                self._publishing.basic_publish("", queue, body, properties, mandatory=True)
                self._published += 1
                self._unconfirmed[self._published] = (queue, batch)

        self.call(send)

    def receive(
        self, queue: str, limit: int, timeout: float
    ) -> tuple[Any, list[tuple[Any, Any, bytes]]]:
        """Return the channel, and up to `limit` deliveries of a queue."""
        held = self._deliveries.setdefault(queue, deque())
        if not held and self._is_used_up(queue):
            self.call(lambda done: self._consume(done, queue))
        with self._arrived:
            self._arrived.wait_for(lambda: held or self._failure is not None, timeout)
            if not held and self._failure is not None:
                raise Broken(_words(self._failure))
            return self._consuming, [held.popleft() for _ in range(min(limit, len(held)))]

    def settle(self, channel: Any, tags: Sequence[int], *, requeue: bool = False) -> None:
        """Acknowledge deliveries of this channel, or put them back.

        An acknowledgement has no reply, so there is nothing to wait for. Deliveries below every
        unsettled one are acknowledged together.
        """
        if channel is not self._consuming or self._failure is not None:
            raise Broken("the channel is closed")

        def answer() -> None:
            if not channel.is_open:
                return
            for tag in tags:
                self._unsettled.pop(tag, None)
            lowest = next(iter(self._unsettled), max(tags) + 1)
            together = 0 if requeue else max((tag for tag in tags if tag < lowest), default=0)
            if together:
                channel.basic_ack(together, multiple=True)
            for tag in tags:
                if requeue:
                    channel.basic_nack(tag, requeue=True)
                elif tag > together:
                    channel.basic_ack(tag)

        self._connection.ioloop.add_callback_threadsafe(answer)

    def close(self) -> None:
        """End the connection and its thread."""
        if self._failure is None:
            self._connection.ioloop.add_callback_threadsafe(self._close)
        self._thread.join(self._timeout)

    def _close(self) -> None:
        if self._connection.is_open:
            self._connection.close()
        elif not self._connection.is_closing:
            self._fail(Broken("the connection was closed while it was being opened"))
            self._connection.ioloop.stop()

    def _run(self) -> None:
        try:
            self._connection.ioloop.start()
        except Exception as error:  # noqa: BLE001 (told to whoever asks next)
            self._fail(error)
        finally:
            self._fail(Broken("closed"))
            self._connection.ioloop.close()

    def _fail(self, error: BaseException) -> None:
        with self._arrived:
            if self._failure is None:
                self._failure = error
            self._arrived.notify_all()
        if not self._opened.done():
            self._opened.set_exception(Broken(_words(error)))
        for _, batch in self._unconfirmed.values():
            batch.fail(_words(error))
        self._unconfirmed.clear()

    def _on_blocked(self, _connection: Any, frame: Any) -> None:
        self._blocked = frame.method.reason or "no room"

    def _on_unblocked(self, _connection: Any, _frame: Any) -> None:
        self._blocked = ""

    def _on_open(self, connection: Any) -> None:
        connection.add_on_connection_blocked_callback(self._on_blocked)
        connection.add_on_connection_unblocked_callback(self._on_unblocked)
        connection.channel(on_open_callback=self._on_publishing)

    def _on_publishing(self, channel: Any) -> None:
        self._publishing = channel
        channel.add_on_close_callback(self._on_channel_close)
        channel.add_on_return_callback(self._on_return)
        channel.confirm_delivery(self._on_confirm, callback=self._on_confirming)

    def _on_confirming(self, _frame: Any) -> None:
        self._connection.channel(on_open_callback=self._on_consuming)

    def _on_consuming(self, channel: Any) -> None:
        self._consuming = channel
        channel.add_on_close_callback(self._on_channel_close)
        channel.add_on_cancel_callback(
            lambda _frame: self._on_channel_close(
                channel, Broken("the broker ended the consumer: its queue was deleted or moved")
            )
        )
        channel.basic_qos(prefetch_count=self._prefetch, callback=self._on_ready)

    def _on_ready(self, _frame: Any) -> None:
        if not self._opened.done():
            self._opened.set_result(None)

    def _on_open_error(self, connection: Any, error: BaseException) -> None:
        self._fail(error)
        connection.ioloop.stop()

    def _on_close(self, connection: Any, reason: BaseException) -> None:
        self._fail(reason)
        connection.ioloop.stop()

    def _on_channel_close(self, channel: Any, reason: BaseException) -> None:
        """Open new channels after one of the two has closed: nothing on it can be settled."""
        self._fail(reason)
        if channel.connection.is_open:
            channel.connection.close()

    def _on_confirm(self, frame: Any) -> None:
        """Note a confirm: they come one by one in any order, or for all up to a tag."""
        method = frame.method
        tags = [method.delivery_tag]
        if method.multiple:
            tags = list(takewhile(lambda tag: tag <= method.delivery_tag, self._unconfirmed))
        for tag in tags:
            _, batch = self._unconfirmed.pop(tag)
            if isinstance(method, pika.spec.Basic.Nack):
                batch.fail("the broker rejected a message")
            else:
                batch.confirm()

    def _on_return(self, _channel: Any, method: Any, _properties: Any, _body: bytes) -> None:
        for queue, batch in self._unconfirmed.values():
            if queue == method.routing_key:
                batch.fail(f"{method.reply_text}: there is no queue {queue!r}")
                return

    def _is_used_up(self, queue: str) -> bool:
        """Return whether the broker sends no more: no consumer, or a full window."""
        window = self._windows.get(queue)
        out = list(self._unsettled.values())  # a copy: the connection's thread changes it
        return window is None or 0 < self._prefetch <= out.count(window)

    def _consume(self, done: Future[None], queue: str) -> None:
        """Begin a consumer, with a window of its own, in place of the one before.

        Whoever asks for more than a window holds keeps deliveries back on purpose, and they do not
        stop the queue. What the consumer before has out can still be settled, and nothing else is
        on its way to it: it was asked here, where acknowledgements are written.
        """
        if not self._is_used_up(queue):
            done.set_result(None)
            return
        held, before = self._deliveries[queue], self._windows.get(queue)

        def arrived(_channel: Any, method: Any, properties: Any, body: bytes) -> None:
            self._unsettled[method.delivery_tag] = method.consumer_tag
            held.append((method, properties, body))
            if self._told:  # once for all that came in one piece
                self._told = False
                self._connection.ioloop.add_callback(self._tell)

        if before is not None:
            self._consuming.basic_cancel(before)
        self._windows[queue] = self._consuming.basic_consume(
            queue, arrived, callback=lambda _: done.set_result(None)
        )

    def _tell(self) -> None:
        self._told = True
        with self._arrived:
            self._arrived.notify_all()

    def _declare(
        self, done: Future[int], queue: str, *, passive: bool, arguments: dict[str, Any]
    ) -> None:
        def closed(_channel: Any, reason: BaseException) -> None:
            if not done.done():
                done.set_exception(Broken(_words(reason)))

        def declared(frame: Any) -> None:
            done.set_result(frame.method.message_count)
            channels[0].close()

        def opened(channel: Any) -> None:
            channels.append(channel)
            channel.add_on_close_callback(closed)
            channel.queue_declare(
                queue, passive=passive, durable=True, arguments=arguments, callback=declared
            )

        channels: list[Any] = []
        self._connection.channel(on_open_callback=opened)


def _words(error: BaseException) -> str:
    """Return the innermost error: pika wraps one error in another, or in a list."""
    wrapped = getattr(error, "exception", None)
    if isinstance(wrapped, BaseException):
        return _words(wrapped)
    inner = getattr(error, "exceptions", None) or getattr(error, "args", ())
    if inner and isinstance(inner[-1], BaseException):
        return _words(inner[-1])
    return str(error) or type(error).__name__
