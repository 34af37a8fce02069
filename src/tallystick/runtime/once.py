"""Run a handler once per id: not twice at the same time, and not again after it succeeded.

With a transaction, the effect and the mark are committed together. Without one, a handler that
raises releases its claim, and a handler that succeeds marks the id. If marking fails, the effect
has still happened: the message is acknowledged, a log line says so, and another copy would run
after the lease.

A store may be written by the user. Any exception of it means that the store is unavailable, never
that the handler failed. Its text may hold secrets, so the log shows only the name of the exception.
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
    """Return `run` if the handler ran, else `done` or `held`; its exceptions are raised."""
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
            _LOG.warning(
                "message %s took longer than its lease and was handled by another worker too",
                message_id,
            )
    except StoreUnavailable as error:
        _LOG.warning(
            "message %s was handled, but could not be marked as handled: %s", message_id, error
        )
    return "run"


def run_in_transaction(
    claims: Claims | None, message_id: str | None, work: Callable[[Any], object]
) -> str:
    """Do the same in a transaction that is passed to the handler."""
    if not isinstance(claims, Transactional):
        raise no_transaction()
    with claims.transaction(message_id) as claim:
        verdict = claim.verdict
        if verdict == "run":
            work(claim.connection)
    return verdict


def no_transaction() -> UsageError:
    """Make the error for a handler that needs a transaction when no store has one."""
    return UsageError(
        "a handler asks for a transaction, but the app has no store with transactions",
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
        _LOG.warning("message %s stays reserved until its lease ends: %s", message_id, error)
