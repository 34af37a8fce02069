"""The rules of the in-process broker `vm`: queues, bindings and delivery, without I/O.

It follows the text of AMQP 0-9-1 where real brokers differ from it: `immediate` works, `no_local`
filters, and a mandatory or immediate message without a route is returned with 312. Nothing survives
a restart; `durable` is accepted and has no effect. Content is never re-encoded: the bytes of the
content header are sent as received (law 1).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

__all__ = [
    "EXCHANGES", "NO_CONSUMERS", "NO_ROUTE", "Broker", "Consumer", "Fault", "Message", "Queue",
    "matches",
]  # fmt: skip

NO_ROUTE: Final = 312
NO_CONSUMERS: Final = 313
EXCHANGES: Final[Mapping[str, str]] = {
    "": "direct",
    "amq.direct": "direct",
    "amq.topic": "topic",
    "amq.fanout": "fanout",
}


class Fault(Exception):
    """The reason for closing a channel or a connection: reply code and text."""

    def __init__(self, level: str, code: int, text: str) -> None:
        super().__init__(text)
        self.level: Final = level
        self.code: Final = code
        self.text: Final = text


@dataclass(slots=True)
class Message:
    """A message in a queue; `source` is the connection that published it."""

    exchange: str
    key: str
    header: bytes
    body: bytes
    source: Any
    redelivered: bool = False

    def copy(self) -> Message:
        """Give the message for one more queue."""
        return Message(self.exchange, self.key, self.header, self.body, self.source)


class Outlet(Protocol):
    """Where a consumer's deliveries go: a channel."""

    @property
    def source(self) -> Any:
        """The connection it belongs to."""

    def has_room(self, consumer: Consumer) -> bool:
        """Say whether its prefetch window is open."""

    def deliver(self, consumer: Consumer, message: Message) -> None:
        """Write it out, and remember it unless no-ack."""


@dataclass(slots=True, eq=False)
class Consumer:
    """One basic.consume."""

    tag: str
    outlet: Outlet
    queue: Queue
    no_ack: bool = False
    no_local: bool = False
    exclusive: bool = False

    def takes(self, message: Message) -> bool:
        """Say whether it may have this message now."""
        if self.no_local and message.source is self.outlet.source:
            return False
        return self.outlet.has_room(self)


@dataclass(slots=True, eq=False)
class Queue:
    """Messages in order, and consumers served in turn."""

    name: str
    owner: Any = None
    auto_delete: bool = False
    messages: deque[Message] = field(default_factory=deque)
    consumers: deque[Consumer] = field(default_factory=deque)

    def pump(self) -> None:
        """Deliver the messages that can be delivered, in order."""
        while self.messages and (consumer := self._next_for(self.messages[0])):
            consumer.outlet.deliver(consumer, self.messages.popleft())

    def _next_for(self, message: Message) -> Consumer | None:
        for _ in range(len(self.consumers)):
            self.consumers.rotate(-1)
            if self.consumers[-1].takes(message):
                return self.consumers[-1]
        return None

    def put_back(self, message: Message) -> None:
        """Put a message back to the front, marked as delivered before."""
        message.redelivered = True
        self.messages.appendleft(message)


def matches(pattern: list[str], words: list[str]) -> bool:
    """Match a topic: `*` is one word, `#` any number of them."""
    if not pattern:
        return not words
    if pattern[0] == "#":
        return any(matches(pattern[1:], words[skip:]) for skip in range(len(words) + 1))
    return bool(words) and pattern[0] in ("*", words[0]) and matches(pattern[1:], words[1:])


