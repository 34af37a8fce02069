"""Deduplicate deliveries: a set of seen ids, keyed on `meta.id` (ADR-0022), never on `trace_id`.

A handler that succeeds marks the id. A handler that raises does not, so a retry runs again. A
message without an id cannot be recognised and always runs. This is deduplication after success; it
is not a lock, and not exactly-once delivery.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["MemorySeen", "Seen", "decide", "effects", "run_once"]

_RUN: Final = "run"
_SKIP: Final = "skip"


class Seen(Protocol):
    """A store of the ids that took effect. Any exception means that it is unavailable."""

    def seen(self, message_id: str) -> bool:
        """Tell whether the message took effect before."""

    def remember(self, message_id: str) -> None:
        """Mark the message as done."""

    def forget(self, message_id: str) -> None:
        """Let the message run again."""


class MemorySeen:
    """A seen-set in memory; with a limit, the ids that were marked first are forgotten first."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._ids: OrderedDict[str, None] = OrderedDict()

    def seen(self, message_id: str) -> bool:
        """Tell whether the message took effect before."""
        return message_id in self._ids

    def remember(self, message_id: str) -> None:
        """Mark the message as done."""
        self._ids[message_id] = None
        while self._limit is not None and len(self._ids) > self._limit:
            self._ids.popitem(last=False)

    def forget(self, message_id: str) -> None:
        """Let the message run again."""
        self._ids.pop(message_id, None)


def decide(seen: Seen, message_id: str | None) -> str:
    """Return `run` or `skip` for a delivery; without an id, always `run`."""
    return _SKIP if message_id and seen.seen(message_id) else _RUN


def run_once(seen: Seen, message_id: str | None, handler: Callable[[], object]) -> str:
    """Run the handler unless the message took effect before; its exceptions pass through."""
    if decide(seen, message_id) == _SKIP:
        return _SKIP
    handler()
    if message_id:
        seen.remember(message_id)
    return _RUN


def effects(deliveries: Iterable[Mapping[str, Any]]) -> list[str]:
    """Replay deliveries (`meta_id`, `outcome` ok or throw, `forget_before`) on one seen-set.

    The number of effects is the number of `run`: a handler that threw has run as well.
    """
    seen, made = MemorySeen(), []
    for delivery in deliveries:
        message_id = delivery.get("meta_id")
        if delivery.get("forget_before") and message_id:
            seen.forget(message_id)
        effect = decide(seen, message_id)
        if effect == _RUN and message_id and delivery.get("outcome", "ok") == "ok":
            seen.remember(message_id)
        made.append(effect)
    return made
