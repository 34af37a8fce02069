"""Claims in the memory of this process: at most `limit` ids; the oldest are forgotten first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from time import time
from typing import Final

from tallystick.runtime.claims import Claim, Terms
from tallystick.runtime.ids import new_uuid
from tallystick.runtime.store_url import StoreUrl

__all__ = ["MemoryClaims", "open_store"]

_LIMIT: Final = 100_000
_DONE: Final = ""


class MemoryClaims:
    """One table of ids."""

    def __init__(
        self, terms: Terms, clock: Callable[[], float] = time, limit: int = _LIMIT
    ) -> None:
        self._terms: Final = terms
        self._clock: Final = clock
        self._limit: Final = limit
        self._lock: Final = Lock()
        self._rows: Final[OrderedDict[str, tuple[str, float]]] = OrderedDict()

    def claim(self, message_id: str) -> Claim:
        """Claim an id."""
        with self._lock:
            now = self._clock()
            token, expires = self._rows.get(message_id, (_DONE, now))
            if expires > now:
                return Claim("held" if token else "done")
            token = new_uuid()
            self._put(message_id, token, now + self._terms.lease)
            return Claim("run", token)

    def complete(self, message_id: str, token: str) -> bool:
        """Mark it as done."""
        with self._lock:
            now = self._clock()
            held, expires = self._rows.get(message_id, (token, now))
            if held != token and expires > now:
                return False
            self._put(message_id, _DONE, now + self._terms.keep)
            return True

    def release(self, message_id: str, token: str) -> None:
        """Give a claim back."""
        with self._lock:
            if self._rows.get(message_id, ("", 0.0))[0] == token:
                del self._rows[message_id]

    def forget(self, message_id: str) -> None:
        """Let the message run again."""
        with self._lock:
            self._rows.pop(message_id, None)

    def close(self) -> None:
        """Do nothing: the claims stay until the process ends."""

    def _put(self, message_id: str, token: str, expires: float) -> None:
        self._rows[message_id] = (token, expires)
        self._rows.move_to_end(message_id)
        if len(self._rows) > self._limit:
            self._rows.popitem(last=False)


def open_store(url: StoreUrl, terms: Terms, clock: Callable[[], float]) -> MemoryClaims:
    """Make an empty table."""
    return MemoryClaims(terms, clock, int(url.number("limit", _LIMIT)))
