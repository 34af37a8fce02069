"""Consume one queue: receive deliveries, run their handlers in threads, settle the outcomes.

One thread only receives and settles; `concurrency` threads run handlers. The two sides exchange
messages through deques, and wake each other once per batch. If the client library prefetches
messages, a handler thread settles and receives on its own: passing a message between threads costs
more than a short handler. The first thread then does only what cannot wait. A token says which
thread may use the transport.

A message is settled only after its outcome is known. If the settlement fails, the message is left
to the broker after a pause. A message of a group that must be handled again waits and runs again in
this worker, and later messages of its group wait too, so the order is kept. A delivery with a
deadline is renewed while it is in the worker; if its lease is lost, it is not settled. When the
broker is unreachable, the worker waits longer and longer and connects again; a run that should end
when idle then ends with an error.

Stopping: the worker receives nothing more and returns messages that no handler has started. Running
handlers may finish until the timeout; then their messages are returned too. Until then the worker
stays in its group.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from queue import SimpleQueue
from threading import Event, Lock, Thread
from time import monotonic
from traceback import format_tb
from typing import Final

from tallystick.core.errors import TallystickError
from tallystick.core.transport import Delivery, Transport
from tallystick.runtime.execution import Execution
from tallystick.runtime.lanes import Lanes
from tallystick.runtime.leases import Leases
from tallystick.runtime.outcomes import Outcomes
from tallystick.runtime.receiving import Receiving
from tallystick.runtime.settlement import Plan, plan_return
from tallystick.runtime.settling import LEFT, Settling
from tallystick.runtime.waiting import Waiting

__all__ = ["Worker"]

_LOG: Final = logging.getLogger("tallystick.runtime")
_IDLE: Final = 0.5
_BUSY: Final = 0.02
_SHORTEST: Final = 0.04
"""Minimum seconds that an idle worker waits, because a transport may return at once."""
_MOST_STUCK: Final = 1000
_LINGER: Final = 0.005


class Worker:
    """The consumption of one queue over one connection."""

    def __init__(
        self, transport: Transport, queue: str, execution: Execution, stopping: Event
    ) -> None:
        self._transport: Final = transport
        self._queue: Final = queue
        self._execution: Final = execution
        self._settings: Final = execution.rules.settings
        self._outcomes: Final = Outcomes(queue, execution.probe)
        self._stopping: Final = stopping
        self._receiving: Final = Receiving(transport, queue, execution, self._outcomes, stopping)
        self._todo: Final[deque[Delivery]] = deque()
        self._handled: Final[deque[Delivery]] = deque()
        self._done: Final[deque[Plan]] = deque()
        """What handlers came to, where it is more than to acknowledge a delivery."""
        self._ring: Final[SimpleQueue[bool]] = SimpleQueue()  # True: there is work; False: the end
        self._wake: Final = Event()
        self._token: Final = Lock()
        """Who has it has the transport, and all that is noted about deliveries."""
        self._fault: BaseException | None = None
        self._is_over = False
        self._shows = False
        self._relieved: Final = transport.capabilities.buffered
        self._few: Final = max(self._settings.prefetch // 2, 1)
        self._wake_at = 0.0
        self._relieved_at = -inf
        self._active_at = 0.0
        self._running: dict[int, Delivery] = {}
        self._held: Final = Waiting()
        self._settling: Final = Settling(transport, self._outcomes, self._held)
        self._failed: Final[dict[int, int]] = {}
        self._taken = 0
        self._limit: float = inf
        self._leases: Final = Leases(self._settings.max_lease)
        self._lanes: Final = Lanes()

    @property
    def counts(self) -> Counter[str]:
        """The number of messages by outcome."""
        return self._outcomes.counts

    @property
    def last_error(self) -> str:
        """The last error, for people."""
        return self._outcomes.last_error

    @property
    def in_flight(self) -> int:
        """The number of received messages that are not settled yet."""
        return len(self._running) + len(self._held)

    def run(self, *, limit: int | None = None, idle: float | None = None) -> None:
        """Consume until stopped, until `limit` messages are settled, or until idle long enough."""
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
            with self._token:
                self._is_over = True
            self._todo.clear()  # after a fault of ours nobody settles what is not begun
            for _ in threads:
                self._ring.put(False)

    def _consume(self, idle: float | None) -> None:
        self._active_at = monotonic() + self._transport.capabilities.warm_up
        while not self._stopping.is_set():
            nap: float | None = _BUSY
            # not to stand in line for the token: who is given it while another has the interpreter
            # holds up all the others
            if self._token.acquire(timeout=_BUSY if self._wake.is_set() else 0):
                try:
                    self._check()
                    self._renew()
                    nap = self._rest() or self._turn(idle)
                finally:
                    self._token.release()
                self._call_hands()
            if nap is None:
                return
            self._sleep(nap)
        with self._token:
            self._stop()
            self._check()

    def _rest(self) -> float:
        """Give how long a handler's thread, which has just talked, need not be relieved in turn."""
        rest = self._relieved_at + _BUSY - monotonic()
        return rest if rest > 0 and not self._wake.is_set() else 0.0

    def _turn(self, idle: float | None) -> float | None:
        """Settle and receive; give how long to sleep then, or None at the end of the run."""
        room = self._exchange() if self._is_time() else self._room()
        if not room and self._taken >= self._limit and not self._busy():
            return None
        took = self._take(room, self._wait(idle)) if room else 0
        if self._busy():
            self._active_at = max(self._active_at, monotonic())
        elif room and idle is not None and monotonic() - self._active_at >= idle:
            if self._receiving.away is not None:  # that nothing came says nothing about the queue
                raise self._receiving.away
            return None
        if not room:
            self._receiving.attend()
        leaves = not room or (took and self._relieved)
        return min(_BUSY, self._held.next - monotonic()) if leaves else 0.0

    def _check(self) -> None:
        """Raise the exception of a handler's thread."""
        if self._fault is not None:
            raise self._fault

    def _exchange(self) -> int:
        """Settle finished messages; return how many more to receive."""
        self._settle(*self._collect())
        return self._room()

    def _relieve(self) -> bool:
        """Settle and receive in a handler's thread; say whether there is more to handle."""
        if self._stopping.is_set():
            return False
        if not self._token.acquire(blocking=False):
            # another is at it, and there is time to ask again
            return bool(self._todo) and not self._stopping.is_set()
        try:
            if self._is_over or self._fault is not None:
                return False
            room = self._exchange()
            self._take(room, 0 if self._running else _BUSY)
            if not room:
                self._receiving.attend()
            self._relieved_at = monotonic()
        except BaseException as fault:  # noqa: BLE001 (the run ends by it, in its own thread)
            self._fault = fault
            return False
        finally:
            self._token.release()
        self._call_hands()
        return bool(self._todo)

    def _room(self) -> int:
        """Give how many more to take; none while it would be only a few."""
        most = self._settings.concurrency + self._settings.prefetch
        free = most - len(self._running) + min(self._lanes.stuck, _MOST_STUCK)
        room = min(free, self._held.room, self._limit - self._taken)
        return max(int(room), 0) if free >= self._few else 0

    def _take(self, room: int, timeout: float) -> int:
        """Receive, count, and give to handlers; say how many came."""
        deliveries = self._receiving.receive(room, timeout) if room else []
        now = monotonic()
        self._shows = _LOG.isEnabledFor(logging.DEBUG)
        self._active_at = now if deliveries else self._active_at
        for delivery in deliveries:
            if delivery.lease is not None:
                self._leases.begin(delivery, now)
        self._running.update(zip(map(id, deliveries), deliveries, strict=True))
        if self._relieved and deliveries:
            self._wake.clear()  # who waited for these talks again by himself
        self._todo.extend([one for one in deliveries if not one.group or self._lanes.enter(one)])
        self._taken += len(deliveries)
        return len(deliveries)

    def _call_hands(self) -> None:
        """Wake the threads that have messages to handle, without holding the token."""
        for _ in range(min(len(self._todo), self._settings.concurrency - self._ring.qsize())):
            self._ring.put(True)  # about as many as there are threads: each takes all it finds

    def _wait(self, idle: float | None) -> float:
        if self._busy():
            return _BUSY
        left = inf if idle is None else self._active_at + idle - monotonic()
        return min(_IDLE, max(left, _SHORTEST))

    def _busy(self) -> bool:
        return bool(self._running or self._held)

    def _work(self) -> None:
        todo, handled, wake, few = self._todo, self._handled, self._wake, self._few
        while self._ring.get():
            while todo:
                try:
                    delivery = todo.popleft()
                except IndexError:  # another thread was quicker
                    break
                plan = self._plan(delivery)
                if plan is None:
                    handled.append(delivery)
                else:
                    self._done.append(plan)
                many = len(handled) + len(self._done) >= few
                due = many or not todo or monotonic() >= self._wake_at
                if due and not wake.is_set() and not (self._relieved and self._relieve()):
                    wake.set()

    def _plan(self, delivery: Delivery) -> Plan | None:
        if id(delivery) not in self._running:  # its lease was lost before a handler was free
            return Plan("leave", delivery, "left")
        try:
            if self._shows:
                self._execution.show(delivery)
            failed = self._failed.get(id(delivery), 0) if self._failed else 0
            return self._execution.run(delivery, failed)
        except TallystickError as error:
            return Plan("leave", delivery, "left", hold=LEFT, note=str(error))
        except BaseException as error:  # noqa: BLE001 (a thread that ends takes no work)
            where = "".join(format_tb(error.__traceback__))  # what it says may be personal
            text = "queue %s: a message was not settled; the broker will deliver it again: %s\n%s"
            _LOG.error(text, self._queue, type(error).__name__, where)
            return Plan("leave", delivery, "left", hold=LEFT, note=type(error).__name__)

    def _collect(self) -> tuple[list[Plan], list[Delivery]]:
        """Return the plans whose time has come, and the handled deliveries."""
        self._wake.clear()
        now = monotonic()
        self._wake_at = now + _LINGER
        plans = [self._done.popleft() for _ in range(len(self._done))]
        ended = [self._handled.popleft() for _ in range(len(self._handled))]
        self._active_at = now if plans or ended else self._active_at
        pop = self._running.pop
        handled = [one for one in ended if pop(id(one), None) is not None]
        mine = [plan for plan in plans if pop(id(plan.delivery), None) is not None]
        if self._lanes:
            here = {id(plan.delivery) for plan in mine if plan.here}
            ended += [one.delivery for one in plans if id(one.delivery) not in here]
            self._follow(ended)
        ready = [plan for plan in mine if plan.hold <= 0 and not plan.here]
        for plan in mine if len(ready) < len(mine) else ():
            if plan.here:
                self._lanes.stop(plan.delivery)
            if plan.here or plan.hold > 0:
                self._held.add(plan, now + plan.hold)
        for plan in self._held.take(now) if self._held.next <= now else ():
            if not plan.here:
                ready.append(plan)
            elif self._taken < self._limit and not self._stopping.is_set():
                self._run_again(plan)
            else:
                ready += self._return_lane(plan)
        return ready, handled

    def _follow(self, deliveries: list[Delivery]) -> None:
        """Let those behind these be handled."""
        for one in deliveries:
            self._failed.pop(id(one), None)
        behind = (self._lanes.leave(one) for one in deliveries)
        self._todo.extend([one for one in behind if one is not None])

    def _run_again(self, plan: Plan) -> None:
        """Handle a message of a group again, before those behind it."""
        delivery = plan.delivery
        if plan.outcome == "retried":
            self._failed[id(delivery)] = self._failed.get(id(delivery), 0) + 1
        self._outcomes.note([plan], stays=True)
        self._taken += 1
        self._lanes.resume(delivery)
        self._running[id(delivery)] = delivery
        self._todo.append(delivery)

    def _return_lane(self, plan: Plan) -> list[Plan]:
        """Give the plans that hand a lane back, its head last: it is to come first."""
        behind = self._lanes.empty(plan.delivery)
        self._failed.pop(id(plan.delivery), None)
        for one in behind:
            self._running.pop(id(one), None)
        return [*(plan_return(one) for one in reversed(behind)), plan]

    def _is_time(self) -> bool:
        """Tell whether settling is worth a round trip: enough is done, or some of it for long."""
        return self._wake.is_set() or monotonic() >= min(self._wake_at, self._held.next)

    def _sleep(self, timeout: float) -> None:
        """Wait until handlers have finished enough, one of them long ago, or all of them."""
        if timeout > 0:
            self._wake.wait(timeout)

    def _settle(self, plans: list[Plan], handled: Sequence[Delivery] = ()) -> None:
        if self._leases:
            now = monotonic()
            every = [*handled, *(plan.delivery for plan in plans)]
            late = {id(one): one for one in every if not self._leases.end(one, now)}
            if late:
                self._forget(list(late.values()))
                plans = [plan for plan in plans if id(plan.delivery) not in late]
                handled = [one for one in handled if id(one) not in late]
        self._settling.settle(plans, handled)

    def _renew(self) -> None:
        """Renew the leases of present deliveries; forget those that the broker has taken back."""
        now = monotonic()
        due = self._leases.due(now)
        if not due:
            return
        try:
            gone = self._transport.renew(due)
        except TallystickError as error:
            _LOG.warning(
                "queue %s: %d leases could not be renewed: %s", self._queue, len(due), error
            )
            return
        self._leases.renewed(due, now)
        if gone:
            self._forget(gone)

    def _forget(self, gone: Sequence[Delivery]) -> None:
        """Leave these deliveries unsettled: the broker delivers them again."""
        self._outcomes.note_lost(len(gone))
        for one in gone:
            self._leases.end(one, 0)
            self._running.pop(id(one), None)
        dropped = self._held.drop({id(one) for one in gone})
        self._follow([plan.delivery for plan in dropped if plan.here])
        for one in gone:
            try:
                self._transport.leave(one)
            except TallystickError as error:
                _LOG.warning("queue %s: %s", self._queue, error)

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
            self._receiving.attend()
            self._sleep(min(left, _IDLE, self._held.next - monotonic()))
            self._settle(*self._collect())
        self._settle(*self._collect())
        self._settle(self._held.take(inf))
        self._hand_back(list(self._running.values()))

    def _hand_back(self, deliveries: list[Delivery]) -> None:
        """Give deliveries back, the last first: a broker that puts them in front keeps order."""
        self._settle([plan_return(one) for one in reversed(deliveries)])
