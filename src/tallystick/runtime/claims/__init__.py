"""Claims: whoever may run a message's handler, so that many deliveries have one effect.

An id (`meta.id`) is free, claimed until its lease ends, or done until it need not be remembered:

    claim      free, or its lease is over -> run, with a new token; else `held` or `done`
    complete   done, unless another one has claimed it meanwhile: then False, and nothing changes
    release    the handler failed: free at once, if the token still holds it
    forget     free, whoever holds it

A worker that dies between `claim` and `complete` leaves a claim; when its lease is over the message
runs again, so its effect may happen twice. Where the effect is in the store's own database this
cannot be: `transaction` marks the id and lends the connection, and both are committed or neither.

What is over is taken away a bounded number of rows at a time.
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
    """What came of claiming an id: `run` (with a token), `held` by another, or `done`.

    In a transaction `connection` is the open one, lent to the handler.
    """

    verdict: str
    token: str = ""
    connection: Any = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Terms:
    """How long a claim holds and a done id is remembered, in seconds, and whose ids these are."""

    lease: float = _LEASE
    keep: float = _KEEP
    scope: str = ""


class Claims(Protocol):
    """Where claims are kept. Any thread may use it; whatever it raises, the store is away."""

    def claim(self, message_id: str) -> Claim:
        """Claim an id."""

    def complete(self, message_id: str, token: str) -> bool:
        """Mark it as done; False when the claim was lost to another."""

    def release(self, message_id: str, token: str) -> None:
        """Give a claim back."""

    def forget(self, message_id: str) -> None:
        """Let the message run again."""

    def close(self) -> None:
        """End all connections."""


@runtime_checkable
class Transactional(Claims, Protocol):
    """Claims in a database that can hold the handler's effect as well."""

    def transaction(self, message_id: str | None) -> AbstractContextManager[Claim]:
        """Mark an id as done in a transaction that ends with the block; `run` lends it."""


class SeenClaims:
    """A seen-set as claims: nothing is ever held, and a crash leaves nothing behind."""

    def __init__(self, seen: Seen) -> None:
        self._seen: Final = seen

    def claim(self, message_id: str) -> Claim:
        """Say `done` for what was seen."""
        return Claim("done" if self._seen.seen(message_id) else "run")

    def complete(self, message_id: str, _token: str) -> bool:
        """Remember it."""
        self._seen.remember(message_id)
        return True

    def release(self, message_id: str, token: str) -> None:
        """Leave it unseen."""

    def forget(self, message_id: str) -> None:
        """Let the message run again."""
        self._seen.forget(message_id)

    def close(self) -> None:
        """Leave the seen-set as it is."""


def open_claims(url: str, clock: Callable[[], float] = time) -> Claims:
    """Open the claims that a URL names; a database is asked when the first claim is made."""
    where = read_store_url(url, tuple(_MODULES), _OPTIONS)
    terms = Terms(
        where.number("lease", _LEASE), where.number("keep", _KEEP), where.options.get("scope", "")
    )
    module = import_module(f"tallystick.runtime.claims.{_MODULES[where.kind]}")
    opened: Claims = module.open_store(where, terms, clock)
    return opened


Open = Callable[[StoreUrl, Terms, Callable[[], float]], Claims]
"""What the module of a kind offers as `open_store`."""
