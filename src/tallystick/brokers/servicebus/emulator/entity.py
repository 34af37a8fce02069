"""A queue, subscription or dead-letter queue: messages in order, locks that expire, counts.

    active --take--> locked --complete--> gone
                            --abandon, expiry--> active, count + 1; at the maximum: dead letter
                            --release--> active, not counted
                            --defer--> deferred, taken by its sequence number only
                            --dead-letter--> the dead-letter queue, with its reason

No I/O here; the clock is a function argument. Data that must outlive the process goes to `store`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Final, Protocol
from uuid import UUID, uuid4

from tallystick.brokers.servicebus.emulator.sections import Message, add_properties

__all__ = ["Entity", "Held", "Keeping", "Refusal", "Rules"]


class Refusal(Exception):
    """A request that is refused: AMQP condition, status code of a management reply, text."""

    def __init__(self, condition: str, code: int, text: str) -> None:
        super().__init__(text)
        self.condition: Final = condition
        self.code: Final = code
        self.text: Final = text


def lock_lost() -> Refusal:
    """Make the refusal for a lock that no longer exists."""
    text = "the lock has expired, or the message is settled"
    return Refusal("com.microsoft:message-lock-lost", 410, text)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of every entity: the length of a lock and the maximum of deliveries."""

    lock_seconds: float = 30.0
    max_deliveries: int = 10


@dataclass(slots=True)
class Held:
    """One message in an entity. `state` is active, deferred or scheduled; `token` is its lock."""

    message: Message
    sequence: int
    enqueued: float
    count: int = 0
    state: str = "active"
    source: str = ""
    token: UUID | None = None
    until: float = 0.0


class Keeping(Protocol):
    """The store for the messages of entities."""

    def keep(self, path: str, held: Held) -> None:
        """Store the current state of a message."""

    def drop(self, path: str, sequence: int) -> None:
        """Remove a message from the store."""


