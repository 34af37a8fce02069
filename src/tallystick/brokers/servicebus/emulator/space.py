"""The names of a namespace: queues, topics with subscriptions, dead-letter queues.

An entity is created when it is first named. Names ignore case. A topic exists when it has a
subscription; a message sent to it goes to every subscription.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import time
from typing import Final
from urllib.parse import urlsplit

from tallystick.brokers.servicebus.emulator.entity import Entity, Rules
from tallystick.brokers.servicebus.emulator.sections import Message
from tallystick.brokers.servicebus.emulator.sessions import Sessions
from tallystick.brokers.servicebus.emulator.store import Store

__all__ = ["DEAD", "Space", "read_path"]

DEAD: Final = "/$deadletterqueue"
_SUBSCRIPTIONS: Final = "/subscriptions/"
_SCHEDULED: Final = "x-opt-scheduled-enqueue-time"


def read_path(address: str | None) -> str:
    """Give the path of an address, which may be a whole URI."""
    text = address or ""
    return (urlsplit(text).path if "://" in text else text).strip("/")


class Space:
    """All entities of one emulator."""

    def __init__(
        self, rules: Rules, clock: Callable[[], float] = time, store: Store | None = None
    ) -> None:
        self.entities: Final[dict[str, Entity]] = {}
        self.sessions: Final[dict[str, Sessions]] = {}
        self._rules: Final = rules
        self._clock: Final = clock
        self._topics: Final[dict[str, list[Entity]]] = {}
        self._store: Final = store
        for path, last, messages in store.load() if store is not None else ():
            self.find(path).restore(last, messages)

    def flush(self) -> None:
        """Write the data that must outlive the process to disk."""
        if self._store is not None:
            self._store.flush()

    def find(self, path: str) -> Entity:
        """Return an entity; create it if it is new."""
        name = path.lower()
        if name not in self.entities:
            bury = None if name.endswith(DEAD) else partial(self.find, path + "/$DeadLetterQueue")
            entity = Entity(path, self._rules, self._clock, bury, self._store)
            if self._store is not None:
                self._store.name(path)
            self.entities[name] = entity
            self.sessions[name] = Sessions(entity)
            topic, is_subscription, _ = name.partition(_SUBSCRIPTIONS)
            if is_subscription and bury is not None:
                self._topics.setdefault(topic, []).append(entity)
        return self.entities[name]

    def sessions_of(self, entity: Entity) -> Sessions:
        """Give the sessions of an entity."""
        return self.sessions[entity.path.lower()]

    def send(self, path: str, messages: list[Message]) -> list[Entity]:
        """Add messages; return the entities that got them."""
        entities = self.entities_of(path)
        for entity in entities:
            for message in messages:
                due = message.annotations.get(_SCHEDULED)
                if due is not None and due / 1000 > self._clock():
                    entity.schedule(message, due / 1000)
                else:
                    entity.add(message)
        return entities

    def entities_of(self, path: str) -> list[Entity]:
        """Give the subscriptions of a topic, or the queue of that name."""
        return self._topics.get(path.lower()) or [self.find(path)]
