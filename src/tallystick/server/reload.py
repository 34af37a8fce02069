"""Reload the registry when a file changes; keep the last valid registry.

The files may be invalid for a moment (during a checkout) or for long (after a bad merge).
Clients do not notice: the last valid snapshot stays, and `error` says what is wrong
until the files are valid again.
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
    """The only mutable state of the server: the snapshot, its time, and the current error."""

    registry: Path
    snapshot: Snapshot
    attempt: Loaded
    loaded_at: float
    error: str = ""
    reloads: int = 0
    failures: int = 0


def open_store(registry: Path) -> Store:
    """Load the registry for the first time, or raise an error."""
    attempt = load_snapshot(registry)
    if attempt.error is not None:
        raise attempt.error
    assert attempt.snapshot is not None
    return Store(registry, attempt.snapshot, attempt, time.time())


def has_changed(attempt: Loaded) -> bool:
    """Tell whether any file of the last attempt has changed."""
    return any(stamp_of(path) != stamp for path, stamp in attempt.stamps.items())


def refresh(store: Store) -> bool:
    """Reload if a file changed; tell whether there was a reload."""
    if not has_changed(store.attempt):
        return False
    accept(store, load_snapshot(store.registry))
    return True


def accept(store: Store, attempt: Loaded) -> None:
    """Take a new snapshot, or store the error and keep the last valid one."""
    store.attempt = attempt
    if attempt.snapshot is None:
        store.failures += 1
        store.error = str(attempt.error)
        _log.error(
            "the registry files are invalid; the server keeps the last valid registry: %s",
            store.error,
        )
        return
    store.snapshot, store.error, store.loaded_at = attempt.snapshot, "", time.time()
    store.reloads += 1
    _log.info(
        "the registry changed and was read again: %d subjects", len(attempt.snapshot.subjects)
    )


async def keep_fresh(store: Store, seconds: float) -> None:
    """Check for changes until cancelled; files are read outside the event loop.

    An unexpected error ends one check, not the loop: it is logged, and the registry stays.
    """
    while True:
        await asyncio.sleep(seconds)
        try:
            await asyncio.to_thread(refresh, store)
        except Exception as error:  # noqa: BLE001 - the last resort: logged, told, not swallowed
            store.failures += 1
            store.error = f"internal fault: {type(error).__name__}: {error}"
            _log.exception("checking the registry for changes failed")
