"""Azure Service Bus over azure-servicebus, with PeekLock.

URL: `sb://[keyname:key@]host[:port]`, `servicebus://` or `azureservicebus://`, with the options

    emulator=1    plain AMQP to an emulator; so for a host of this machine unless emulator=0
    prefetch=0    messages that the client may have locked before they are asked for
    timeout=30    seconds that connecting may take
    ca, verify    whom to trust (`brokers/tls.py`); the service always speaks TLS, an emulator never

The key goes into no text. Locks, deliveries and the dead-letter queue are the service's own; a
queue's settings are made where it is made, in the service, and not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from time import time
from typing import Any, Final

from tallystick.brokers.tls import TLS_OPTIONS, read_tls
from tallystick.core.errors import Refused, UsageError
from tallystick.core.frame import Frame
from tallystick.core.slot import Long
from tallystick.core.transport import (
    Address,
    Capabilities,
    Delivery,
    check_options,
    is_on,
    lost,
    missing_client,
    read_number,
    unreachable,
)

__all__ = ["ServiceBusTransport", "connect", "write_connection"]

_OPTIONS: Final = ("emulator", "prefetch", "timeout", *TLS_OPTIONS)
_HERE: Final = ("127.0.0.1", "localhost", "::1")
_FIELDS: Final = ("subject", "correlation_id", "message_id", "content_type")
_INT: Final = 2**31
_LONGEST_REASON: Final = 4096
_NOBODY: Final = ("RootManageSharedAccessKey", "SAS_KEY_VALUE")
"""What an emulator, which checks no login, is told."""


class ServiceBusTransport:
    """One client, with a sender and a receiver for each queue that is used."""

    capabilities = Capabilities(
        delays=True, headers=True, ordered=True, returns="deadline", counts=True
    )

    def __init__(self, address: Address, open_client: Callable[[], Any], prefetch: int) -> None:
        self._address: Final = address
        self._open: Final = open_client
        self._prefetch: Final = prefetch
        self._client: Any = None
        self._senders: Final[dict[str, Any]] = {}
        self._receivers: Final[dict[str, Any]] = {}

    def ensure(self, queues: Sequence[str]) -> None:
        """Open a sender to each: a queue that does not exist is said now."""
        with self._talking():
            for queue in queues:
                self._sender(queue)

    def send(self, queue: str, frames: Sequence[Frame]) -> None:
        """Send in batches as large as the service takes."""
        with self._talking():
            sender = self._sender(queue)
            batch = sender.create_message_batch()
            for message in map(_message, frames):
                if _fits(batch, message):
                    continue
                if len(batch):
                    sender.send_messages(batch)
                    batch = sender.create_message_batch()
                if not _fits(batch, message):
                    raise Refused(
                        f"this message is larger than Service Bus takes for {queue}",
                        code="too_large",
                        hint=f"{batch.max_size_in_bytes} bytes, with its properties",
                    )
            if len(batch):
                sender.send_messages(batch)

    def receive(self, queue: str, limit: int, timeout: float) -> list[Delivery]:
        """Lock what there is, or wait for it."""
        with self._talking():
            receiver = self._receiver(queue)
            messages = receiver.receive_messages(limit, max_wait_time=max(timeout, 0.001))
        return [Delivery(_frame(one), queue, (receiver, one)) for one in messages]

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Complete; one whose lock is gone comes again, and the others are completed still."""
        stale = False
        for delivery in deliveries:
            stale = not self._settle(delivery, "complete_message") or stale
        if stale:
            raise lost()

    def release(self, delivery: Delivery, delay: float = 0.0) -> None:
        """Abandon it, which the service counts; to wait, a scheduled copy takes its place."""
        if delay > 0:
            self.replace(delivery, delivery.queue, _later(delivery.frame, delay))
        elif not self._settle(delivery, "abandon_message"):
            raise lost()

    def replace(self, delivery: Delivery, queue: str, frame: Frame) -> None:
        """Send, then complete."""
        if not self._is_mine(delivery):
            raise lost()
        self.send(queue, [frame])
        self.ack([delivery])

    def leave(self, delivery: Delivery) -> None:
        """Do nothing: the end of its lock brings it back."""

    def give_up(self, delivery: Delivery, reason: str) -> None:
        """Move it to the service's own dead-letter queue."""
        told = reason[:_LONGEST_REASON] or "given up"
        if not self._settle(delivery, "dead_letter_message", reason=told):
            raise lost()

    def close(self) -> None:
        """End the connections; what is locked stays so until its lock ends."""
        client, self._client = self._client, None
        self._senders.clear()
        self._receivers.clear()
        if client is not None:
            client.close()

    def _is_mine(self, delivery: Delivery) -> bool:
        receiver = self._receivers.get(delivery.queue)
        return receiver is not None and receiver is delivery.handle[0]

    def _settle(self, delivery: Delivery, verb: str, **details: str) -> bool:
        """Settle one delivery; say whether its lock was still there."""
        from azure.servicebus.exceptions import (  # noqa: PLC0415
            MessageAlreadySettled,
            MessageLockLostError,
        )

        if not self._is_mine(delivery):
            return False
        receiver, message = delivery.handle
        with self._talking():
            try:
                getattr(receiver, verb)(message, **details)
            except (MessageLockLostError, MessageAlreadySettled):
                return False
        return True

    def _sender(self, queue: str) -> Any:
        if queue not in self._senders:
            sender = self._client.get_queue_sender(queue)
            sender.__enter__()
            self._senders[queue] = sender
        return self._senders[queue]

    def _receiver(self, queue: str) -> Any:
        if queue not in self._receivers:
            receiver = self._client.get_queue_receiver(queue, prefetch_count=self._prefetch)
            receiver.__enter__()
            self._receivers[queue] = receiver
        return self._receivers[queue]

    @contextmanager
    def _talking(self) -> Iterator[None]:
        from azure.core.exceptions import AzureError  # noqa: PLC0415

        try:
            if self._client is None:
                self._client = self._open()
            yield
        except (AzureError, OSError) as error:
            self._drop()
            raise unreachable(self._address, error) from error

    def _drop(self) -> None:
        """Let go of connections that broke; that they cannot say goodbye is no news."""
        from azure.core.exceptions import AzureError  # noqa: PLC0415

        for part in (*self._senders.values(), *self._receivers.values()):
            with suppress(AzureError, OSError):
                part.close()
        with suppress(AzureError, OSError):
            self.close()


