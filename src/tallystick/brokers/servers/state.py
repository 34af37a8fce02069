"""The state file of a running broker, so that any other process can find and stop it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tallystick.brokers.servers.places import Place
from tallystick.brokers.servers.process import Identity
from tallystick.core.errors import Unavailable

__all__ = ["Running", "forget", "read_state", "write_state"]


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """A broker that was started here. `urls` and `ports` have the client's first."""

    name: str
    version: str
    host: str
    ports: Mapping[str, int]
    urls: Mapping[str, str]
    admin: str
    data_dir: Path
    log: Path
    identity: Identity
    ready: bool = False

    @property
    def pid(self) -> int:
        """The broker's own process."""
        return self.identity.pid

    @property
    def url(self) -> str:
        """The URL for clients."""
        return next(iter(self.urls.values()))


def read_state(place: Place) -> Running | None:
    """Read the state file; it does not show whether the process still runs."""
    try:
        text = place.state.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(text, type=Running, dec_hook=_decode)
    except msgspec.DecodeError as error:
        raise Unavailable(
            f"{place.state} cannot be read: {error}",
            code="state",
            hint="stop that broker by hand, then delete the file",
        ) from error


def write_state(place: Place, running: Running) -> None:
    """Write the state file in one step."""
    partial = place.state.with_suffix(".part")
    partial.write_bytes(msgspec.json.encode(running, enc_hook=str))
    os.replace(partial, place.state)  # noqa: PTH105 (one step: both names are in one folder)


def forget(place: Place) -> None:
    """Delete the state file."""
    place.state.unlink(missing_ok=True)
    place.state.with_suffix(".part").unlink(missing_ok=True)


def _decode(kind: type, value: Any) -> Any:
    return kind(value)
