"""RabbitMQ over pika: durable queues, confirmed publishing, manual acknowledgement.

URL: `amqp://[user:password@]host[:port][/vhost]`, `amqps://` for TLS, with the options

    queue_type=quorum   type of new queues (default: classic)
    prefetch=200        maximum unacknowledged deliveries
    heartbeat=60        seconds
    timeout=10          maximum seconds of any single call
    ca, verify          certificates to trust with `amqps://` (`brokers/tls.py`)

An existing queue is used unchanged. Messages go through the default exchange; a message that
reaches no queue is an error. RabbitMQ has no delays of its own, so the runtime holds a retry back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tallystick.brokers.tls import TLS_OPTIONS, read_tls
from tallystick.core.errors import UsageError
from tallystick.core.extras import importing
from tallystick.core.frame import Frame
from tallystick.core.tap import Tap, Watch
from tallystick.core.transport import (
    Address,
    Capabilities,
    Delivery,
    check_options,
    lost,
    read_number,
    unreachable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tallystick.brokers.rabbitmq.connection import Connection

__all__ = ["RabbitTransport", "connect"]

_OPTIONS: Final = ("queue_type", "prefetch", "heartbeat", "timeout", *TLS_OPTIONS)
_TYPES: Final = ("classic", "quorum")
_PROPERTIES: Final = (
    "content_type", "content_encoding", "delivery_mode", "priority", "correlation_id", "reply_to",
    "expiration", "message_id", "timestamp", "type", "user_id", "app_id",
)  # fmt: skip
_CARRIED: Final = frozenset(_PROPERTIES) - {"expiration", "user_id"}
_DURABLE: Final = 2


class RabbitTransport:
    """One connection to RabbitMQ, opened on first use and again after a failure."""

    capabilities = Capabilities(
        delays=False, headers=True, ordered=True, returns="connection", counts=False
    )

    def __init__(
        self, address: Address, open_connection: Callable[[], Connection], queue_type: str
    ) -> None:
        self._address: Final = address
        self._open: Final = open_connection
        self._arguments: Final = {} if queue_type == "classic" else {"x-queue-type": queue_type}
        self._connection: Connection | None = None

    def ensure(self, queues: Sequence[str]) -> None:
        """Declare the queues that do not exist."""
        with self._talking() as connection:
            for queue in queues:
                connection.declare(queue, self._arguments)

    def send(self, queue: str, frames: Sequence[Frame]) -> None:
        """Publish and wait for every confirm."""
        with self._talking() as connection:
            connection.publish([(queue, _properties(frame), frame.body) for frame in frames])

    def receive(self, queue: str, limit: int, timeout: float) -> list[Delivery]:
        """Return the messages that the broker has pushed, or wait for one."""
        with self._talking() as connection:
            channel, taken = connection.receive(queue, limit, timeout)
        return [
            Delivery(_frame(properties, body), queue, (connection, channel, method.delivery_tag))
            for method, properties, body in taken
        ]

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Acknowledge; deliveries of a closed connection are lost."""
        self._settle(deliveries)

    def release(self, delivery: Delivery, delay: float = 0.0) -> None:  # noqa: ARG002
        """Put it back at its place in the queue."""
        self._settle([delivery], requeue=True)

    def replace(self, delivery: Delivery, queue: str, frame: Frame) -> None:
        """Publish, wait for the confirm, then acknowledge."""
        held: Connection = delivery.handle[0]
        if held is not self._connection or not held.usable:
            raise lost()
        self.send(queue, [frame])
        self._settle([delivery])

    def leave(self, delivery: Delivery) -> None:
        """Put it back: without an ack it would use a place of the prefetch until the end."""
        self.release(delivery)

    def give_up(self, delivery: Delivery, reason: str) -> None:  # noqa: ARG002
        """Put it back: the queue may have no dead-letter policy."""
        self.release(delivery)

    def renew(self, deliveries: Sequence[Delivery]) -> list[Delivery]:  # noqa: ARG002
        """Do nothing: a delivery stays valid until its connection ends."""
        return []

    def close(self) -> None:
        """Close the connection; the broker puts unsettled messages back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def backlog(self, queue: str) -> int:
        """Return the number of ready messages."""
        with self._talking() as connection:
            return connection.count(queue)

    def tap(self, watch: Watch) -> Tap:
        """Get a copy from an exchange, or peek."""
        from tallystick.brokers.rabbitmq.tap import RabbitTap, check_watch  # noqa: PLC0415

        check_watch(watch)
        with self._talking() as connection:
            return RabbitTap(connection, watch, _frame, self._talking)

    def _settle(self, deliveries: Sequence[Delivery], *, requeue: bool = False) -> None:
        from tallystick.brokers.rabbitmq.connection import Broken  # noqa: PLC0415

        current = self._connection
        mine = [one.handle for one in deliveries if one.handle[0] is current]
        try:
            if mine and current is not None:
                tags = [tag for _, _, tag in mine]
                current.settle(mine[0][1], tags, requeue=requeue)
        except Broken as error:
            raise lost() from error
        if len(mine) < len(deliveries):
            raise lost()

    @contextmanager
    def _talking(self) -> Iterator[Connection]:
        from tallystick.brokers.rabbitmq.connection import Broken  # noqa: PLC0415

        try:
            if self._connection is not None and not self._connection.usable:
                self.close()
            if self._connection is None:
                self._connection = self._open()
            yield self._connection
        except (Broken, OSError) as error:
            raise unreachable(self._address, error) from error


def _properties(frame: Frame) -> Any:
    import pika  # type: ignore[import-untyped]  # noqa: PLC0415

    held = {key: frame.get("properties", key) for key in _CARRIED}
    fields = {key: value for key, value in held.items() if value is not None}
    headers = dict(frame.sections.get("headers", {}))
    return pika.BasicProperties(**{"delivery_mode": _DURABLE, **fields, "headers": headers or None})


def _frame(properties: Any, body: bytes) -> Frame:
    held = {key: getattr(properties, key) for key in _PROPERTIES}
    fields = {key: value for key, value in held.items() if value is not None}
    return Frame(body, {"properties": fields, "headers": dict(properties.headers or {})})


def connect(address: Address) -> Callable[[], RabbitTransport]:
    """Give a way to open connections to the RabbitMQ that the address names."""
    check_options(address, _OPTIONS)
    queue_type = address.options.get("queue_type", "classic")
    if queue_type not in _TYPES:
        hint = f"use one of {', '.join(_TYPES)}"
        raise UsageError(f"unknown queue_type {queue_type!r}", code="url_option", hint=hint)
    timeout = read_number(address, "timeout", 10.0)
    prefetch = int(read_number(address, "prefetch", 200))
    heartbeat = int(read_number(address, "heartbeat", 60))
    with importing("rabbitmq"):
        import pika  # noqa: PLC0415

        from tallystick.brokers.rabbitmq.connection import Connection  # noqa: PLC0415
    tls = read_tls(address, secure=address.scheme == "amqps", instead="amqps://")
    parameters = pika.ConnectionParameters(
        host=address.host or "127.0.0.1",
        port=address.port or (5671 if tls else 5672),
        virtual_host=address.path or "/",
        credentials=pika.PlainCredentials(address.user or "guest", address.password or "guest"),
        ssl_options=pika.SSLOptions(tls.context(), address.host) if tls else None,
        heartbeat=heartbeat,
        blocked_connection_timeout=timeout,
        socket_timeout=timeout,
        stack_timeout=timeout,
        connection_attempts=1,
    )

    def open_connection() -> Connection:
        return Connection(parameters, timeout, prefetch)

    return lambda: RabbitTransport(address, open_connection, queue_type)
