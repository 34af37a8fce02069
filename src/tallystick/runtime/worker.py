"""Consume one queue: take deliveries, hand them to threads, settle what they came to.

One thread owns the transport and does nothing but receive and settle; `concurrency` threads run
handlers. A message is settled after its outcome is known, and in no other case; one whose
settlement fails is left to the broker, after a pause. A message of a group that is to be handled
again waits and is run again here, and those behind it wait too: order is kept. Where a delivery
comes back by a deadline its lease is renewed while it is here, and what came of one whose lease is
lost is not settled. When the broker is away the worker waits, longer and longer, and connects
again; a run that is to end when idle says so instead of ending well.

Stopping: nothing more is received, what no handler has begun is handed back, what runs may finish
until the timeout, and is then handed back as well.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
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
from tallystick.runtime.waiting import Waiting

__all__ = ["Worker"]

_LOG: Final = logging.getLogger("tallystick.runtime")
_IDLE: Final = 0.5
_BUSY: Final = 0.02
_PAUSES: Final = (0.1, 0.3, 1.0, 3.0, 5.0)
_MOST_STUCK: Final = 1000
_LEFT: Final = 1.0
"""Seconds until a message that could not be settled is left to the broker, which may be at once."""
_LINGER: Final = 0.005
_EXPECTED: Final = ("retried", "released", "handed_back")
_QUIET: Final = ("handled", "skipped")


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
        self._todo: Final[SimpleQueue[Delivery | None]] = SimpleQueue()
        self._done: Final[SimpleQueue[tuple[int, Plan]]] = SimpleQueue()
        self._wake: Final[SimpleQueue[None]] = SimpleQueue()
        self._few: Final = max(self._settings.prefetch // 2, 1)
        self._wake_at = 0.0
        self._running: dict[int, Delivery] = {}
        self._held: Final = Waiting()
        self._failed: Final[dict[int, int]] = {}
        self._taken = 0
        self._limit: float = inf
        self._leases: Final = Leases(self._settings.max_lease)
        self._lanes: Final = Lanes()
        self._failures = 0
        self._away: TallystickError | None = None

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
            self._limit = inf if limit is None else limit
            self._consume(idle)
        finally:
            for _ in threads:
                self._todo.put(None)

    def _consume(self, idle: float | None) -> None:
        last = monotonic() + self._transport.capabilities.warm_up
        most = self._settings.concurrency + self._settings.prefetch
        while not self._stopping.is_set():
            self._renew()
            if self._is_time():
                self._settle(self._collect(0))
            free = most - len(self._running) + min(self._lanes.stuck, _MOST_STUCK)
            room = min(free, self._held.room, self._limit - self._taken)
            if room <= 0 or free < self._few:
                if self._taken >= self._limit and not self._busy():
                    return
                self._settle(self._collect(_BUSY))
                continue
            deliveries = self._receive(int(room), self._wait(last, idle))
            self._taken += len(deliveries)
            if deliveries or self._busy():
                last = max(last, monotonic()) if not self._taken else monotonic()
            elif idle is not None and monotonic() - last >= idle:
                if self._away is not None:  # that nothing came says nothing about the queue
                    raise self._away
                return
            for delivery in deliveries:
                self._leases.begin(delivery, monotonic())
                self._running[id(delivery)] = delivery
                if self._lanes.enter(delivery):
                    self._todo.put(delivery)
        self._stop()

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
            self._away = error
            self.last_error = f"{self._queue}: {error}"
            self._stopping.wait(pause)
            return []
        if self._failures:
            _LOG.warning("queue %s: connected again", self._queue)
            self._failures, self._away = 0, None
        if deliveries and self._probe is not None:
            self._probe.received(self._queue, deliveries, began)
        return deliveries

    def _work(self) -> None:
        while (delivery := self._todo.get()) is not None:
            if id(delivery) not in self._running:  # its lease was lost before a handler was free
                self._finish(delivery, Plan("leave", delivery, "left"))
                continue
            try:
                plan = self._execution.run(delivery, self._failed.get(id(delivery), 0))
            except TallystickError as error:
                plan = Plan("leave", delivery, "left", hold=_LEFT, note=str(error))
            except BaseException as error:  # noqa: BLE001 (a thread that ends takes no work)
                where = "".join(format_tb(error.__traceback__))  # what it says may be personal
                text = "queue %s: a message is left to the broker: %s\n%s"
                _LOG.error(text, self._queue, type(error).__name__, where)
                plan = Plan("leave", delivery, "left", hold=_LEFT, note=type(error).__name__)
            self._finish(delivery, plan)

    def _finish(self, delivery: Delivery, plan: Plan) -> None:
        """Note a plan, and wake the settling thread when there is enough for it to do."""
        self._done.put((id(delivery), plan))
        enough = self._done.qsize() >= self._few or self._todo.empty()
        if enough or monotonic() >= self._wake_at:
            self._wake.put(None)

    def _collect(self, timeout: float) -> list[Plan]:
        """Give what handlers have finished, and what was held until now."""
        self._sleep(min(timeout, max(self._held.next - monotonic(), 0)))
        now = monotonic()
        ready: list[Plan] = []
        while not self._done.empty():
            number, plan = self._done.get_nowait()
            kept = self._running.pop(number, None) is not None
            if kept and plan.here:
                self._lanes.stop(plan.delivery)
            else:
                self._follow(plan.delivery)
            if kept and (plan.hold > 0 or plan.here):
                self._held.add(plan, now + plan.hold)
            elif kept:
                ready.append(plan)
        for plan in self._held.take(now):
            if not plan.here:
                ready.append(plan)
            elif self._taken < self._limit and not self._stopping.is_set():
                self._run_again(plan)
            else:
                ready += self._return_lane(plan)
        return ready

    def _follow(self, delivery: Delivery) -> None:
        """Let the one behind a delivery be handled."""
        self._failed.pop(id(delivery), None)
        if (follower := self._lanes.leave(delivery)) is not None:
            self._todo.put(follower)

    def _run_again(self, plan: Plan) -> None:
        """Handle a message of a group again, before those behind it."""
        delivery = plan.delivery
        if plan.outcome == "retried":
            self._failed[id(delivery)] = self._failed.get(id(delivery), 0) + 1
        self._note([plan], stays=True)
        self._taken += 1
        self._lanes.resume(delivery)
        self._running[id(delivery)] = delivery
        self._todo.put(delivery)

    def _return_lane(self, plan: Plan) -> list[Plan]:
        """Give the plans that hand a lane back, its head last: it is to come first."""
        behind = self._lanes.empty(plan.delivery)
        self._failed.pop(id(plan.delivery), None)
        for one in behind:
            self._running.pop(id(one), None)
        return [*(_returned(one) for one in reversed(behind)), plan]

    def _is_time(self) -> bool:
        """Tell whether settling is worth a round trip: enough is done, or some of it for long."""
        return (
            not self._wake.empty() or self._held.next <= monotonic() or monotonic() >= self._wake_at
        )

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
        late = [plan for plan in plans if not self._leases.end(plan.delivery, now)]
        if late:
            self._forget([plan.delivery for plan in late])
            plans = [plan for plan in plans if plan not in late]
        acks = [plan for plan in plans if plan.move == "ack"]
        if acks:
            self._perform(acks, lambda: self._transport.ack([plan.delivery for plan in acks]))
        for plan in plans:
            if self._transport.capabilities.log and _is_return(plan):
                self._note([plan])  # uncommitted is enough; a rewind undoes what runs
            elif plan.move != "ack":
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
        for one in gone:
            self._leases.end(one, 0)
            self._running.pop(id(one), None)
        for plan in self._held.drop({id(one) for one in gone}):
            if plan.here:
                self._follow(plan.delivery)
        for one in gone:
            try:
                self._transport.leave(one)
            except TallystickError as error:
                _LOG.warning("queue %s: %s", self._queue, error)
        self._measure(["lost"] * len(gone))

    def _perform(self, plans: list[Plan], move: Callable[[], None]) -> None:
        try:
            move()
        except TallystickError as error:
            self._stumble(plans, error)
            return
        self._note(plans)

    def _note(self, plans: list[Plan], *, stays: bool = False) -> None:
        """Count and say what deliveries came to; one that stays here is not done yet."""
        plans = [plan for plan in plans if plan.outcome]
        self._measure([plan.outcome for plan in plans], stays=stays)
        for plan in plans:
            self.counts[plan.outcome] += 1
            if plan.outcome not in _QUIET:
                if plan.outcome != "handed_back":
                    self.last_error = f"{self._queue}: {plan.outcome}: {plan.note}"
                level = logging.INFO if plan.outcome in _EXPECTED else logging.WARNING
                _LOG.log(level, "queue %s: %s: %s", self._queue, plan.outcome, plan.note)

    def _measure(self, outcomes: list[str], *, stays: bool = False) -> None:
        if self._probe is not None:
            for outcome in outcomes:
                self._probe.settled(self._queue, outcome, stays=stays)

    def _stumble(self, plans: list[Plan], error: TallystickError) -> None:
        """Count settlements that failed, and leave to the broker, after a pause, what is ours."""
        new = [plan for plan in plans if plan.outcome]
        self.counts.update("unsettled" for _ in new)
        self._measure(["unsettled"] * len(new))
        self.last_error = f"{self._queue}: {error}"
        text = "queue %s: %d settlements failed, left to the broker: %s"
        _LOG.warning(text, self._queue, len(plans), error)
        if error.code != "delivery_lost":
            for plan in plans:
                self._held.add(Plan("leave", plan.delivery, ""), monotonic() + _LEFT)

    def _stop(self) -> None:
        waiting = self._lanes.clear()
        try:
            while True:
                delivery = self._todo.get_nowait()
                if delivery is not None:
                    waiting.append(delivery)
        except Empty:
            pass
        for delivery in waiting:
            self._running.pop(id(delivery), None)
        self._hand_back(waiting)
        end = monotonic() + self._settings.shutdown_timeout
        while self._running and (left := end - monotonic()) > 0:
            self._renew()
            self._settle(self._collect(min(left, _IDLE)))
        self._settle(self._collect(0))
        self._settle(self._held.take(inf))
        self._hand_back(list(self._running.values()))

    def _hand_back(self, deliveries: list[Delivery]) -> None:
        """Give deliveries back, the last first: a broker that puts them in front keeps order."""
        self._settle([_returned(one) for one in reversed(deliveries)])


def _returned(delivery: Delivery) -> Plan:
    return Plan("release", delivery, "handed_back", note="stopping")


def _is_return(plan: Plan) -> bool:
    """Say whether a plan does no more than hand a message back as it came."""
    return plan.here or plan.outcome == "handed_back"
