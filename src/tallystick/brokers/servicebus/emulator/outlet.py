"""A link that delivers messages: credit, locks, and the client's outcome of each delivery.

    accepted   complete           modified, undeliverable-here   defer
    rejected   dead-letter        modified otherwise             abandon, whatever delivery-failed
    released   back, not counted

The answer is settled and repeats the outcome. A rejected outcome is repeated without its error: an
error there means that the settlement itself was refused (brokers sheet, 10.7).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from proton import Condition, Delivery, Link, int32, symbol, timestamp

from tallystick.brokers.servicebus.emulator.entity import Entity, Held, Refusal
from tallystick.brokers.servicebus.emulator.sections import write_message
from tallystick.brokers.servicebus.emulator.sessions import Sessions

__all__ = ["Outlet", "encode_held", "in_milliseconds"]

_REASONS: Final = ("DeadLetterReason", "DeadLetterErrorDescription")
_STATES: Final = {"active": 0, "deferred": 1, "scheduled": 2}


def in_milliseconds(seconds: float) -> timestamp:
    """Return a time in milliseconds, as AMQP carries it."""
    return timestamp(int(seconds * 1000))


def encode_held(held: Held, *, show_lock: bool = True) -> bytes:
    """Encode a message for a receiver; a peeked message shows no lock."""
    annotations: dict[Any, Any] = {
        symbol("x-opt-sequence-number"): held.sequence,
        symbol("x-opt-enqueued-time"): in_milliseconds(held.enqueued),
        symbol("x-opt-message-state"): int32(_STATES[held.state]),
    }
    if held.source:
        annotations[symbol("x-opt-deadletter-source")] = held.source
    delivery = {}
    if held.token is not None and show_lock:
        annotations[symbol("x-opt-locked-until")] = in_milliseconds(held.until)
        delivery[symbol("x-opt-lock-token")] = held.token
    return write_message(held.message, held.count, annotations, delivery)


class Outlet:
    """One receiver of an entity, or of one of its sessions."""

    def __init__(self, link: Any, entity: Entity, sessions: Sessions, session: str | None) -> None:
        self.link: Final = link
        self.entity: Final = entity
        self.session: Final = session
        self.sessions: Final = sessions
        self._settled: Final = link.remote_snd_settle_mode == Link.SND_SETTLED

    def hand_out(self) -> bool:
        """Send one message if there is credit and a message; return whether one was sent.

        If the lock of a session has expired, its link gets no more messages, even with credit.
        """
        if self.link.credit <= 0:
            return False
        if self.session is not None and not self.sessions.is_held(self.session, self.link):
            return False
        held = self.entity.take(self.session, self.sessions.held)
        if held is None:
            return False
        if self._settled:
            delivery = self.link.delivery(f"{held.sequence}")
            self.link.stream(encode_held(held))
            delivery.settle()
            self.entity.remove(held)
        else:
            until = None if self.session is None else self.sessions.until(self.session)
            token = self.entity.lock(held, until)
            delivery = self.link.delivery(token.bytes_le)
            delivery.token = token
            self.link.stream(encode_held(held))
        self.link.advance()
        return True

    def settle(self, delivery: Any) -> None:
        """Apply the outcome of the client, and answer it."""
        state = delivery.remote_state
        if state not in _OUTCOMES:
            if delivery.settled:  # it forgot the delivery: the lock's end brings it back
                delivery.settle()
            return
        try:
            _OUTCOMES[state](self.entity, delivery)
        except Refusal as refusal:
            delivery.local.condition = Condition(refusal.condition, refusal.text)
            state = Delivery.REJECTED
        delivery.update(state)
        delivery.settle()

    def close(self) -> None:
        """Release the session; other locks last until they expire."""
        if self.session is not None:
            self.sessions.free(self.session, self.link)


def _complete(entity: Entity, delivery: Any) -> None:
    entity.complete(delivery.token)


def _modify(entity: Entity, delivery: Any) -> None:
    remote = delivery.remote
    move = entity.defer if remote.undeliverable else entity.abandon
    move(delivery.token, _named(remote.annotations))
    delivery.local.failed = remote.failed
    delivery.local.undeliverable = remote.undeliverable


def _reject(entity: Entity, delivery: Any) -> None:
    condition = delivery.remote.condition
    info = _named(condition.info if condition is not None else None)
    reasons = {key: str(info[key]) for key in _REASONS if info.get(key) is not None}
    entity.dead_letter(delivery.token, {**info, **reasons})


def _release(entity: Entity, delivery: Any) -> None:
    entity.release(delivery.token)


def _named(held: Mapping[Any, Any] | None) -> dict[str, Any]:
    return {str(key): value for key, value in (held or {}).items()}


_OUTCOMES: Final = {
    Delivery.ACCEPTED: _complete,
    Delivery.MODIFIED: _modify,
    Delivery.REJECTED: _reject,
    Delivery.RELEASED: _release,
}
