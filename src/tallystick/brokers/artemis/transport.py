"""ActiveMQ Artemis over AMQP 1.0 with python-qpid-proton, on anycast queues.

URL: `artemis://[user:password@]host[:port]`, `artemis+ssl://` for TLS, with the options

    credit=200    maximum unsettled deliveries of one consumer
    heartbeat=20  seconds of silence after which a side treats the other as dead
    timeout=30    maximum seconds of any single call
    ca, verify    certificates to trust with `artemis+ssl://` (`brokers/tls.py`)

The body is sent as an AMQP string, which JMS peers read as text; bytes that are not UTF-8 are sent
as data. A delivery that is not settled is delivered again when its link ends. A thread keeps an
idle connection alive, so a handler may take as long as it needs.

proton is not thread-safe: even releasing one of its objects uses it. So all of them stay in this
module, under one lock, and a delivery carries only two numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from threading import RLock
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from tallystick.brokers.artemis.pulse import Pulse
from tallystick.brokers.tls import TLS_OPTIONS, Tls, read_tls, system_ca
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

__all__ = ["ArtemisTransport", "connect", "mark_queue", "read_frame"]

_OPTIONS: Final = ("credit", "heartbeat", "timeout", *TLS_OPTIONS)
_WINDOW: Final = 500
_GOODBYE: Final = 2.0


class _Link:
    """A receiver, its received messages, and its unsettled deliveries by number."""

    def __init__(self, number: int) -> None:
        self.number: Final = number
        self.receiver: Any = None
        self.arrived: Final[deque[Any]] = deque()
        self.out: Final[dict[int, Any]] = {}


class ArtemisTransport:
    """One connection, with a sender and a receiver for each queue that is used."""

    capabilities = Capabilities(
        delays=True, headers=True, ordered=True, returns="connection", counts=False
    )

    def __init__(
        self,
        address: Address,
        open_connection: Callable[[], Any],
        *,
        timeout: float,
        credit: int,
        heartbeat: float,
    ) -> None:
        self._address: Final = address
        self._open: Final = open_connection
        self._timeout: Final = timeout
        self._credit: Final = credit
        self._heartbeat: Final = heartbeat
        self._connection: Any = None
        self._senders: Final[dict[str, Any]] = {}
        self._links: Final[dict[str, _Link]] = {}
        self._numbers: Final = count()
        self._pulse: Pulse | None = None
        self._lock: Final = RLock()

    def ensure(self, queues: Sequence[str]) -> None:
        """Open a link to each queue, so that the broker creates it."""
        with self._talking():
            for queue in queues:
                self._sender(queue)

    def send(self, queue: str, frames: Sequence[Frame]) -> None:
        """Send all, a window at a time, and wait until the broker has accepted each."""
        with self._talking() as proton:
            sender = self._sender(queue)
            for start in range(0, len(frames), _WINDOW):
                self._send(proton, sender.link, frames[start : start + _WINDOW])

    def _send(self, proton: Any, link: Any, frames: Sequence[Frame]) -> None:
        waiting: deque[Any] = deque()
        refused: list[Any] = []

        def confirmed() -> bool:
            """Settle the messages that the broker has answered, oldest first."""
            while waiting and (waiting[0].remote_state or waiting[0].settled):
                one = waiting.popleft()
                if one.remote_state != proton.Delivery.ACCEPTED:
                    refused.append(one.remote.condition)
                one.settle()
            return not waiting

        for frame in frames:
            if link.credit <= 0:
                self._connection.wait(lambda: link.credit > 0, timeout=self._timeout)
            waiting.append(link.send(_message(proton, frame)))
        self._connection.wait(confirmed, timeout=self._timeout)
        if refused:
            raise proton.ProtonException(f"the broker rejected a message: {refused[0]}")

    def receive(self, queue: str, limit: int, timeout: float) -> list[Delivery]:
        """Return the messages that the broker has pushed, or wait for one."""
        with self._talking() as proton:
            link = self._link(queue)
            if not link.arrived:
                try:
                    self._connection.wait(lambda: link.arrived, timeout=timeout)
                except proton.Timeout:
                    return []
            taken = []
            for _ in range(min(limit, len(link.arrived))):
                frame, native = link.arrived.popleft()
                number = next(self._numbers)
                link.out[number] = native
                taken.append(Delivery(frame, queue, (link.number, number)))
            link.receiver.link.flow(len(taken))
            return taken

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Accept; deliveries of a closed link are lost."""
        with self._talking() as proton:
            self._settle(deliveries, proton.Delivery.ACCEPTED)

    def release(self, delivery: Delivery, delay: float = 0.0) -> None:  # noqa: ARG002
        """Release it without counting; the broker delivers it again at once."""
        if not self._is_mine(delivery):
            raise lost()
        with self._talking() as proton:
            self._settle([delivery], proton.Delivery.RELEASED)

    def replace(self, delivery: Delivery, queue: str, frame: Frame) -> None:
        """Send, wait for the outcome, then accept."""
        if not self._is_mine(delivery):
            raise lost()
        self.send(queue, [frame])
        self.ack([delivery])

    def leave(self, delivery: Delivery) -> None:
        """Release it."""
        self.release(delivery)

    def give_up(self, delivery: Delivery, reason: str) -> None:  # noqa: ARG002
        """Reject it: the broker's own dead-letter address takes it."""
        with self._talking() as proton:
            self._settle([delivery], proton.Delivery.REJECTED)

    def renew(self, deliveries: Sequence[Delivery]) -> list[Delivery]:  # noqa: ARG002
        """Do nothing: a delivery stays valid until its link ends."""
        return []

    def close(self) -> None:
        """Close the connection; the broker delivers unsettled messages again."""
        from proton import ProtonException  # noqa: PLC0415

        with self._lock:
            connection, self._connection = self._connection, None
            self._senders.clear()
            self._links.clear()
            if connection is not None and self._pulse is not None:
                self._pulse.stop()
                connection.timeout = min(self._timeout, _GOODBYE)
                with suppress(ProtonException, OSError):  # one that broke cannot say goodbye
                    connection.close()

    def tap(self, watch: Watch) -> Tap:
        """Browse a queue."""
        from tallystick.brokers.artemis.tap import ArtemisTap  # noqa: PLC0415

        return ArtemisTap(watch, lambda: self._connection, self._talking)

    def _is_mine(self, delivery: Delivery) -> bool:
        number, tag = delivery.handle
        link = self._links.get(delivery.queue)
        return link is not None and link.number == number and tag in link.out

    def _settle(self, deliveries: Sequence[Delivery], outcome: Any) -> None:
        mine = [one for one in deliveries if self._is_mine(one)]
        for one in mine:
            native = self._links[one.queue].out.pop(one.handle[1])
            native.update(outcome)
            native.settle()
        if mine:
            transport = self._connection.conn.transport
            self._connection.wait(lambda: not transport.pending(), timeout=self._timeout)
        if len(mine) < len(deliveries):
            raise lost()

    def _sender(self, queue: str) -> Any:
        if queue not in self._senders:
            from proton.reactor import LinkOption  # noqa: PLC0415

            class Anycast(LinkOption):
                def apply(self, link: Any) -> None:
                    mark_queue(link.target)

            self._senders[queue] = self._connection.create_sender(
                queue, name=f"tally-{uuid4().hex}", options=[Anycast()]
            )
        return self._senders[queue]

    def _link(self, queue: str) -> _Link:
        if queue not in self._links:
            from proton.handlers import MessagingHandler  # noqa: PLC0415
            from proton.reactor import LinkOption  # noqa: PLC0415

            link = _Link(next(self._numbers))

            class Collect(MessagingHandler):
                def on_message(self, event: Any) -> None:
                    link.arrived.append((read_frame(event.message), event.delivery))

            class Anycast(LinkOption):
                def apply(self, opened: Any) -> None:
                    mark_queue(opened.source)

            link.receiver = self._connection.create_receiver(
                queue,
                name=f"tally-{uuid4().hex}",
                handler=Collect(prefetch=0, auto_accept=False),
                options=[Anycast()],
            )
            link.receiver.link.flow(self._credit)
            self._links[queue] = link
        return self._links[queue]

    @contextmanager
    def _talking(self) -> Iterator[Any]:
        import proton  # noqa: PLC0415
        from proton.utils import LinkDetached  # noqa: PLC0415

        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._open()
                    self._pulse = Pulse(self._connection, self._lock, self._heartbeat, self.close)
                yield proton
            except (proton.ProtonException, LinkDetached, OSError) as error:
                if not isinstance(error, proton.Timeout):
                    self.close()
                raise unreachable(self._address, error) from error


