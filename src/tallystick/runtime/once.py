"""Run a handler at most once at a time for one id, and not again after it took effect.

With a transaction the effect and the mark are one. Without, a handler that raises gives its claim
back; one that succeeded marks the id, and if that fails the effect has happened all the same: the
message is acknowledged, the log says so, and another copy of it would run after the lease.

A store may be the user's own. Whatever it raises means that the store is away, and is never taken
for a failure of the handler. What it says may hold secrets: the log gets the exception's name only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from tallystick.core.errors import UsageError
from tallystick.runtime.claims import Claims, Transactional
from tallystick.runtime.store_url import StoreUnavailable

__all__ = ["no_transaction", "run_claimed", "run_in_transaction"]

_LOG: Final = logging.getLogger("tallystick.runtime")


def run_claimed(claims: Claims, message_id: str, work: Callable[[], object]) -> str:
    """Say `run` if the work was done, else `done` or `held`; what it raises passes through."""
    with _asking():
        claim = claims.claim(message_id)
    if claim.verdict != "run":
        return claim.verdict
    try:
        work()
    except BaseException:
        _give_back(claims, message_id, claim.token)
        raise
    try:
        with _asking():
            completed = claims.complete(message_id, claim.token)
        if not completed:
            _LOG.warning("message %s took longer than its lease and ran elsewhere", message_id)
    except StoreUnavailable as error:
        _LOG.warning("message %s took effect but could not be marked: %s", message_id, error)
    return "run"


def run_in_transaction(
    claims: Claims | None, message_id: str | None, work: Callable[[Any], object]
) -> str:
    """Do the same in a transaction that is lent to the work."""
    if not isinstance(claims, Transactional):
        raise no_transaction()
    with claims.transaction(message_id) as claim:
        verdict = claim.verdict
        if verdict == "run":
            work(claim.connection)
    return verdict


def no_transaction() -> UsageError:
    """Say that nothing can lend the transaction that a handler asks for."""
    return UsageError(
        "a handler asks for a transaction, and the app has no store that has any",
        code="no_transaction",
        hint='App(url, idempotency="sqlite:///..." or "postgresql://...")',
    )


@contextmanager
def _asking() -> Iterator[None]:
    """Take whatever a store raises for its being away."""
    try:
        yield
    except StoreUnavailable:
        raise
    except Exception as error:
        name = f"{type(error).__module__}.{type(error).__qualname__}"
        raise StoreUnavailable(f"the store raised {name}", code="store") from error


def _give_back(claims: Claims, message_id: str, token: str) -> None:
    try:
        with _asking():
            claims.release(message_id, token)
    except StoreUnavailable as error:
        _LOG.warning("message %s stays claimed until its lease ends: %s", message_id, error)
