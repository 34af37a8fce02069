"""Claims: decide which worker may run the handler of a message, so that it takes effect once.

An id (`meta.id`) is free, claimed until its lease ends, or done until it expires:

    claim      free, or its lease has ended -> run, with a new token; else `held` or `done`
    complete   mark as done, unless another worker has claimed it: then False, and no change
    release    the handler failed: free at once, if the token still holds the claim
    forget     free, whichever worker holds it

A worker that dies between `claim` and `complete` leaves its claim. When the lease ends, the message
runs again, so its effect may happen twice. `transaction` prevents this if the effect is in the
database of the store: it marks the id and passes the connection to the handler, and both changes
are committed together or not at all.

Expired rows are deleted in batches of bounded size.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from time import time
from typing import Any, Final, Protocol, runtime_checkable

from tallystick.runtime.idempotency import Seen
from tallystick.runtime.store_url import StoreUrl, read_store_url

__all__ = ["Claim", "Claims", "SeenClaims", "Terms", "Transactional", "open_claims"]

_OPTIONS: Final = ("lease", "keep", "scope", "limit")
_MODULES: Final = {"memory": "memory", "redis": "redis", "sqlite": "sql", "postgresql": "sql"}
_LEASE: Final = 300.0
_KEEP: Final = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class Claim:
    """The result of a claim: `run` (with a token), `held` by another worker, or `done`.

    In a transaction `connection` is the open connection, for the handler.
    """

    verdict: str
    token: str = ""
    connection: Any = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Terms:
    """The lease of a claim, the time a done id is remembered (seconds), and the scope of ids."""

    lease: float = _LEASE
    keep: float = _KEEP
    scope: str = ""


class Claims(Protocol):
    """A store of claims, for any thread. Any exception means that it is unavailable."""

    def claim(self, message_id: str) -> Claim:
        """Claim an id."""

    def complete(self, message_id: str, token: str) -> bool:
        """Mark it as done; return False if another worker has taken the claim."""

    def release(self, message_id: str, token: str) -> None:
        """Give a claim back."""

    def forget(self, message_id: str) -> None:
        """Let the message run again."""

    def close(self) -> None:
        """End all connections."""


@runtime_checkable
class Transactional(Claims, Protocol):
    """Claims in a database that can also contain the effect of the handler."""

    def transaction(self, message_id: str | None) -> AbstractContextManager[Claim]:
        """Mark an id as done, in a transaction that ends with the block; `run` passes it on."""


class SeenClaims:
    """Claims on top of a seen-set: an id is never held, and a crash leaves no claim."""

    def __init__(self, seen: Seen) -> None:
        self._seen: Final = seen

    def claim(self, message_id: str) -> Claim:
        """Return `done` for an id that was seen."""
        return Claim("done" if self._seen.seen(message_id) else "run")

    def complete(self, message_id: str, _token: str) -> bool:
        """Remember it."""
        self._seen.remember(message_id)
        return True

    def release(self, message_id: str, token: str) -> None:
        """Do nothing: the id stays unseen."""

    def forget(self, message_id: str) -> None:
        """Let the message run again."""
        self._seen.forget(message_id)

    def close(self) -> None:
        """Do nothing: the seen-set stays unchanged."""


def open_claims(url: str, clock: Callable[[], float] = time) -> Claims:
    """Open the claims that a URL names; a database is contacted at the first claim."""
    where = read_store_url(url, tuple(_MODULES), _OPTIONS)
    terms = Terms(
        where.number("lease", _LEASE), where.number("keep", _KEEP), where.options.get("scope", "")
    )
    module = import_module(f"tallystick.runtime.claims.{_MODULES[where.kind]}")
    opened: Claims = module.open_store(where, terms, clock)
    return opened


Open = Callable[[StoreUrl, Terms, Callable[[], float]], Claims]
"""The type of `open_store` in the module of each kind of store."""
