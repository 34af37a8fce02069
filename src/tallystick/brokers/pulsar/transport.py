"""Apache Pulsar over pulsar-client: a shared subscription, acknowledged one by one.

URL: `pulsar://[:token@]host[:port]`, `pulsar+ssl://` for TLS, with the options

    subscription=babelqueue   tenant=public   namespace=default
    nack_delay=1              seconds until a returned delivery is delivered again
    prefetch=1000             messages that the client requests ahead, at least 1; messages that
                              were sent together are delivered together
    timeout=30                maximum seconds of any single call
    ca, verify                certificates to trust with `pulsar+ssl://` (`brokers/tls.py`)

A topic keeps messages only for existing subscriptions, so `ensure` creates ours before anything is
sent. A broker that has just started refuses producers and consumers for a while; the transport
tries again until the timeout. The password of the URL may be a token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from datetime import timedelta
from os import devnull
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final

from tallystick.brokers.pulsar.binding import BINDING
from tallystick.brokers.tls import TLS_OPTIONS, find_fault, read_tls, system_ca
from tallystick.core.extras import importing
from tallystick.core.frame import Frame
from tallystick.core.names import name
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

__all__ = ["PulsarTransport", "connect"]

_OPTIONS: Final = (
    "subscription", "tenant", "namespace", "nack_delay", "prefetch", "timeout", *TLS_OPTIONS,
)  # fmt: skip
_LULL_MS: Final = 1
_GATHER: Final = 0.005
"""Maximum seconds to collect messages: a batch costs less than single messages."""
_LOT: Final = 48
"""Maximum messages per receive, so that they stay in the caches of the processor."""
_PAUSE: Final = 0.2
_TRIES: Final = 3
_FINAL: Final = (
    "AuthenticationError", "AuthorizationError", "InvalidTopicName", "InvalidUrl",
    "InvalidConfiguration", "IncompatibleSchema", "AlreadyClosed", "TopicTerminated",
    "UnsupportedVersionError",
)  # fmt: skip
"""Errors that another try does not change; a broker that has just started gives others."""


class PulsarTransport:
    """One client, with a producer and a consumer for each topic that is used."""

    capabilities = Capabilities(
        delays=True, headers=True, ordered=False, returns="connection", counts=False, buffered=True
    )

    def __init__(
        self,
        address: Address,
        open_client: Callable[[], Any],
        timeout: float,
        find_fault: Callable[[], str] = str,
    ) -> None:
        self._address: Final = address
        self._open: Final = open_client
        self._timeout: Final = timeout
        self._find_fault: Final = find_fault
        self._nack_ms: Final = int(read_number(address, "nack_delay", 1.0) * 1000)
        self._prefetch: Final = max(int(read_number(address, "prefetch", 1000)), 1)
        self._client: Any = None
        self._producers: Final[dict[str, Any]] = {}
        self._consumers: Final[dict[str, Any]] = {}

    def ensure(self, queues: Sequence[str]) -> None:
        """Create the subscription of each topic, so that no later message is dropped."""
        with self._talking():
            for queue in queues:
                if queue not in self._consumers:
                    self._subscribe(queue).close()

    def send(self, queue: str, frames: Sequence[Frame]) -> None:
        """Send all, and wait until the broker has confirmed each."""
        results: list[Any] = []
        with self._talking() as pulsar:
            producer = self._producer(queue)
            for frame in frames:
                wait = frame.get("message", "deliver_after")
                later = {} if wait is None else {"deliver_after": timedelta(milliseconds=wait)}
                properties = dict(frame.sections.get("properties", {}))
                producer.send_async(
                    frame.body,
                    lambda result, _message: results.append(result),
                    properties=properties,
                    **later,
                )
            producer.flush()
            wrong = [one for one in results if one != pulsar.Result.Ok]
            if wrong or len(results) < len(frames):
                raise OSError(
                    str(wrong[0]) if wrong else ("the broker did not confirm every message")
                )

    def receive(self, queue: str, limit: int, timeout: float) -> list[Delivery]:
        """Wait for the first message, then take those that arrived with it."""
        with self._talking():
            consumer = self._consumers.get(queue)
            if consumer is None:
                face = self._subscribe(queue)
                # what stands below the client's Python face does the same, with an object less for
                # every message; a version without it is only slower
                consumer = self._consumers[queue] = getattr(face, "_consumer", face)
            messages = self._pull(consumer, limit, int(timeout * 1000))
        return [Delivery(_frame(one), queue, (consumer, one)) for one in messages]

    @staticmethod
    def _pull(consumer: Any, limit: int, wait: int) -> list[Any]:
        """Wait for the first message, then take more until there is a lull.

        One by one: `batch_receive` waits for another thread of the client each time.
        """
        import pulsar  # type: ignore[import-untyped]  # noqa: PLC0415

        messages: list[Any] = []
        try:
            messages.append(consumer.receive(wait))
            end = monotonic() + _GATHER
            for _ in range(1, min(limit, _LOT)):
                messages.append(consumer.receive(_LULL_MS))
                if monotonic() >= end:
                    break
        except pulsar.PulsarException as error:
            if not messages and not isinstance(error, pulsar.Timeout):
                raise  # else what was taken is ours to handle, and the next call says what is wrong
        return messages

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Acknowledge each."""
        consumers, gone = self._consumers, False
        with self._talking():
            for one in deliveries:
                consumer, message = one.handle
                is_mine = consumers.get(one.queue) is consumer
                if is_mine:
                    consumer.acknowledge(message)
                else:
                    gone = True
        if gone:
            raise lost()

    def release(self, delivery: Delivery, delay: float = 0.0) -> None:  # noqa: ARG002
        """Return it; it is delivered again after the delay of the subscription."""
        if not self._is_mine(delivery):
            raise lost()
        with self._talking():
            delivery.handle[0].negative_acknowledge(delivery.handle[1])

    def replace(self, delivery: Delivery, queue: str, frame: Frame) -> None:
        """Send, wait for the confirmation, then acknowledge."""
        if not self._is_mine(delivery):
            raise lost()
        self.send(queue, [frame])
        self.ack([delivery])

    def leave(self, delivery: Delivery) -> None:
        """Return it to the broker."""
        self.release(delivery)

    def give_up(self, delivery: Delivery, reason: str) -> None:  # noqa: ARG002
        """Return it: a dead-letter policy belongs to the subscription."""
        self.release(delivery)

    def renew(self, deliveries: Sequence[Delivery]) -> list[Delivery]:  # noqa: ARG002
        """Do nothing: a delivery stays valid until its connection ends."""
        return []

    def close(self) -> None:
        """Close the client; unsettled messages go to another consumer."""
        client = self._client
        self._drop()
        if client is not None:
            client.close()

    def tap(self, watch: Watch) -> Tap:
        """Read a topic without a durable subscription."""
        from tallystick.brokers.pulsar.tap import PulsarTap  # noqa: PLC0415

        with self._talking() as pulsar:
            place = getattr(pulsar.MessageId, watch.start)
            reader = self._client.create_reader(self._topic(watch.queue), place)
        return PulsarTap(reader, _frame, self._talking)

    def _drop(self) -> None:
        """Forget a client that has ended, so that the next call begins with another."""
        self._producers.clear()
        self._consumers.clear()
        self._client = None

    def _is_mine(self, delivery: Delivery) -> bool:
        return self._consumers.get(delivery.queue) is delivery.handle[0]

    def _topic(self, queue: str) -> str:
        tenant = self._address.options.get("tenant", "public")
        namespace = self._address.options.get("namespace", "default")
        topic = name(BINDING.names, "topic", queue)
        return topic.replace("public/default", f"{tenant}/{namespace}", 1)

    def _producer(self, queue: str) -> Any:
        if queue not in self._producers:
            self._producers[queue] = self._insist(
                self._client.create_producer,
                self._topic(queue),
                block_if_queue_full=True,
                batching_enabled=True,
                batching_max_publish_delay_ms=1,
                send_timeout_millis=int(self._timeout * 1000),
            )
        return self._producers[queue]

    def _subscribe(self, queue: str) -> Any:
        import pulsar  # noqa: PLC0415

        group = self._address.options.get("subscription")
        return self._insist(
            self._client.subscribe,
            self._topic(queue),
            group or name(BINDING.names, "subscription", queue),
            consumer_type=pulsar.ConsumerType.Shared,
            initial_position=pulsar.InitialPosition.Earliest,
            negative_ack_redelivery_delay_ms=self._nack_ms,
            receiver_queue_size=self._prefetch,
        )

    def _insist(self, ask: Callable[..., Any], *words: Any, **settings: Any) -> Any:
        """Ask until it is done, or refused for good, or the time is over."""
        import pulsar  # noqa: PLC0415

        end = monotonic() + self._timeout
        while True:
            try:
                return ask(*words, **settings)
            except pulsar.PulsarException as error:
                if type(error).__name__ in _FINAL or monotonic() + _PAUSE >= end:
                    raise
            sleep(_PAUSE)

    @contextmanager
    def _talking(self) -> Iterator[Any]:
        import pulsar  # noqa: PLC0415

        try:
            if self._client is None:
                self._client = self._open()
            yield pulsar
        except (pulsar.PulsarException, OSError) as error:
            if isinstance(error, pulsar.AlreadyClosed):
                self._drop()
            fault = self._find_fault() if isinstance(error, pulsar.ConnectError) else ""
            if isinstance(error, pulsar.Timeout) and self._address.password:
                fault = (
                    "no answer in time: the broker is down, or it rejected the token (unauthorized)"
                )
            raise unreachable(self._address, OSError(fault) if fault else error) from error


