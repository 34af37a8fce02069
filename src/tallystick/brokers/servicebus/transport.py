"""Azure Service Bus over azure-servicebus, with PeekLock.

URL: `sb://[keyname:key@]host[:port]`, `servicebus://` or `azureservicebus://`, with the options

    emulator=1    plain AMQP to an emulator; default for a host of this machine (else emulator=0)
    prefetch=0    messages that the client may lock ahead (10 with sessions)
    timeout=30    maximum seconds to connect
    sessions=1    the queues have sessions: messages of one key are delivered in order, to one
    ca, verify    certificates to trust (`brokers/tls.py`); the service always uses TLS, an
                  emulator never does

With sessions a transport holds one session at a time. It takes the next session with messages when
the current one is empty and no handler has a message of it. A message without a key uses the name
of the queue as its key.

No text shows the key. Locks, deliveries and the dead-letter queue are those of the service; the
settings of a queue are made in the service, not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Final

from tallystick.brokers.servicebus.access import ACCESS, read_access
from tallystick.brokers.servicebus.message import fits, read_frame, write_message
from tallystick.core.errors import Refused
from tallystick.core.frame import Frame
from tallystick.core.tap import Tap, Watch
from tallystick.core.transport import (
    Address,
    Capabilities,
    Delivery,
    check_options,
    is_on,
    lost,
    read_number,
    unreachable,
)

__all__ = ["ServiceBusTransport", "connect"]

_OPTIONS: Final = ("prefetch", "sessions", *ACCESS)
_ACCEPTING: Final = 0.3
_AHEAD: Final = 10
"""Messages of a session that the client may have before they are asked for, so that order is kept:
a client that may have none hands back what comes between two calls, and what follows overtakes it.
They are few, because the end of the session's lock counts as a delivery of each."""
_FIRST: Final = 5.0
"""Seconds to wait for the first message of a new session, which surely has one."""
_AT_ONCE: Final = 0.001
_LONGEST_REASON: Final = 4096


