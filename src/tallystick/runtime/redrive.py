"""Send dead letters back to their queues: without their block, `attempts` at 0, else byte for byte.

Each letter goes to the queue that its block names, or to the given one. A letter stays if it is not
a message, has no block, was not selected, cannot be carried by the broker, or if its queue is
unreachable. A letter that stays does not stop the others. It is held until the end and then
returned, also after an error. On a broker that is a log, returning it would return the others too,
so it moves to the end of the dead-letter queue. The number of held letters is limited (`Kept`):
when it is full, the redrive ends and reports that it has not looked at the rest (`full`).

A letter leaves the dead-letter queue only after the broker has confirmed it in its own queue: a
crash in between duplicates it and never loses it.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Event
from time import monotonic
from typing import Final
from uuid import uuid4

from tallystick.core import splice
from tallystick.core.binding import Binding, route
from tallystick.core.envelope import decode
from tallystick.core.errors import Refused, Rejected, TallystickError, Unavailable
from tallystick.core.frame import Frame
from tallystick.core.transport import Delivery, Transport
from tallystick.runtime.kept import Kept
from tallystick.runtime.settlement import reproject

__all__ = ["Redriven", "fresh", "redrive"]

_LOG: Final = logging.getLogger("tallystick.runtime")
_BATCH: Final = 100
_LOST: Final = "delivery_lost"


@dataclass(frozen=True, slots=True)
class Redriven:
    """The numbers of redriven letters by queue and of kept letters; `full` if it had to stop."""

    redriven: int = 0
    skipped: int = 0
    queues: Mapping[str, int] = field(default_factory=dict, compare=False)
    full: bool = False


@dataclass(frozen=True, slots=True)
class _Course:
    """Where letters go, and which."""

    binding: Binding
    transport: Transport
    graveyard: str
    to: str
    only: frozenset[str]


def redrive(
    binding: Binding,
    transport: Transport,
    graveyard: str,
    *,
    to: str = "",
    only: frozenset[str] = frozenset(),
    limit: int | None = None,
    timeout: float = 1.0,
    stopping: Event | None = None,
    moved: Callable[[int], None] = lambda _count: None,
) -> Redriven:
    """Send back up to `limit` dead letters, until none arrived for `timeout` seconds.

    With `only`, letters of other URNs stay. `moved` is called with the count after each letter.
    """
    work = _Redrive(_Course(binding, transport, graveyard, to, only), moved)
    wait = timeout + transport.capabilities.warm_up
    try:
        while not (stopping is not None and stopping.is_set()):
            if not work.take(_BATCH if limit is None else limit - work.queues.total(), wait):
                break
            wait = timeout
    except BaseException:
        try:
            work.hand_back()
        except TallystickError as error:
            _LOG.warning(
                "redrive: could not return messages; the broker will deliver them again later: %s",
                error,
            )
        raise
    work.hand_back()
    full = not work.kept.room
    if full:
        _LOG.warning(
            "redrive: stopped: %d messages stay in the queue, which is the maximum",
            len(work.kept),
        )
    return Redriven(work.queues.total(), len(work.kept), dict(work.queues), full)


class _Redrive:
    """The letters that one redrive has moved, and those that it holds."""

    def __init__(self, course: _Course, moved: Callable[[int], None]) -> None:
        self._course: Final = course
        self._transport: Final = course.transport
        self._moved: Final = moved
        self._missing: Final[set[str]] = set()
        self._rest: deque[Delivery] = deque()
        self._shaken = False
        self.kept: Final = Kept()
        self.queues: Final = Counter[str]()

    def take(self, most: int, wait: float) -> bool:
        """Handle one batch of at most this size; return whether anything new arrived."""
        room, since = min(_BATCH, most, self.kept.room), monotonic()
        if room <= 0:
            return False
        self._rest.extend(self._transport.receive(self._course.graveyard, room, wait))
        self._shaken, new = False, False
        while self._rest:
            delivery = self._rest[0]
            sent = self._send_back(delivery)
            new = sent or self.kept.add(delivery, since, monotonic()) or new
            self._rest.popleft()
            if sent:
                self._moved(self.queues.total())
        if self._shaken:
            self.kept.doubt()
        return new

    def hand_back(self) -> None:
        """Return the letters that stay, the last first; on a log, move them to the end."""
        course, transport = self._course, self._transport
        if transport.capabilities.log:
            for delivery in self.kept.all():
                _unless_lost(
                    lambda one: transport.replace(one, course.graveyard, one.frame), delivery
                )
            return
        for delivery in reversed([*self.kept.all(), *self._rest]):
            _unless_lost(transport.release, delivery)

    def _send_back(self, delivery: Delivery) -> bool:
        """Send a letter back; say False if it stays."""
        try:
            queue, frame = _back(self._course, delivery)
            if not self._has(queue):
                return False
            self._transport.replace(delivery, queue, frame)
        except (Rejected, Refused):
            return False
        except Unavailable as error:
            if error.code != _LOST or not self._shaken:
                raise
            return True  # the connection broke over another letter's queue: this one comes again
        self.queues[queue] += 1
        return True

    def _has(self, queue: str) -> bool:
        """Say whether a queue is there, or can be made; a broker that is away says so next."""
        if queue in self.queues or queue in self._missing:
            return queue in self.queues
        try:
            self._transport.ensure([queue])
        except TallystickError as error:
            if queue == self._course.to:
                raise
            _LOG.warning("redrive: the messages for queue %s stay: %s", queue, error)
            self._missing.add(queue)
            self._shaken = True
            return False
        return True


def _unless_lost(settle: Callable[[Delivery], None], delivery: Delivery) -> None:
    """Settle; if the reservation or connection has ended, the broker delivers it again anyway."""
    try:
        settle(delivery)
    except Unavailable as error:
        if error.code != _LOST:
            raise


def _back(course: _Course, delivery: Delivery) -> tuple[str, Frame]:
    frame = delivery.frame
    letter = decode(frame.body)
    queue = course.to or (letter.dead_letter.original_queue if letter.dead_letter else None)
    if letter.dead_letter is None or not queue:
        raise Rejected("no dead-letter block", code="no_block", pointer="/dead_letter")
    if course.only and letter.urn not in course.only:
        raise Rejected("not selected", code="other_urn", pointer="/job")
    envelope = decode(splice.redrive(frame.body))
    projected = reproject(
        course.binding,
        frame,
        envelope,
        queue=queue,
        routed_as=route(course.binding, frame.sections, envelope.urn),
        options=course.transport.capabilities.options,
    )
    return queue, fresh(projected)


def fresh(frame: Frame) -> Frame:
    """Give the letter a new id if the broker would drop it as a duplicate."""
    held = frame.sections.get("parameters", {})
    if "MessageGroupId" not in held:
        return frame
    unique = "-".join(filter(None, (held.get("MessageDeduplicationId"), uuid4().hex)))
    return Frame(
        frame.body, {**frame.sections, "parameters": {**held, "MessageDeduplicationId": unique}}
    )