def _later(frame: Frame, delay: float) -> Frame:
    due = Long((time() + delay) * 1000)
    message = {**frame.sections.get("message", {}), "scheduled_enqueue_time": due}
    return Frame(frame.body, {**frame.sections, "message": message})


def _message(frame: Frame) -> Any:
    from azure.servicebus import ServiceBusMessage  # noqa: PLC0415

    held = frame.sections.get("message", {})
    properties: Any = frame.sections.get("application_properties", {})
    due = held.get("scheduled_enqueue_time")
    return ServiceBusMessage(
        frame.body,
        application_properties={key: _typed(value) for key, value in properties.items()} or None,
        scheduled_enqueue_time_utc=due and datetime.fromtimestamp(due / 1000, UTC),
        **{key: held[key] for key in _FIELDS if key in held},
    )


def _fits(batch: Any, message: Any) -> bool:
    from azure.servicebus.exceptions import MessageSizeExceededError  # noqa: PLC0415

    try:
        batch.add_message(message)
    except MessageSizeExceededError:
        return False
    return True


def _typed(value: Any) -> Any:
    """Mark a long as one: the client writes every whole number as an AMQP int, or fails to."""
    wide = isinstance(value, int) and not -_INT <= value < _INT
    return {"TYPE": "LONG", "VALUE": int(value)} if wide or isinstance(value, Long) else value


def _frame(message: Any) -> Frame:
    fields = {key: value for key in _FIELDS if (value := getattr(message, key)) is not None}
    fields["delivery_count"] = (message.delivery_count or 0) + 1  # the client's first is 0
    properties = message.application_properties or {}
    return Frame(
        b"".join(message.body),
        {
            "message": fields,
            "application_properties": {_text(key): _text(one) for key, one in properties.items()},
        },
    )


def _text(value: Any) -> Any:
    """Give text as text: the client hands it out as bytes."""
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value


def write_connection(endpoint: str, name: str, key: str, *, emulator: bool) -> str:
    """Write a connection string as the official SDKs read it."""
    parts = {"Endpoint": endpoint, "SharedAccessKeyName": name, "SharedAccessKey": key}
    if emulator:
        parts["UseDevelopmentEmulator"] = "true"
    return "".join(f"{name}={value};" for name, value in parts.items())


def connect(address: Address) -> Callable[[], ServiceBusTransport]:
    """Give a way to open connections to the namespace or emulator that the address names."""
    check_options(address, _OPTIONS)
    host = address.host or _HERE[0]
    emulator = is_on(address, "emulator", default=host in _HERE)
    prefetch = int(read_number(address, "prefetch", 0))
    timeout = read_number(address, "timeout", 30.0)
    try:
        from azure.servicebus import ServiceBusClient  # noqa: PLC0415
    except ImportError as error:
        raise missing_client("servicebus", error) from error
    tls = read_tls(address, secure=not emulator, instead="emulator=0")
    if tls is not None and not tls.verify:
        raise UsageError(
            "Service Bus is never talked to unchecked", code="url_option", hint="give ca=FILE"
        )
    if not emulator and not (address.user and address.password):
        raise UsageError(
            f"{address}: Service Bus needs a key",
            code="url",
            hint="sb://KEYNAME:KEY@NAMESPACE.servicebus.windows.net, with / + = of the key escaped",
        )
    name, key = (address.user, address.password) if address.user else _NOBODY
    endpoint = f"sb://{host}:{address.port}" if address.port else f"sb://{host}"
    text = write_connection(endpoint, name, key, emulator=emulator)

    trust: dict[str, Any] = {"connection_verify": tls.ca} if tls and tls.ca else {}

    def open_client() -> Any:
        return ServiceBusClient.from_connection_string(
            text,
            retry_total=0,
            socket_timeout=timeout,
            logging_enable=False,
            **trust,
        )

    return lambda: ServiceBusTransport(address, open_client, prefetch)
