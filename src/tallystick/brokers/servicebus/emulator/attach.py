"""Answer a receiver that asks for a session: which session, how long to wait, which reply.

The filter's value is the name of a session, or null for the next free one. The SDK for Go wraps it
in a described value and expects its answer in the same form (brokers sheet, 10.9).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from proton import Described, symbol

from tallystick.brokers.servicebus.emulator.entity import Entity, Refusal
from tallystick.brokers.servicebus.emulator.outlet import Outlet
from tallystick.brokers.servicebus.emulator.sessions import Sessions

__all__ = ["Waiting", "read_filter"]

_FILTER: Final = symbol("com.microsoft:session-filter")
_LOCKED_UNTIL: Final = symbol("com.microsoft:locked-until-utc")
_TIMEOUT: Final = symbol("com.microsoft:timeout")
_PATIENCE: Final = 60_000
_TICKS_TO_1970: Final = 621_355_968_000_000_000
_TICKS: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """A session filter: a name or none, and the descriptor that it came with."""

    name: str | None
    descriptor: Any = None

    def write(self, link: Any, session: str) -> None:
        """Answer with the real name, in the form of the request."""
        value = session if self.descriptor is None else Described(self.descriptor, session)
        link.source.filter.clear()
        link.source.filter.put_object({_FILTER: value})


def read_filter(link: Any) -> Wanted | None:
    """Read which session a link asks for; None when it asks for none."""
    data = link.remote_source.filter
    data.rewind()
    held: Any = data.get_object() if data.next() else None
    if not held or _FILTER not in held:
        return None
    value: Any = held[_FILTER]
    descriptor = None
    if isinstance(value, Described):
        value, descriptor = value.value, value.descriptor
    return Wanted(value, descriptor)


class Waiting:
    """A link that waits for its session."""

    def __init__(self, link: Any, entity: Entity, sessions: Sessions, wanted: Wanted) -> None:
        self.link: Final = link
        self._entity: Final = entity
        self._sessions: Final = sessions
        self._wanted: Final = wanted
        asked = (link.remote_properties or {}).get(_TIMEOUT, _PATIENCE)
        self._until: Final = entity.clock() + asked / 1000

    def serve(self) -> Outlet | None:
        """Attach the link to its session if it is free; refuse when it will not be."""
        session = self._sessions.accept(self._wanted.name, self.link)
        if session is None:
            if self._until <= self._entity.clock():
                raise Refusal("com.microsoft:timeout", 408, "no session became free in time")
            return None
        self._wanted.write(self.link, session)
        ticks = int(self._sessions.until(session) * _TICKS) + _TICKS_TO_1970
        self.link.properties = {_LOCKED_UNTIL: ticks}
        self.link.open()
        return Outlet(self.link, self._entity, self._sessions, session)
