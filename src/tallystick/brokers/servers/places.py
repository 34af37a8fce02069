"""The folders (XDG base directories): fetched programs in the cache, brokers in the state.

    $XDG_CACHE_HOME/tallystick/brokers/<name>/<version>-<pins>/    one fetched broker, read only
    $XDG_STATE_HOME/tallystick/brokers/<name>/state.json           a running broker
                                             /ports.json, log, data/   kept from run to run

A folder is also a lock: only the process that holds it may fetch, start or stop that broker.
"""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tallystick.core.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Place", "cache_folder", "check_plain", "hold", "state_folder"]

_PLAIN: Final = re.compile(r"[\w./+@~%=-]+")


def cache_folder() -> Path:
    """Return the folder for files that can be fetched again."""
    return _xdg("XDG_CACHE_HOME", ".cache") / "tallystick" / "brokers"


def state_folder() -> Path:
    """Return the folder for the state and the data of brokers."""
    return _xdg("XDG_STATE_HOME", ".local/state") / "tallystick" / "brokers"


def _xdg(variable: str, default: str) -> Path:
    given = Path(os.environ.get(variable, ""))
    return check_plain(given if given.is_absolute() else Path.home() / default, variable)


def check_plain(folder: Path, variable: str) -> Path:
    """Return the folder, or raise if the start scripts of brokers do not support its name."""
    if not _PLAIN.fullmatch(str(folder)):
        raise Unavailable(
            f"the path {folder} has a character that the start scripts of brokers do not support",
            code="folder",
            hint=f"set {variable} to a folder without spaces and quotes",
        )
    return folder


@dataclass(frozen=True, slots=True)
class Place:
    """The private folder of one broker."""

    folder: Path

    @property
    def state(self) -> Path:
        """The file that exists while the broker runs."""
        return self.folder / "state.json"

    @property
    def ports(self) -> Path:
        """The ports of the last run, so that clients find the broker again after a crash."""
        return self.folder / "ports.json"

    @property
    def log(self) -> Path:
        """The output of the broker."""
        return self.folder / "log"

    @property
    def data(self) -> Path:
        """Its messages."""
        return self.folder / "data"

    @property
    def tmp(self) -> Path:
        """Its temporary files, which would otherwise be in the folder of the system."""
        return self.folder / "tmp"

    @property
    def classes(self) -> Path:
        """A class archive that the JVM writes when it stops."""
        return self.folder / "classes.jsa"


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Lock a folder against every other process; a crash releases the lock."""
    handle = _lock(folder)
    try:
        yield
    finally:
        os.close(handle)


def _lock(folder: Path) -> int:
    """Lock the folder that has this name now, not one that was deleted while we waited."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(handle, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.path.samestat(folder.stat(), os.fstat(handle)):
                return handle
        os.close(handle)
