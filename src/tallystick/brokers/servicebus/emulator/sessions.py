"""The sessions of an entity: which link holds each, until when, and its state.

One link holds a session. Its messages are locked as long as the session. When the link closes, they
go back uncounted; when the lock of the session expires, they go back counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tallystick.brokers.servicebus.emulator.entity import Entity, Refusal

__all__ = ["Sessions"]


@dataclass(slots=True)
class _Hold:
    holder: Any
    until: float


class Sessions:
    """The sessions of one entity."""

    def __init__(self, entity: Entity) -> None:
        self._entity: Final = entity
        self._holds: Final[dict[str, _Hold]] = {}
        self._states: Final[dict[str, bytes]] = {}

    @property
    def held(self) -> tuple[str, ...]:
        """Return the names of the sessions that have a holder."""
        return tuple(self._holds)

    def accept(self, name: str | None, holder: Any) -> str | None:
        """Give a session to a holder: the named one, or the next free one with messages."""
        if name is not None and name in self._holds:
            text = f"another receiver holds the session {name!r}"
            raise Refusal("com.microsoft:session-cannot-be-locked", 409, text)
        if name is None:
            free = (one for one in self._entity.sessions() if one not in self._holds)
            name = next(free, None)
        if name is not None:
            self._holds[name] = _Hold(holder, self._end())
        return name

    def until(self, name: str) -> float:
        """Return the time when the lock of a session ends."""
        return self._find(name).until

    def renew(self, name: str) -> float:
        """Renew the lock of a session for its full time."""
        hold = self._find(name)
        hold.until = self._end()
        for held in self._entity.locked(name):
            assert held.token is not None
            self._entity.renew(held.token, hold.until)
        return hold.until

    def is_held(self, name: str, holder: Any) -> bool:
        """Return whether this holder still has a session."""
        hold = self._holds.get(name)
        return hold is not None and hold.holder == holder

    def free(self, name: str, holder: Any) -> None:
        """End a session whose link has closed; its messages go back uncounted.

        If its lock expired before the link closed, the session may already have another holder.
        """
        if not self.is_held(name, holder):
            return
        del self._holds[name]
        for held in self._entity.locked(name):
            assert held.token is not None
            if held.until > self._entity.clock():
                self._entity.release(held.token)

    def expire(self) -> list[Any]:
        """End the expired sessions; return their holders."""
        now = self._entity.clock()
        over = [name for name, hold in self._holds.items() if hold.until <= now]
        return [self._holds.pop(name).holder for name in over]

    def read_state(self, name: str) -> bytes | None:
        """Return the state of a session."""
        self._find(name)
        return self._states.get(name)

    def write_state(self, name: str, state: bytes | None) -> None:
        """Store the state of a session."""
        self._find(name)
        if state is None:
            self._states.pop(name, None)
        else:
            self._states[name] = state

    def names(self) -> list[str]:
        """Return the names of the sessions that have messages or a state."""
        messages = self._entity.messages.values()
        return sorted({one.message.session for one in messages if one.message.session}
                      | set(self._states))  # fmt: skip

    def _find(self, name: str) -> _Hold:
        if name not in self._holds:
            text = f"no receiver holds the session {name!r}"
            raise Refusal("com.microsoft:session-lock-lost", 410, text)
        return self._holds[name]

    def _end(self) -> float:
        return self._entity.clock() + self._entity.rules.lock_seconds
