"""Decide when to renew leases: after a third of each lease, up to a maximum time.

The delivery of a message with a deadline is renewed while a worker handles it, so a handler may
take longer than the lease. After the maximum it is not renewed, and the broker delivers the message
again: a handler that never ends does not keep a message for ever. A delivery that was not renewed
in time belongs to the broker. No I/O; the time is an argument.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Final

from tallystick.core.transport import Delivery

__all__ = ["Leases"]

_SHARE: Final = 3


@dataclass(slots=True)
class _Lease:
    delivery: Delivery
    seconds: float
    until: float
    next: float
    last: float


class Leases:
    """The leases of one worker, by the identity of their deliveries."""

    def __init__(self, maximum: float) -> None:
        self._maximum: Final = maximum
        self._held: Final[dict[int, _Lease]] = {}
        self._next = inf

    def __bool__(self) -> bool:
        return bool(self._held)

    def begin(self, delivery: Delivery, now: float) -> None:
        """Track a new delivery; a delivery without a lease is ignored."""
        seconds = delivery.lease
        if seconds is None:
            return
        due = now + seconds / _SHARE
        self._held[id(delivery)] = _Lease(
            delivery, seconds, now + seconds, due, now + self._maximum
        )
        self._next = min(self._next, due)

    def due(self, now: float) -> list[Delivery]:
        """Return the deliveries to renew now; those past the maximum are not renewed."""
        if now < self._next:
            return []
        due = [lease for lease in self._held.values() if lease.next <= now]
        for lease in due:
            lease.next = now + lease.seconds / _SHARE if now < lease.last else inf
        self._next = min((lease.next for lease in self._held.values()), default=inf)
        return [lease.delivery for lease in due if lease.next < inf]

    def renewed(self, deliveries: Iterable[Delivery], now: float) -> None:
        """Restart the leases of these deliveries; `now` is the time before the broker was asked."""
        for delivery in deliveries:
            lease = self._held[id(delivery)]
            lease.until = now + lease.seconds

    def end(self, delivery: Delivery, now: float) -> bool:
        """Forget a delivery before it is settled; return whether its lease is still valid."""
        lease = self._held.pop(id(delivery), None)
        return lease is None or now < lease.until