class Entity:
    """One entity. `bury` gives its dead-letter queue; a dead-letter queue has none."""

    def __init__(
        self,
        path: str,
        rules: Rules,
        clock: Callable[[], float],
        bury: Callable[[], Entity] | None,
        store: Keeping | None = None,
    ) -> None:
        self.path: Final = path
        self.rules: Final = rules
        self.clock: Final = clock
        self.messages: Final[dict[int, Held]] = {}
        self._bury: Final = bury
        self._store: Final = store
        self._sequence = count(1)
        self._ready: Final[dict[str | None, list[int]]] = {}
        self._locks: Final[dict[UUID, Held]] = {}
        self._expiries: list[tuple[float, UUID]] = []
        self._later: list[tuple[float, int]] = []

    def add(self, message: Message, source: str = "") -> Held:
        """Put a message at the end."""
        held = Held(message, next(self._sequence), self.clock(), source=source)
        self.messages[held.sequence] = held
        self._keep(held)
        self._back(held)
        return held

    def restore(self, last: int, messages: Iterable[Held]) -> None:
        """Load stored messages; new messages get numbers after the last one."""
        self._sequence = count(last + 1)
        for held in messages:
            self.messages[held.sequence] = held
            if held.state == "scheduled":
                heappush(self._later, (held.enqueued, held.sequence))
            else:
                self._back(held)

    def schedule(self, message: Message, due: float) -> int:
        """Keep a message until its time; then append it with a new number."""
        held = Held(message, next(self._sequence), due, state="scheduled")
        self.messages[held.sequence] = held
        self._keep(held)
        heappush(self._later, (due, held.sequence))
        return held.sequence

    def cancel(self, sequences: Iterable[int]) -> None:
        """Forget scheduled messages, all or none."""
        found = [self.messages.get(sequence) for sequence in sequences]
        if any(held is None or held.state != "scheduled" for held in found):
            raise _not_found()
        for held in found:
            assert held is not None
            self.remove(held)

    def sessions(self) -> list[str]:
        """Name the sessions that have messages ready, oldest message first."""
        heads = sorted((heap[0], name) for name, heap in self._ready.items() if heap and name)
        return [name for _, name in heads]

    def take(self, session: str | None, barred: Iterable[str] = ()) -> Held | None:
        """Take the next message of a session, or of all sessions that are not locked."""
        if session is not None:
            heap = self._ready.get(session)
        else:
            kept = set(barred)
            open_ = (heap for name, heap in self._ready.items() if heap and name not in kept)
            heap = min(open_, default=None)
        if not heap:
            return None
        held = self.messages[heappop(heap)]
        if not heap:
            del self._ready[held.message.session]
        return held

    def lock(self, held: Held, until: float | None = None) -> UUID:
        """Lock a message that was taken."""
        held.token = uuid4()
        held.until = self.clock() + self.rules.lock_seconds if until is None else until
        self._locks[held.token] = held
        heappush(self._expiries, (held.until, held.token))
        return held.token

    def renew(self, token: UUID, until: float | None = None) -> float:
        """Renew a lock for its full time."""
        held = self._find(token)
        held.until = self.clock() + self.rules.lock_seconds if until is None else until
        return held.until

    def remove(self, held: Held) -> None:
        """Forget a message."""
        del self.messages[held.sequence]
        if self._store is not None:
            self._store.drop(self.path, held.sequence)

    def complete(self, token: UUID) -> None:
        """Forget a locked message."""
        self.remove(self._unlock(token))

    def abandon(self, token: UUID, changes: Mapping[str, Any] | None = None) -> None:
        """Make it available again, and count the delivery."""
        held = self._unlock(token)
        held.message = add_properties(held.message, changes or {})
        self._counted(held)

    def release(self, token: UUID) -> None:
        """Make it available again at its place in the order, without counting."""
        self._back(self._unlock(token))

    def defer(self, token: UUID, changes: Mapping[str, Any] | None = None) -> None:
        """Defer it: it can be received only by its number."""
        held = self._unlock(token)
        held.message = add_properties(held.message, changes or {})
        held.state = "deferred"
        self._keep(held)

    def dead_letter(self, token: UUID, changes: Mapping[str, Any]) -> None:
        """Move it to the dead-letter queue; the changes contain the reasons."""
        if self._bury is None:
            raise Refusal(
                "amqp:not-allowed", 400, "a dead-letter queue has no dead-letter queue of its own"
            )
        self._inter(self._unlock(token), changes)

    def take_deferred(self, sequences: Iterable[int]) -> list[Held]:
        """Give deferred messages by number, all or none."""
        found = [self.messages.get(sequence) for sequence in sequences]
        if any(held is None or held.state != "deferred" or held.token for held in found):
            raise _not_found()
        return [held for held in found if held is not None]

    def peek(self, start: int, limit: int, session: str | None) -> list[Held]:
        """Show messages in the order of their numbers, whatever their state."""
        numbers = sorted(number for number in self.messages if number >= start)
        found = (self.messages[number] for number in numbers)
        wanted = [held for held in found if session is None or held.message.session == session]
        return wanted[:limit]

    def locked(self, session: str) -> list[Held]:
        """Return the locked messages of a session."""
        return [held for held in self._locks.values() if held.message.session == session]

    def tick(self) -> bool:
        """Append scheduled messages and end expired locks; return whether anything changed."""
        now, moved = self.clock(), False
        while self._later and self._later[0][0] <= now:
            held = self.messages.get(heappop(self._later)[1])
            if held is not None:
                self.remove(held)
                self.add(held.message)
                moved = True
        while self._expiries and self._expiries[0][0] <= now:
            token = heappop(self._expiries)[1]
            held = self._locks.get(token)
            if held is None:
                continue
            if held.until > now:
                heappush(self._expiries, (held.until, token))
            else:
                self._counted(self._unlock(token, late=True))
                moved = True
        if len(self._expiries) > 2 * len(self._locks) + 1000:
            self._expiries = [(held.until, token) for token, held in self._locks.items()]
            heapify(self._expiries)
        return moved

    def _find(self, token: UUID) -> Held:
        held = self._locks.get(token)
        if held is None or held.until <= self.clock():
            raise lock_lost()
        return held

    def _unlock(self, token: UUID, *, late: bool = False) -> Held:
        held = self._locks[token] if late else self._find(token)
        del self._locks[token]
        held.token = None
        return held

    def _keep(self, held: Held) -> None:
        if self._store is not None:
            self._store.keep(self.path, held)

    def _back(self, held: Held) -> None:
        if held.state == "active":
            heappush(self._ready.setdefault(held.message.session, []), held.sequence)

    def _counted(self, held: Held) -> None:
        held.count += 1
        if self._bury is None or held.count < self.rules.max_deliveries:
            self._keep(held)
            self._back(held)
            return
        text = f"Message could not be consumed after {held.count} delivery attempts."
        self._inter(
            held,
            {"DeadLetterReason": "MaxDeliveryCountExceeded", "DeadLetterErrorDescription": text},
        )

    def _inter(self, held: Held, changes: Mapping[str, Any]) -> None:
        assert self._bury is not None
        self.remove(held)
        self._bury().add(add_properties(held.message, changes), source=self.path)


def _not_found() -> Refusal:
    text = "there is no message in the required state"
    return Refusal("com.microsoft:message-not-found", 404, text)
