"""Wrap a transport so that every frame it sends or receives also goes to a sink, with its time.

A frame is recorded as sent when the broker has confirmed it, with the time when the send began. It
is recorded as received with the time when it was delivered. Failed calls are not recorded. The sink
never changes the outcome: an exception of the sink is logged and not raised, so capturing cannot
lose, duplicate or acknowledge a message.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from tallystick.core.frame import Frame
from tallystick.core.transport import Capabilities, Delivery, Transport

__all__ = ["Captured", "Sink", "wrap"]

_LOG: Final = logging.getLogger("tallystick.capture")


class Sink(Protocol):
    """The destination of captures; safe to call from many threads."""

    def record(
        self, direction: str, broker: str, queue: str, at: int, frames: Sequence[Frame]
    ) -> None:
        """Keep frames that were seen at a time, in nanoseconds since the epoch."""

    def close(self) -> None:
        """Finish the present file; a later frame starts a new one."""


class Captured:
    """A transport whose frames are captured; it behaves like the wrapped transport."""

    def __init__(
        self, inside: Transport, sink: Sink, broker: str, clock: Callable[[], int]
    ) -> None:
        self._inside: Final = inside
        self._sink: Final = sink
        self._broker: Final = broker
        self._clock: Final = clock

    @property
    def capabilities(self) -> Capabilities:
        """The settlement that the broker itself provides."""
        return self._inside.capabilities

    def ensure(self, queues: Sequence[str]) -> None:
        """Make sure that these queues exist."""
        self._inside.ensure(queues)

    def send(self, queue: str, frames: Sequence[Frame]) -> None:
        """Send, and record the frames that the broker confirmed."""
        began = self._clock()
        self._inside.send(queue, frames)
        self._record("sent", queue, began, frames)

    def receive(self, queue: str, limit: int, timeout: float) -> list[Delivery]:
        """Receive, and record the deliveries."""
        deliveries = self._inside.receive(queue, limit, timeout)
        if deliveries:
            frames = [delivery.frame for delivery in deliveries]
            self._record("received", queue, self._clock(), frames)
        return deliveries

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Acknowledge the deliveries."""
        self._inside.ack(deliveries)

    def release(self, delivery: Delivery, delay: float = 0.0) -> None:
        """Return a delivery to the broker; nothing is sent."""
        self._inside.release(delivery, delay)

    def replace(self, delivery: Delivery, queue: str, frame: Frame) -> None:
        """Send a frame in place of a delivery, and record it."""
        began = self._clock()
        self._inside.replace(delivery, queue, frame)
        self._record("sent", queue, began, [frame])

    def _record(self, direction: str, queue: str, at: int, frames: Sequence[Frame]) -> None:
        try:
            self._sink.record(direction, self._broker, queue, at, frames)
        except Exception as error:  # noqa: BLE001 (the broker has done its part: nothing failed)
            text = "%d frames of %s were not captured: %s"
            _LOG.error(text, len(frames), queue, type(error).__name__)

    def renew(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Renew the leases of deliveries; return the lost ones."""
        return self._inside.renew(deliveries)

    def leave(self, delivery: Delivery) -> None:
        """Leave the delivery unsettled."""
        self._inside.leave(delivery)

    def give_up(self, delivery: Delivery, reason: str) -> None:
        """Leave the delivery to the broker's own policy."""
        self._inside.give_up(delivery, reason)

    def close(self) -> None:
        """Close the connection. The owner of the sink closes the sink."""
        self._inside.close()


def wrap(
    transport: Transport, sink: Sink, *, broker: str, clock: Callable[[], int] = time.time_ns
) -> Captured:
    """Wrap a transport so that its frames also go to a sink."""
    return Captured(transport, sink, broker, clock)
