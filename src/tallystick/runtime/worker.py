"""Consume one queue: take deliveries, hand them to threads, settle what they came to.

One thread owns the transport and does nothing but receive and settle; `concurrency` threads run
handlers. A message is settled after its outcome is known, and in no other case; a settlement that
fails leaves the message to the broker. The two sides pass messages through plain deques, and wake
each other once for many. Where a delivery comes back by a deadline its lease is renewed while it is
here, and what came of one whose lease is lost is not settled. When the broker is away the worker
waits, longer and longer, and connects again.

Stopping: nothing more is received, what no handler has begun is handed back, what runs may finish
until the timeout, and is then handed back as well.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from heapq import heapify, heappop, heappush
from itertools import count
from queue import Empty, SimpleQueue
from threading import Event, Thread
from time import monotonic, time_ns
from traceback import format_tb
from typing import Final

from tallystick.core.errors import TallystickError
from tallystick.core.transport import Delivery, Transport
from tallystick.runtime.execution import Execution
from tallystick.runtime.lanes import Lanes
from tallystick.runtime.leases import Leases
from tallystick.runtime.settlement import Plan

__all__ = ["Worker"]

_LOG: Final = logging.getLogger("tallystick.runtime")
_IDLE: Final = 0.5
_BUSY: Final = 0.02
_PAUSES: Final = (0.1, 0.3, 1.0, 3.0, 5.0)
_MOST_HELD: Final = 1000
_LINGER: Final = 0.005
_EXPECTED: Final = ("retried", "released", "handed_back")
_QUIET: Final = frozenset({"handled", "skipped"})


class Worker:
    """The consumption of one queue over one connection."""

    def __init__(
        self, transport: Transport, queue: str, execution: Execution, stopping: Event
    ) -> None:
        self.counts: Final[Counter[str]] = Counter()
        self.last_error = ""
        self._transport: Final = transport
        self._queue: Final = queue
        self._execution: Final = execution
        self._settings: Final = execution.rules.settings
        self._probe: Final = execution.probe
        self._stopping: Final = stopping
        self._todo: Final[deque[Delivery]] = deque()
        self._done: Final[deque[Plan]] = deque()
        self._ring: Final[SimpleQueue[bool]] = SimpleQueue()  # True: there is work; False: the end
        self._wake: Final[SimpleQueue[None]] = SimpleQueue()
        self._few: Final = max(self._settings.prefetch // 2, 1)
        self._wake_at = 0.0
        self._running: dict[int, Delivery] = {}
        self._held: list[tuple[float, int, Plan]] = []
        self._leases: Final = Leases(self._settings.max_lease)
        self._lanes: Final = Lanes()
        self._order: Final = count()
        self._failures = 0

    @property
    def in_flight(self) -> int:
        """How many messages were taken and are not settled yet."""
        return len(self._running) + len(self._held)

    def run(self, *, limit: int | None = None, idle: float | None = None) -> None:
        """Consume until told to stop, or `limit` messages are settled, or idle for so long."""
        threads = [
            Thread(target=self._work, name=f"{self._queue}-{n}", daemon=True)
            for n in range(self._settings.concurrency)
        ]
        for thread in threads:
            thread.start()
        try:
            self._consume(limit, idle)
        finally:
            for _ in threads:
                self._ring.put(False)

    def _consume(self, limit: int | None, idle: float | None) -> None:
        taken, last = 0, monotonic() + self._transport.capabilities.warm_up
        while not self._stopping.is_set():
            self._renew()
            left = _MOST_HELD if limit is None else limit - taken
            room = self._room(left)
            if not room and limit is not None and taken >= limit and not self._busy():
                return
            if not room or self._is_time():
                plans = self._collect(0 if room else _BUSY)
                if self._is_rush(plans):
                    taken += self._take(self._room(left), 0)
                self._settle(plans)
                if plans or not room:
                    continue
            came = self._take(room, self._wait(last, idle))
            taken += came
            if came or self._busy():
                last = max(last, monotonic()) if not taken else monotonic()
            elif idle is not None and monotonic() - last >= idle:
                return
        self._stop()

    def _room(self, left: int) -> int:
        """Give how many more to take; none while it would be only a few."""
        free = self._settings.concurrency + self._settings.prefetch - len(self._running)
        return max(min(free, _MOST_HELD - len(self._held), left), 0) if free >= self._few else 0

    def _is_rush(self, plans: list[Plan]) -> bool:
        """Tell whether handlers get more to do before the broker is told what they have done."""
        buffered = self._transport.capabilities.buffered
        return buffered and len(plans) >= self._few and all(plan.move == "ack" for plan in plans)

    def _take(self, room: int, timeout: float) -> int:
        """Receive, and give to handlers; say how many came."""
        deliveries = self._receive(room, timeout) if room else []
        now = monotonic()
        for delivery in deliveries:
            if delivery.lease is not None:
                self._leases.begin(delivery, now)
        self._running.update({id(one): one for one in deliveries})
        self._hand_out([one for one in deliveries if not one.group or self._lanes.enter(one)])
        return len(deliveries)

    def _hand_out(self, deliveries: list[Delivery]) -> None:
        self._todo.extend(deliveries)
        for _ in range(min(len(deliveries), self._settings.concurrency)):
            self._ring.put(True)

    def _wait(self, last: float, idle: float | None) -> float:
        if self._busy():
            return _BUSY
        return _IDLE if idle is None else min(_IDLE, max(last + idle - monotonic(), 0.001))

    def _busy(self) -> bool:
        return bool(self._running or self._held)

    def _receive(self, limit: int, timeout: float) -> list[Delivery]:
        began = time_ns()
        try:
            deliveries = self._transport.receive(self._queue, limit, timeout)
        except TallystickError as error:
            pause = _PAUSES[min(self._failures, len(_PAUSES) - 1)]
            if not self._failures:
                _LOG.warning("queue %s: %s; trying again", self._queue, error)
            self._failures += 1
            self.last_error = f"{self._queue}: {error}"
            self._stopping.wait(pause)
            return []
        if self._failures:
            _LOG.warning("queue %s: connected again", self._queue)
            self._failures = 0
        if deliveries and self._probe is not None:
            self._probe.received(self._queue, deliveries, began)
        return deliveries

    def _work(self) -> None:
        todo, done = self._todo, self._done
        while self._ring.get():
            while todo:
                try:
                    delivery = todo.popleft()
                except IndexError:  # another thread was quicker
                    break
                done.append(self._plan(delivery))
                if not todo or len(done) >= self._few or monotonic() >= self._wake_at:
                    self._rouse()

    def _plan(self, delivery: Delivery) -> Plan:
        if id(delivery) not in self._running:  # its lease was lost before a handler was free
            return Plan("leave", delivery, "left")
        try:
            return self._execution.run(delivery)
        except TallystickError as error:
            return Plan("leave", delivery, "left", note=str(error))
        except BaseException as error:  # noqa: BLE001 (a thread that ends takes no work)
            where = "".join(format_tb(error.__traceback__))  # what it says may be personal
            text = "queue %s: a message is left to the broker: %s\n%s"
            _LOG.error(text, self._queue, type(error).__name__, where)
            return Plan("leave", delivery, "left", note=type(error).__name__)

    def _rouse(self) -> None:
        """Wake the settling thread; once is enough until it is awake."""
        if self._wake.empty():
            self._wake.put(None)

    def _collect(self, timeout: float) -> list[Plan]:
        """Give what handlers have finished, and what was held until now."""
        if self._held:
            timeout = min(timeout, max(self._held[0][0] - monotonic(), 0))
        self._sleep(timeout)
        now = monotonic()
        plans = [self._done.popleft() for _ in range(len(self._done))]
        followers = self._lanes.leave_all(plan.delivery for plan in plans) if self._lanes else []
        if followers:
            self._hand_out(followers)
        mine = [plan for plan in plans if self._running.pop(id(plan.delivery), None) is not None]
        ready = [plan for plan in mine if plan.hold <= 0]
        for plan in mine if len(ready) < len(mine) else ():
            if plan.hold > 0:
                heappush(self._held, (now + plan.hold, next(self._order), plan))
        while self._held and self._held[0][0] <= now:
            ready.append(heappop(self._held)[2])
        return ready

    def _is_time(self) -> bool:
        """Tell whether settling is worth a round trip: enough is done, or some of it for long."""
        return not self._wake.empty() or bool(self._held) or monotonic() >= self._wake_at

    def _sleep(self, timeout: float) -> None:
        """Wait until handlers have finished enough, one of them long ago, or all of them."""
        with suppress(Empty):
            if timeout:
                self._wake.get(timeout=timeout)
            while True:
                self._wake.get_nowait()
        self._wake_at = monotonic() + _LINGER

    def _settle(self, plans: list[Plan]) -> None:
        now = monotonic()
        end = self._leases.end
        late = [plan for plan in plans if not end(plan.delivery, now)] if self._leases else []
        if late:
            self._forget([plan.delivery for plan in late])
            plans = [plan for plan in plans if plan not in late]
        acks = [plan for plan in plans if plan.move == "ack"]
        if acks:
            self._perform(acks, lambda: self._transport.ack([plan.delivery for plan in acks]))
        for plan in plans if len(acks) < len(plans) else ():
            if plan.move != "ack":
                self._perform([plan], self._move(plan))

    def _move(self, plan: Plan) -> Callable[[], None]:
        transport, delivery, frame = self._transport, plan.delivery, plan.frame
        if plan.move == "replace" and frame is not None:
            return lambda: transport.replace(delivery, plan.queue, frame)
        return {
            "release": lambda: transport.release(delivery, plan.delay),
            "leave": lambda: transport.leave(delivery),
            "give_up": lambda: transport.give_up(delivery, plan.note),
        }[plan.move]

    def _renew(self) -> None:
        """Ask for more time for what is here; forget what the broker has taken back."""
        now = monotonic()
        due = self._leases.due(now)
        if not due:
            return
        try:
            gone = self._transport.renew(due)
        except TallystickError as error:
            _LOG.warning("queue %s: %d leases not renewed: %s", self._queue, len(due), error)
            return
        self._leases.renewed(due, now)
        if gone:
            self._forget(gone)

    def _forget(self, gone: Sequence[Delivery]) -> None:
        """Settle nothing of these: the broker hands them out again."""
        text = "queue %s: the leases of %d messages are lost; the broker hands them out again"
        _LOG.warning(text, self._queue, len(gone))
        self.counts["lost"] += len(gone)
        numbers = {id(one) for one in gone}
        self._held = [one for one in self._held if id(one[2].delivery) not in numbers]
        heapify(self._held)
        for one in gone:
            self._leases.end(one, 0)
            self._running.pop(id(one), None)
            try:
                self._transport.leave(one)
            except TallystickError as error:
                _LOG.warning("queue %s: %s", self._queue, error)
        self._measure(["lost"] * len(gone))

    def _perform(self, plans: list[Plan], move: Callable[[], None]) -> None:
        try:
            move()
        except TallystickError as error:
            self.counts["unsettled"] += len(plans)
            self._measure(["unsettled"] * len(plans))
            self.last_error = f"{self._queue}: {error}"
            text = "queue %s: %d settlements failed, left to the broker: %s"
            _LOG.warning(text, self._queue, len(plans), error)
            self._leave(plans, error)
            return
        outcomes = [plan.outcome for plan in plans]
        self.counts.update(outcomes)
        self._measure(outcomes)
        if not _QUIET.issuperset(outcomes):
            for plan in plans:
                self._tell(plan)

    def _tell(self, plan: Plan) -> None:
        """Log how a delivery ended that was not simply handled."""
        if plan.outcome in _QUIET:
            return
        if plan.outcome != "handed_back":
            self.last_error = f"{self._queue}: {plan.outcome}: {plan.note}"
        level = logging.INFO if plan.outcome in _EXPECTED else logging.WARNING
        _LOG.log(level, "queue %s: %s: %s", self._queue, plan.outcome, plan.note)

    def _measure(self, outcomes: list[str]) -> None:
        if self._probe is not None:
            for outcome in outcomes:
                self._probe.settled(self._queue, outcome)

    def _leave(self, plans: list[Plan], error: TallystickError) -> None:
        """Tell the broker that a delivery stays unsettled, where it can still be told."""
        if error.code == "delivery_lost":
            return
        for plan in plans:
            if plan.move != "leave":
                try:
                    self._transport.leave(plan.delivery)
                except TallystickError as second:
                    _LOG.warning("queue %s: %s", self._queue, second)

    def _stop(self) -> None:
        waiting = self._lanes.clear()
        with suppress(IndexError):
            while True:
                waiting.append(self._todo.popleft())
        for delivery in waiting:
            self._running.pop(id(delivery), None)
        self._hand_back(waiting)
        end = monotonic() + self._settings.shutdown_timeout
        while self._running and (left := end - monotonic()) > 0:
            self._renew()
            self._settle(self._collect(min(left, _IDLE)))
        self._settle(self._collect(0))
        held = [plan for _, _, plan in self._held]
        self._held = []
        self._settle(held)
        self._hand_back(list(self._running.values()))

    def _hand_back(self, deliveries: list[Delivery]) -> None:
        """Give deliveries back, the last first: a broker that puts them in front keeps order."""
        if self._transport.capabilities.log:  # uncommitted is enough; a rewind undoes what runs
            self.counts["handed_back"] += len(deliveries)
            self._measure(["handed_back"] * len(deliveries))
            return
        plans = [Plan("release", one, "handed_back", note="stopping") for one in deliveries]
        self._settle(plans[::-1])