def _frame(message: Any) -> Frame:
    sections = {
        "properties": message.properties(),
        "message": {"redelivery_count": message.redelivery_count()},
    }
    return Frame(message.data(), sections)


def connect(address: Address) -> Callable[[], PulsarTransport]:
    """Give a way to open clients of the cluster that the address names."""
    check_options(address, _OPTIONS)
    timeout = read_number(address, "timeout", 30.0)
    for option in ("nack_delay", "prefetch"):  # said now, and not when a worker connects
        read_number(address, option, 1)
    with importing("pulsar"):
        import pulsar  # noqa: PLC0415
    tls = read_tls(address, secure=address.scheme == "pulsar+ssl", instead="pulsar+ssl://")
    host, port = address.host or "127.0.0.1", address.port or (6651 if tls else 6650)
    trust: dict[str, Any] = {}
    if tls is not None:
        trust = {
            "tls_trust_certs_file_path": tls.ca or system_ca(),
            "tls_allow_insecure_connection": not tls.verify,
            "tls_validate_hostname": tls.verify,
        }
    token = pulsar.AuthenticationToken(address.password) if address.password else None

    def open_client() -> Any:
        return pulsar.Client(
            f"{address.scheme}://{host}:{port}",
            authentication=token,
            operation_timeout_seconds=max(int(timeout / _TRIES), 1),
            logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, devnull),
            **trust,
        )

    return lambda: PulsarTransport(
        address, open_client, timeout, lambda: find_fault(tls, host, port, timeout)
    )
