"""The bare loops on pika and proton: both call back, so each is a small state machine."""

from __future__ import annotations

from time import perf_counter
from typing import Any, Final
from urllib.parse import urlsplit

import pika  # type: ignore[import-untyped]
from proton import Message, symbol
from proton.handlers import MessagingHandler
from proton.reactor import Container, LinkOption
from transports_message import BATCH, TAKE, Made, batches, look, make

__all__ = ["ArtemisLoop", "RabbitLoop"]

_CREDIT: Final = 200


class RabbitLoop:
    """A `SelectConnection`: persistent, confirmed in windows; an ack for all after every batch."""

    def __init__(self, url: str, queue: str) -> None:
        self._queue = queue
        self._unconfirmed: set[int] = set()
        self._published = 0
        self._handled = self._wanted = 0
        self._tag = ""
        self._connection = pika.SelectConnection(pika.URLParameters(url), self._opened)
        self._connection.ioloop.start()

    def _opened(self, connection: Any) -> None:
        connection.channel(on_open_callback=self._ready)

    def _ready(self, channel: Any) -> None:
        self._channel = channel
        channel.confirm_delivery(self._confirmed)
        channel.basic_qos(prefetch_count=_CREDIT)
        channel.queue_declare(
            self._queue, durable=True, callback=lambda _: self._connection.ioloop.stop()
        )

    def _confirmed(self, frame: Any) -> None:
        tag = frame.method.delivery_tag
        if isinstance(frame.method, pika.spec.Basic.Nack):
            raise SystemExit("the broker refused a message")
        if frame.method.multiple:
            self._unconfirmed = {one for one in self._unconfirmed if one > tag}
        else:
            self._unconfirmed.discard(tag)
        if not self._unconfirmed:
            self._connection.ioloop.stop()

    def publish(self, count: int) -> float:
        start = perf_counter()
        for numbers in batches(count, BATCH):
            for made in map(make, numbers):
                properties = pika.BasicProperties(
                    type=made.urn, correlation_id=made.trace_id, message_id=made.id,
                    app_id="babelqueue", content_type="application/json", content_encoding="utf-8",
                    delivery_mode=2,
                    headers={"x-schema-version": 1, "x-source-lang": "python", "x-attempts": 0},
                )  # fmt: skip
                self._channel.basic_publish("", self._queue, made.body, properties, mandatory=True)
                self._published += 1
                self._unconfirmed.add(self._published)
            self._connection.ioloop.start()
        return perf_counter() - start

    def consume(self, count: int) -> float:
        self._handled, self._wanted = 0, count
        start = perf_counter()
        self._tag = self._channel.basic_consume(self._queue, self._arrived)
        self._connection.ioloop.start()
        return perf_counter() - start

    def _arrived(self, channel: Any, method: Any, _properties: Any, body: bytes) -> None:
        look(body)
        self._handled += 1
        if self._handled % TAKE == 0 or self._handled == self._wanted:
            channel.basic_ack(method.delivery_tag, multiple=True)
        if self._handled == self._wanted:
            channel.basic_cancel(self._tag, lambda _: self._connection.ioloop.stop())

    def close(self) -> None:
        self._connection.add_on_close_callback(lambda *_: self._connection.ioloop.stop())
        self._connection.close()
        self._connection.ioloop.start()


class _Anycast(LinkOption):
    def apply(self, link: Any) -> None:
        terminus = link.target if link.is_sender else link.source
        terminus.capabilities.put_object(symbol("queue"))


class _Sending(MessagingHandler):
    """Sends while there is credit; done when each is accepted."""

    def __init__(self, url: str, queue: str, count: int) -> None:
        super().__init__()
        self._url, self._queue, self._count = url, queue, count
        self._sent = self._accepted = 0
        self._window = 0
        self.seconds = 0.0

    def on_start(self, event: Any) -> None:
        connection = event.container.connect(
            self._url, reconnect=False, allowed_mechs="PLAIN ANONYMOUS"
        )
        event.container.create_sender(connection, self._queue, options=_Anycast())

    def on_sendable(self, event: Any) -> None:
        if not self._sent:
            self.seconds = perf_counter()
        self._send(event.sender)

    def _send(self, sender: Any) -> None:
        while sender.credit and self._sent < min(self._count, self._window + BATCH):
            sender.send(_message(make(self._sent)))
            self._sent += 1

    def on_accepted(self, event: Any) -> None:
        self._accepted += 1
        if self._accepted == self._count:
            self.seconds = perf_counter() - self.seconds
            event.connection.close()
        elif self._accepted == self._window + BATCH:
            self._window = self._accepted
            self._send(event.link)


class _Receiving(MessagingHandler):
    """Accepts each message when it is read; timed from the first."""

    def __init__(self, url: str, queue: str, count: int) -> None:
        super().__init__(prefetch=_CREDIT, auto_accept=False)
        self._url, self._queue, self._count = url, queue, count
        self._done = 0
        self.seconds = 0.0

    def on_start(self, event: Any) -> None:
        connection = event.container.connect(
            self._url, reconnect=False, allowed_mechs="PLAIN ANONYMOUS"
        )
        event.container.create_receiver(connection, self._queue, options=_Anycast())
        self.seconds = perf_counter()

    def on_message(self, event: Any) -> None:
        if self._done == self._count:
            self.release(event.delivery, delivered=False)
            return
        look(event.message.body.encode())
        self.accept(event.delivery)
        self._done += 1
        if self._done == self._count:
            self.seconds = perf_counter() - self.seconds
            event.connection.close()


def _message(made: Made) -> Message:
    message = Message(
        body=made.body.decode(),
        durable=True,
        correlation_id=made.trace_id,
        annotations={symbol("x-opt-jms-type"): made.urn},
        properties={
            "bq_schema_version": "1",
            "bq_source_lang": "python",
            "bq_attempts": "0",
            "bq_app_id": "babelqueue",
        },
    )
    message.creation_time = made.created_at / 1000
    return message


class ArtemisLoop:
    """proton's own event loop."""

    def __init__(self, url: str, queue: str) -> None:
        parts = urlsplit(url)
        self._url, self._queue = f"amqp://{parts.netloc}", queue

    def publish(self, count: int) -> float:
        return self._run(_Sending(self._url, self._queue, count))

    def consume(self, count: int) -> float:
        return self._run(_Receiving(self._url, self._queue, count))

    @staticmethod
    def _run(handler: Any) -> float:
        Container(handler).run()
        seconds: float = handler.seconds
        return seconds

    def close(self) -> None:
        """There is nothing to end: a connection lasts for one round."""
