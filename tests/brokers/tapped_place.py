"""A queue of a test's own that can be tapped, and what is put into it and taken out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from tests.brokers.urls import with_options

from tallystick.core.frame import Frame
from tallystick.core.tap import Tap, Watch
from tallystick.core.transport import Transport
from tallystick.runtime.address import link_to
from tallystick.runtime.tap import tapping

PATIENCE = 60.0


@dataclass
class Place:
    """A queue of a test's own, on one broker."""

    url: str
    queue: str
    stack: ExitStack

    def open(self) -> Transport:
        transport = link_to(self.url).open()
        self.stack.callback(transport.close)
        transport.ensure([self.queue])
        return transport

    def tap(self, **watch: Any) -> Tap:
        return self.stack.enter_context(tapping(self.url, Watch(queue=self.queue, **watch)))


def place_on(broker_url: Callable[[str], str], server: str, options: str) -> Iterator[Place]:
    queue = f"tapped-{uuid4().hex}"
    with ExitStack() as stack:
        yield Place(with_options(broker_url(server), options.format(queue)), queue, stack)


def bodies(first: int, last: int) -> list[bytes]:
    return [b'{"n":%d}' % n for n in range(first, last)]


def send(transport: Transport, queue: str, first: int, last: int) -> None:
    transport.send(queue, [Frame(one) for one in bodies(first, last)])


def consume(transport: Transport, queue: str, count: int) -> list[bytes]:
    taken: list[bytes] = []
    end = time.monotonic() + PATIENCE
    while len(taken) < count and time.monotonic() < end:
        deliveries = transport.receive(queue, count - len(taken), 1.0)
        transport.ack(deliveries)
        taken += [one.frame.body for one in deliveries]
    return taken