def mark_queue(terminus: Any) -> None:
    """Mark a link as one to a queue, not to a topic."""
    from proton import symbol  # noqa: PLC0415

    terminus.capabilities.put_object(symbol("queue"))


def _message(proton: Any, frame: Frame) -> Any:
    annotations = frame.sections.get("annotations", {})
    properties = frame.sections.get("properties", {})
    try:
        body: Any = frame.body.decode()
    except UnicodeDecodeError:
        body = frame.body
    message = proton.Message(
        body=body,
        inferred=isinstance(body, bytes),
        durable=True,
        properties=dict(frame.sections.get("application_properties", {})) or None,
        annotations={proton.symbol(key): _plain(one) for key, one in annotations.items()} or None,
        correlation_id=properties.get("correlation-id"),
    )
    if "creation-time" in properties:
        message.creation_time = properties["creation-time"] / 1000
    return message


def _plain(value: Any) -> Any:
    """Give a whole number as proton's own `int`, which AMQP carries as a long."""
    return int(value) if isinstance(value, int) else value


def read_frame(message: Any) -> Frame:
    """Give the frame of a message."""
    body = message.body
    data = body.encode() if isinstance(body, str) else bytes(body or b"")
    annotations = {str(key): value for key, value in (message.annotations or {}).items()}
    properties = {"correlation-id": message.correlation_id} if message.correlation_id else {}
    return Frame(
        data,
        {
            "annotations": {k: v for k, v in annotations.items() if k == "x-opt-jms-type"},
            "properties": properties,
            "application_properties": dict(message.properties or {}),
            "header": {"delivery-count": message.delivery_count},
        },
    )