class Broker:
    """Every queue and binding there is."""

    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}
        self._bindings: dict[str, list[tuple[str, Queue]]] = {name: [] for name in EXCHANGES}
        self._made = 0

    def declare(
        self, name: str, owner: Any, *, passive: bool, exclusive: bool, auto_delete: bool
    ) -> Queue:
        """Return a queue, new or existing; a queue of another connection is locked."""
        if name in self.queues:
            return self.find(name, owner)
        if passive:
            raise Fault("channel", 404, f"NOT_FOUND - no queue '{name}'")
        if not name:
            self._made += 1
            name = f"amq.gen-{self._made}"
        made = Queue(name, owner if exclusive else None, auto_delete)
        self.queues[name] = made
        return made

    def find(self, name: str, owner: Any) -> Queue:
        """Give a queue that exists and is not locked."""
        if name not in self.queues:
            raise Fault("channel", 404, f"NOT_FOUND - no queue '{name}'")
        queue = self.queues[name]
        if queue.owner not in (None, owner):
            raise Fault("channel", 405, f"RESOURCE_LOCKED - queue '{name}' is exclusive")
        return queue

    def bind(self, queue: Queue, exchange: str, key: str) -> None:
        """Bind a queue; to do it twice is to do it once."""
        self._check(exchange)
        if (key, queue) not in self._bindings[exchange]:
            self._bindings[exchange].append((key, queue))

    def unbind(self, queue: Queue, exchange: str, key: str) -> None:
        """Take a binding away."""
        self._check(exchange)
        if (key, queue) in self._bindings[exchange]:
            self._bindings[exchange].remove((key, queue))

    def _check(self, exchange: str) -> None:
        if exchange not in EXCHANGES:
            raise Fault("channel", 404, f"NOT_FOUND - no exchange '{exchange}'")

    def delete(self, queue: Queue) -> int:
        """Take a queue away; give how many messages were in it."""
        self.queues.pop(queue.name, None)
        for name, bindings in self._bindings.items():
            self._bindings[name] = [pair for pair in bindings if pair[1] is not queue]
        queue.consumers.clear()
        return len(queue.messages)

    def route(self, exchange: str, key: str) -> list[Queue]:
        """Give each queue a message goes to, once."""
        self._check(exchange)
        if not exchange:
            return [self.queues[key]] if key in self.queues else []
        return list(dict.fromkeys(self._matching(exchange, key)))

    def _matching(self, exchange: str, key: str) -> Iterator[Queue]:
        kind, words = EXCHANGES[exchange], key.split(".")
        for bound, queue in self._bindings[exchange]:
            if (
                kind == "fanout"
                or bound == key
                or (kind == "topic" and matches(bound.split("."), words))
            ):
                yield queue

    def publish(self, message: Message, *, mandatory: bool, immediate: bool) -> int:
        """Route a message; give 0, or the code it has to be returned with."""
        queues = self.route(message.exchange, message.key)
        if not queues:
            return NO_ROUTE if mandatory or immediate else 0
        if immediate:
            queues = [queue for queue in queues if self._idle_consumer(queue, message)]
            if not queues:
                return NO_CONSUMERS
        for queue in queues:
            queue.messages.append(message.copy())
            queue.pump()
        return 0

    def _idle_consumer(self, queue: Queue, message: Message) -> bool:
        return not queue.messages and any(one.takes(message) for one in queue.consumers)

    def consume(self, consumer: Consumer) -> None:
        """Add a consumer, unless it or one before it wants the queue alone."""
        others = consumer.queue.consumers
        if others and (consumer.exclusive or any(one.exclusive for one in others)):
            text = f"ACCESS_REFUSED - queue '{consumer.queue.name}' in exclusive use"
            raise Fault("channel", 403, text)
        others.append(consumer)

    def cancel(self, consumer: Consumer) -> None:
        """Take a consumer away, and its queue if that was to go with the last of them."""
        queue = consumer.queue
        if consumer in queue.consumers:
            queue.consumers.remove(consumer)
            if queue.auto_delete and not queue.consumers:
                self.delete(queue)

    def forget(self, owner: Any) -> None:
        """End a connection: its exclusive queues go."""
        for queue in [one for one in self.queues.values() if one.owner is owner]:
            self.delete(queue)
