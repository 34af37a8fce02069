"""A queue of a test's own on one broker, and the table of the brokers."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from time import monotonic, time
from typing import Any
from uuid import uuid4

from tests.shared import STEADY

from tallystick import App
from tallystick.core.envelope import make
from tallystick.core.frame import Frame
from tallystick.core.transport import Delivery, Transport
from tallystick.runtime.address import Link
from tallystick.runtime.retry import Backoff

URN = "urn:babel:orders:created"
PATIENCE = 30.0
QUIET = 1.5
KAFKA = "tiers=100,200,2000&group_protocol=consumer&group={0}&reinject_group={0}-back"
BROKERS: dict[str, tuple[str, str, str]] = {
    "memory": ("", "", ""),
    "redis": ("redis", "", "retry_after=1"),
    "redis-laravel": ("redis", "laravel=1", "laravel=1&retry_after=1"),
    "rabbitmq": ("rabbitmq", "", ""),
    "kafka": ("kafka", KAFKA, KAFKA),
    "sqs": ("sqs", "", "visibility=1"),
    "sqs-fifo": ("sqs", "fifo=1", "fifo=1&visibility=1"),
    "pulsar": ("pulsar", "", ""),
    "artemis": ("artemis", "", ""),
    "servicebus": (STEADY, "", ""),
    "servicebus-sessions": (STEADY, "sessions=1", "sessions=1"),
    "rabbitmq-quorum": ("rabbitmq", "queue_type=quorum", "queue_type=quorum"),
}
"""Name -> the server to start, the options of its URL, and those for a consumer that will crash."""
LEASES: dict[str, tuple[str, float]] = {
    "redis": ("retry_after=3", 3.0),
    "redis-laravel": ("laravel=1&retry_after=3", 3.0),
    "sqs": ("visibility=3", 3.0),
    "sqs-fifo": ("fifo=1&visibility=3", 3.0),
    "servicebus": ("", 10.0),
    "servicebus-sessions": ("sessions=1", 10.0),
}
"""Where a delivery comes back by a deadline: the options for a short one, and its seconds."""
SHORT = {STEADY: "servicebus"}
"""Where a short deadline is a setting of the server: the server that has it."""
MANY = {"sqs-fifo": 500, "servicebus-sessions": 1000}
"""How many a drain takes where 10,000 take minutes: one group or session, one after the other."""


@dataclass
class Place:
    """One broker and one queue of a test's own."""

    link: Link
    url: str
    crashing: Link
    queue: str
    many: int
    leased: str
    lease: float
    stack: ExitStack

    def app(self, **settings: Any) -> App:
        url = settings.pop("url", self.url)
        app = App(url, **{"queue": self.queue, "backoff": Backoff(), **settings})
        self.stack.callback(app.close)
        return app

    def open(self) -> Transport:
        transport = self.link.open()
        self.stack.callback(transport.close)
        return transport

    def take(self, transport: Transport, queue: str, count: int) -> list[Delivery]:
        """Receive so many, or fail when they do not come."""
        taken: list[Delivery] = []
        end = monotonic() + PATIENCE
        while len(taken) < count:
            assert monotonic() < end, f"{len(taken)} of {count} came from {queue}"
            taken += transport.receive(queue, count - len(taken), 1.0)
        return taken

    def read_dead(self, count: int) -> list[Frame]:
        transport = self.open()
        queue = self.app()._graveyard(self.queue)
        transport.ensure([queue])
        taken = self.take(transport, queue, count)
        transport.ack(taken)
        return [one.frame for one in taken]

    def send_raw(self, frame: Frame) -> None:
        transport = self.open()
        transport.ensure([self.queue])
        transport.send(self.queue, [frame])


def message(n: int = 0) -> Any:
    return make(URN, {"n": n}, now_ms=int(time() * 1000), new_id=lambda: str(uuid4()))
