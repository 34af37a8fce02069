"""The two layouts of a queue in Redis, on top of the scripts; the clock is an argument.

    Legacy    a list, a list of reserved elements, and a sorted set of deadlines; no delays
    Laravel   a list, sorted sets of delayed and of reserved elements, and a list to wake consumers

`retry_after` is the length of a reservation in seconds; None means for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor
from secrets import token_hex
from typing import Any, Final, Protocol

from msgspec import Struct

from tallystick.brokers.redis import scripts
from tallystick.brokers.redis.binding import BINDING, LARAVEL
from tallystick.brokers.redis.element import read_element, write_element
from tallystick.core.delay import score
from tallystick.core.frame import Frame
from tallystick.core.names import name
from tallystick.core.transport import Delivery, lost

__all__ = ["LaravelLayout", "Layout", "LegacyLayout", "Reserved"]

_BATCH: Final = 500
_UNCOUNTED: Final = "the attempts of this body cannot be counted by the reservation"


class Reserved(Struct, frozen=True):
    """The key of a reservation in Redis."""

    member: bytes


class Layout(Protocol):
    """The operations of a layout; `client` is a redis-py client."""

    def push(self, client: Any, queue: str, frames: Sequence[Frame]) -> None:
        """Add frames in order."""

    def reserve(self, client: Any, queue: str, limit: int, now: float) -> list[Delivery]:
        """Take up to `limit` elements, after putting expired ones back."""

    def wait_key(self, queue: str) -> str:
        """Name a list that is not empty when something can be taken."""

    def work_key(self, queue: str) -> str:
        """Return the name of the list of waiting elements."""

    def read(self, element: bytes) -> Frame:
        """Give the frame of an element of that list."""

    def ack(self, client: Any, deliveries: Sequence[Delivery]) -> None:
        """End reservations; raise if some had expired."""

    def renew(self, client: Any, deliveries: Sequence[Delivery], now: float) -> list[Delivery]:
        """Renew reservations; return the expired ones."""

    def release(self, client: Any, delivery: Delivery, delay: float, now: float) -> None:
        """Return the unchanged element to the queue."""

    def replace(
        self, client: Any, delivery: Delivery, queue: str, frame: Frame, now: float
    ) -> None:
        """Replace a reservation with a frame, in one step."""


def _evaluate(client: Any, script: str, keys: Sequence[str], *arguments: Any) -> Any:
    return client.register_script(script)(keys=keys, args=arguments)


def _renew(
    client: Any, key: str, deliveries: Sequence[Delivery], deadline: float
) -> list[Delivery]:
    gone: list[Delivery] = []
    for start in range(0, len(deliveries), _BATCH):
        batch = deliveries[start : start + _BATCH]
        members = [one.handle.member for one in batch]
        gone += [batch[n] for n in _evaluate(client, scripts.RENEW, [key], deadline, *members)]
    return gone


class LegacyLayout:
    """`RPUSH`, `LMOVE` to `:processing` with a deadline, and a gate on every settlement."""

    def __init__(self, retry_after: float | None = 90.0, most: int = -1) -> None:
        self._retry_after: Final = retry_after
        self._most: Final = most

    def push(self, client: Any, queue: str, frames: Sequence[Frame]) -> None:
        """Add frames in order."""
        elements = [write_element(frame) for frame in frames]
        for start in range(0, len(elements), _BATCH):
            client.rpush(name(BINDING.names, "work", queue), *elements[start : start + _BATCH])

    def sweep(self, client: Any, queue: str, now: float) -> None:
        """Put expired elements back, and nothing else."""
        _evaluate(client, scripts.LEGACY_SWEEP, self._keys(queue), floor(now), self._most)

    def reserve(self, client: Any, queue: str, limit: int, now: float) -> list[Delivery]:
        """Sweep, then take up to `limit` elements."""
        token = token_hex(12).encode()
        deadline = "+inf" if self._retry_after is None else floor(now) + self._retry_after
        taken = _evaluate(
            client, scripts.LEGACY_RESERVE, self._keys(queue),
            floor(now), self._most, deadline, token, limit,
        )  # fmt: skip
        return [
            Delivery(
                read_element(element),
                queue,
                Reserved(b"%b%08x:%b" % (token, n, element)),
                lease=self._retry_after,
            )
            for n, element in enumerate(taken)
        ]

    def wait_key(self, queue: str) -> str:
        """Name the work list."""
        return name(BINDING.names, "work", queue)

    work_key = wait_key

    def read(self, element: bytes) -> Frame:
        """Give the body and its headers."""
        return read_element(element)

    def ack(self, client: Any, deliveries: Sequence[Delivery]) -> None:
        """Remove the reservations, except expired ones."""
        expired = 0
        for queue in dict.fromkeys(one.queue for one in deliveries):
            members = [one.handle.member for one in deliveries if one.queue == queue]
            keys = self._keys(queue)[1:]
            for start in range(0, len(members), _BATCH):
                batch = members[start : start + _BATCH]
                expired += _evaluate(client, scripts.LEGACY_ACK, keys, *batch)
        if expired:
            raise lost()

    def renew(self, client: Any, deliveries: Sequence[Delivery], now: float) -> list[Delivery]:
        """Begin reservations of one queue again; those that have expired are not touched."""
        if self._retry_after is None:
            return []
        key = self._keys(deliveries[0].queue)[2]
        return _renew(client, key, deliveries, floor(now) + self._retry_after)

    def release(self, client: Any, delivery: Delivery, delay: float, now: float) -> None:  # noqa: ARG002
        """Put the element back in front; this layout has no delays."""
        element = delivery.handle.member[33:]
        self._move(client, delivery, self.wait_key(delivery.queue), "LPUSH", element)

    def replace(
        self,
        client: Any,
        delivery: Delivery,
        queue: str,
        frame: Frame,
        now: float,  # noqa: ARG002
    ) -> None:
        """Add a frame at the end of a queue, and remove the reservation."""
        self._move(client, delivery, self.wait_key(queue), "RPUSH", write_element(frame))

    def _move(
        self, client: Any, delivery: Delivery, target: str, side: str, element: bytes
    ) -> None:
        keys = [*self._keys(delivery.queue)[1:], target]
        member = delivery.handle.member
        if not _evaluate(client, scripts.LEGACY_REPLACE, keys, member, side, element):
            raise lost()

    def _keys(self, queue: str) -> list[str]:
        return [name(BINDING.names, role, queue) for role in ("work", "processing", "deadlines")]


class LaravelLayout:
    """The keys of Laravel's own queue; a reservation counts as an attempt when it expires."""

    def __init__(
        self, retry_after: float | None = 90.0, most: int = -1, prefix: str | None = None
    ) -> None:
        self._retry_after: Final = retry_after
        self._most: Final = most
        self._prefix: Final = prefix

    def push(self, client: Any, queue: str, frames: Sequence[Frame]) -> None:
        """Add frames in order: those with a score wait, the others are ready."""
        with client.pipeline(transaction=True) as batch:
            for frame in frames:
                due = frame.get("delayed", "score")
                if due is None:
                    batch.rpush(self._key("work", queue), frame.body)
                    batch.rpush(self._key("notify", queue), 1)
                else:
                    batch.zadd(self._key("delayed", queue), {frame.body: due})
            batch.execute()

    def migrate(self, client: Any, queue: str, now: float) -> None:
        """Move delayed elements whose time has come, then expired ones, to the list."""
        _evaluate(
            client, scripts.LARAVEL_MIGRATE, self._keys(queue), *self._due(now)
        )  # fmt: skip

    def reserve(self, client: Any, queue: str, limit: int, now: float) -> list[Delivery]:
        """Migrate, then take up to `limit` bodies."""
        deadline = "+inf" if self._retry_after is None else floor(now) + self._retry_after
        taken = _evaluate(
            client, scripts.LARAVEL_RESERVE, self._keys(queue), *self._due(now), limit, deadline
        )
        return [
            Delivery(
                Frame(body),
                queue,
                Reserved(member),
                "" if counted else _UNCOUNTED,
                self._retry_after,
            )
            for body, member, counted in taken
        ]

    def wait_key(self, queue: str) -> str:
        """Name the list of tokens."""
        return self._key("notify", queue)

    def work_key(self, queue: str) -> str:
        """Return the name of the list of ready elements."""
        return self._key("work", queue)

    def read(self, element: bytes) -> Frame:
        """Return the body; this layout has no headers."""
        return Frame(element)

    def ack(self, client: Any, deliveries: Sequence[Delivery]) -> None:
        """Remove the reservations."""
        with client.pipeline(transaction=False) as batch:
            for one in deliveries:
                batch.zrem(self._key("reserved", one.queue), one.handle.member)
            removed = sum(batch.execute())
        if removed < len(deliveries):
            raise lost()

    def renew(self, client: Any, deliveries: Sequence[Delivery], now: float) -> list[Delivery]:
        """Begin reservations of one queue again; those that have expired are not touched."""
        if self._retry_after is None:
            return []
        key = self._key("reserved", deliveries[0].queue)
        return _renew(client, key, deliveries, floor(now) + self._retry_after)

    def release(self, client: Any, delivery: Delivery, delay: float, now: float) -> None:
        """Put the body back in front, or into the delayed set."""
        if delay > 0:
            due = score(now, delay)
            self._move(client, delivery, delivery.queue, "ZADD", delivery.frame.body, due)
        else:
            self._move(client, delivery, delivery.queue, "LPUSH", delivery.frame.body)

    def replace(
        self, client: Any, delivery: Delivery, queue: str, frame: Frame, now: float
    ) -> None:
        """Add a frame to a queue, delayed if it is its own queue; remove the reservation."""
        due = frame.get("delayed", "score")
        if due is None and queue == delivery.queue:
            due = score(now, 0)
        verb = "RPUSH" if due is None else "ZADD"
        self._move(client, delivery, queue, verb, frame.body, due or 0)

    def _move(
        self, client: Any, delivery: Delivery, queue: str, verb: str, body: bytes, due: int = 0
    ) -> None:
        target = self._key("delayed" if verb == "ZADD" else "work", queue)
        keys = [self._key("reserved", delivery.queue), target, self._key("notify", queue)]
        member = delivery.handle.member
        if not _evaluate(client, scripts.LARAVEL_SETTLE, keys, member, verb, body, due):
            raise lost()

    def _due(self, now: float) -> tuple[Any, ...]:
        return floor(now), self._most, "" if self._retry_after is None else "recover"

    def _key(self, role: str, queue: str) -> str:
        return name(LARAVEL.names, role, queue, prefix=self._prefix)

    def _keys(self, queue: str) -> list[str]:
        return [self._key(role, queue) for role in ("work", "delayed", "reserved", "notify")]