def _trust(tls: Tls) -> Any:
    from proton import SSLDomain  # noqa: PLC0415

    domain = SSLDomain(SSLDomain.MODE_CLIENT)
    domain.set_trusted_ca_db(tls.ca or system_ca())
    checked = SSLDomain.VERIFY_PEER_NAME if tls.verify else SSLDomain.ANONYMOUS_PEER
    domain.set_peer_authentication(checked)
    return domain


def connect(address: Address) -> Callable[[], ArtemisTransport]:
    """Give a way to open connections to the Artemis that the address names."""
    check_options(address, _OPTIONS)
    timeout = read_number(address, "timeout", 30.0)
    credit = int(read_number(address, "credit", 200))
    heartbeat = read_number(address, "heartbeat", 20.0)
    with importing("artemis"):
        from proton.utils import BlockingConnection  # noqa: PLC0415
    tls = read_tls(address, secure=address.scheme == "artemis+ssl", instead="artemis+ssl://")
    host = f"{address.host or '127.0.0.1'}:{address.port or (5671 if tls else 5672)}"

    def open_connection() -> Any:
        login: dict[str, Any] = {"allowed_mechs": "ANONYMOUS"}
        if address.user:
            login = {
                "allowed_mechs": "PLAIN", "user": address.user, "password": address.password,
            }  # fmt: skip
        scheme = "amqp"
        if tls is not None:
            scheme, login["ssl_domain"] = "amqps", _trust(tls)
        return BlockingConnection(
            f"{scheme}://{host}", timeout=timeout, heartbeat=heartbeat, reconnect=False, **login
        )

    return lambda: ArtemisTransport(
        address, open_connection, timeout=timeout, credit=credit, heartbeat=heartbeat
    )