class ServiceBusTransport:
    """One client, with a sender and a receiver for each queue that is used."""

    def __init__(
        self,
        address: Address,
        open_client: Callable[[], Any],
        prefetch: int,
        *,
        sessions: bool = False,
    ) -> None:
        self.capabilities: Final = Capabilities(
            delays=True,
            headers=True,
            ordered=True,
            returns="deadline",
            counts=not sessions,  # the end of a session's link is not a delivery that failed
            keyed=sessions,
        )
        self._address: Final = address
        self._sessions: Final = sessions
        self._out: Final[dict[int, Delivery]] = {}
        self._open: Final = open_client
        self._prefetch: Final = prefetch
        self._client: Any = None
        self._senders: Final[dict[str, Any]] = {}
        self._receivers: Final[dict[str, Any]] = {}

    def ensure(self, queues: Sequence[str]) -> None:
        """Open a sender to each queue; a queue that does not exist is an error now."""
        with self._talking():
            for queue in queues:
                self._sender(queue)

    def send(self, queue: str, frames: Sequence[Frame]) -> None:
        """Send in batches as large as the service takes; if a frame fits in none, send none."""
        with self._talking():
            sender = self._sender(queue)
            batches = [sender.create_message_batch()]
            for message in (write_message(one, queue if self._sessions else "") for one in frames):
                if fits(batches[-1], message):
                    continue
                batches.append(sender.create_message_batch())
                if not fits(batches[-1], message):
                    raise Refused(
                        f"this message is too large for the Service Bus queue {queue}",
                        code="too_large",
                        hint=f"the maximum is {batches[-1].max_size_in_bytes} bytes, including "
                        "its properties",
                    )
            for batch in batches:
                if len(batch):
                    sender.send_messages(batch)

    def receive(self, queue: str, limit: int, timeout: float) -> list[Delivery]:
        """Lock available messages, or wait for one."""
        with self._talking():
            new = queue not in self._receivers
            receiver = self._receiver(queue, timeout)
            if receiver is None:
                return []
            wait = _FIRST if new and self._sessions else max(timeout, _AT_ONCE)
            messages = self._pull(receiver, limit, wait)
            if self._sessions and not messages and not self._is_out(queue):
                self._receivers.pop(queue).close()
        taken = [self._delivery(queue, receiver, one) for one in messages]
        self._out.update((id(one), one) for one in taken if self._sessions)
        return taken

    def _pull(self, receiver: Any, limit: int, timeout: float) -> list[Any]:
        """Receive; a requested session may be refused only at this point."""
        from azure.servicebus.exceptions import OperationTimeoutError  # noqa: PLC0415

        # a client that has messages waits for others as long as for a first one, unless it is told
        here = getattr(getattr(receiver, "_handler", None), "_received_messages", None)
        wait = timeout if here is None or here.empty() else _AT_ONCE
        try:
            return list(receiver.receive_messages(limit, max_wait_time=wait))
        except OperationTimeoutError:
            if not self._sessions:
                raise
            return []

    def _is_out(self, queue: str) -> bool:
        """Say whether something of the session in hand is with a handler."""
        mine = self._receivers[queue]
        stale = [one for one, held in self._out.items() if held.handle[0] is not mine]
        for one in stale:
            if self._out[one].queue == queue:
                del self._out[one]
        return any(held.queue == queue for held in self._out.values())

    def _delivery(self, queue: str, receiver: Any, message: Any) -> Delivery:
        until = receiver.session.locked_until_utc if self._sessions else message.locked_until_utc
        group = message.session_id if self._sessions else ""
        return Delivery(
            read_frame(message),
            queue,
            (receiver, message),
            lease=_seconds_to(until),
            group=group or "",
        )

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Complete; a message whose lock is lost is delivered again, the others are completed.

        The service processes the settlements of a link in order, so only the last one waits for
        its answer. If the lock of an earlier message is lost, this is not reported, and the
        message is delivered again.
        """
        mine = [one for one in deliveries if self._is_mine(one)]
        stale = len(mine) < len(deliveries)
        for left, delivery in zip(range(len(mine) - 1, -1, -1), mine, strict=True):
            delivery.handle[0]._await_settlement_outcome = not left  # noqa: SLF001
            stale = not self._settle(delivery, "complete_message") or stale
        if stale:
            raise lost()

    def release(self, delivery: Delivery, delay: float = 0.0) -> None:  # noqa: ARG002
        """Abandon it, which the service counts; in a session it is returned without counting."""
        if self._sessions and self._is_mine(delivery):
            self.leave(delivery)
        elif not self._settle(delivery, "abandon_message"):
            raise lost()

    def replace(self, delivery: Delivery, queue: str, frame: Frame) -> None:
        """Send, then complete."""
        if not self._is_mine(delivery):
            raise lost()
        self.send(queue, [frame])
        self.ack([delivery])

    def leave(self, delivery: Delivery) -> None:
        """Do nothing: when its lock ends, the message is delivered again."""
        self._out.pop(id(delivery), None)

    def give_up(self, delivery: Delivery, reason: str) -> None:
        """Move it to the service's own dead-letter queue."""
        told = reason[:_LONGEST_REASON] or "given up"
        if not self._settle(delivery, "dead_letter_message", reason=told):
            raise lost()

    def renew(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Renew each lock, or that of the session; a message without its lock is lost."""
        if not self._sessions:
            return [one for one in deliveries if not self._try(one, "renew_message_lock")]
        kept: dict[int, bool] = {}
        for one in deliveries:
            receiver = one.handle[0]
            if id(receiver) not in kept:
                kept[id(receiver)] = self._is_mine(one) and self._try_session(receiver)
        return [one for one in deliveries if not kept[id(one.handle[0])]]

    def close(self) -> None:
        """Close the connections; locked messages stay locked until their locks end."""
        client, self._client = self._client, None
        self._out.clear()
        self._senders.clear()
        self._receivers.clear()
        if client is not None:
            client.close()

    def tap(self, watch: Watch) -> Tap:
        """Peek at a queue."""
        from tallystick.brokers.servicebus.tap import ServiceBusTap  # noqa: PLC0415

        with self._talking():
            receiver = self._client.get_queue_receiver(watch.queue)
            receiver.__enter__()
        return ServiceBusTap(receiver, read_frame, self._talking, watch.start)

    def _is_mine(self, delivery: Delivery) -> bool:
        receiver = self._receivers.get(delivery.queue)
        return receiver is not None and receiver is delivery.handle[0]

    def _settle(self, delivery: Delivery, verb: str, **details: str) -> bool:
        """Settle one delivery; say whether its lock was still there."""
        self._out.pop(id(delivery), None)
        return self._try(delivery, verb, **details)

    def _try_session(self, receiver: Any) -> bool:
        """Renew the lock of a session; say whether it was still there."""
        from azure.servicebus.exceptions import SessionLockLostError  # noqa: PLC0415

        with self._talking():
            try:
                receiver.session.renew_lock()
            except SessionLockLostError:
                return False
        return True

    def _try(self, delivery: Delivery, verb: str, **details: str) -> bool:
        """Ask the receiver of a delivery; say whether its lock was still there."""
        from azure.servicebus.exceptions import (  # noqa: PLC0415
            MessageAlreadySettled,
            MessageLockLostError,
            SessionLockLostError,
        )

        if not self._is_mine(delivery):
            return False
        receiver, message = delivery.handle
        with self._talking():
            try:
                getattr(receiver, verb)(message, **details)
            except (MessageLockLostError, MessageAlreadySettled, SessionLockLostError):
                return False
        return True

    def _sender(self, queue: str) -> Any:
        if queue not in self._senders:
            sender = self._client.get_queue_sender(queue)
            sender.__enter__()
            self._senders[queue] = sender
        return self._senders[queue]

    def _receiver(self, queue: str, timeout: float) -> Any:
        """Give the receiver of a queue; none when no session has messages in time."""
        if queue not in self._receivers:
            receiver = self._accept(queue, timeout) if self._sessions else self._attach(queue)
            if receiver is None:
                return None
            self._receivers[queue] = receiver
        return self._receivers[queue]

    def _attach(self, queue: str) -> Any:
        receiver = self._client.get_queue_receiver(queue, prefetch_count=self._prefetch)
        receiver.__enter__()
        return receiver

    def _accept(self, queue: str, timeout: float) -> Any:
        """Take the next session that has messages."""
        from azure.servicebus import NEXT_AVAILABLE_SESSION  # noqa: PLC0415
        from azure.servicebus.exceptions import OperationTimeoutError  # noqa: PLC0415

        receiver = self._client.get_queue_receiver(
            queue,
            session_id=NEXT_AVAILABLE_SESSION,
            max_wait_time=max(timeout, _ACCEPTING),
            prefetch_count=self._prefetch or _AHEAD,
        )
        try:
            receiver.__enter__()
        except OperationTimeoutError:
            receiver.close()
            return None
        return receiver

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
        """Drop broken connections; ignore errors when closing them."""
        from azure.core.exceptions import AzureError  # noqa: PLC0415

        for part in (*self._senders.values(), *self._receivers.values()):
            with suppress(AzureError, OSError):
                part.close()
        with suppress(AzureError, OSError):
            self.close()


def _seconds_to(until: datetime | None) -> float | None:
    """Give the seconds until a lock ends."""
    return None if until is None else max((until - datetime.now(UTC)).total_seconds(), 0.0)


def connect(address: Address) -> Callable[[], ServiceBusTransport]:
    """Give a way to open connections to the namespace or emulator that the address names."""
    check_options(address, _OPTIONS)
    prefetch = int(read_number(address, "prefetch", 0))
    sessions = is_on(address, "sessions")
    open_client = read_access(address)
    return lambda: ServiceBusTransport(address, open_client, prefetch, sessions=sessions)
