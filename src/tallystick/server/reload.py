"""Serve what git holds now: look at the files, load again when one changed, keep the last good.

The registry on disk may be broken for a moment (a checkout under way) or for long (a bad merge).
Neither is the clients' concern: the last good snapshot stays, and `error` says what is wrong
until the files are good again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tallystick.server.snapshot import Loaded, load_snapshot, stamp_of

if TYPE_CHECKING:
    from pathlib import Path

    from tallystick.server.snapshot import Snapshot

__all__ = ["Store", "keep_fresh", "open_store", "refresh"]

_log: Final = logging.getLogger("tallystick.server")


@dataclass(slots=True)
class Store:
    """The one thing that changes while we serve: which snapshot, since when, and what is wrong."""

    registry: Path
    snapshot: Snapshot
    attempt: Loaded
    loaded_at: float
    error: str = ""
    reloads: int = 0
    failures: int = 0


def open_store(registry: Path) -> Store:
    """Load the registry for the first time, or raise why it cannot be served."""
    attempt = load_snapshot(registry)
    if attempt.error is not None:
        raise attempt.error
    assert attempt.snapshot is not None
    return Store(registry, attempt.snapshot, attempt, time.time())


def has_changed(attempt: Loaded) -> bool:
    """Tell whether any file that decided the last attempt looks different now."""
    return any(stamp_of(path) != stamp for path, stamp in attempt.stamps.items())


def refresh(store: Store) -> bool:
    """Load again if a file changed, and tell whether that was tried."""
    if not has_changed(store.attempt):
        return False
    accept(store, load_snapshot(store.registry))
    return True


def accept(store: Store, attempt: Loaded) -> None:
    """Take a new snapshot, or note why the last good one stays."""
    store.attempt = attempt
    if attempt.snapshot is None:
        store.failures += 1
        store.error = str(attempt.error)
        _log.error("the registry is broken, the last good one is served: %s", store.error)
        return
    store.snapshot, store.error, store.loaded_at = attempt.snapshot, "", time.time()
    store.reloads += 1
    _log.info("the registry was read again: %d subjects", len(attempt.snapshot.subjects))


async def keep_fresh(store: Store, seconds: float) -> None:
    """Look for changes for ever; reading happens beside the event loop.

    What nobody foresaw ends one look, not the watch: it is told, and the last good registry stays.
    """
    while True:
        await asyncio.sleep(seconds)
        try:
            await asyncio.to_thread(refresh, store)
        except Exception as error:  # noqa: BLE001 - the last resort: logged, told, not swallowed
            store.failures += 1
            store.error = f"internal fault: {type(error).__name__}: {error}"
            _log.exception("the registry could not be looked at")
