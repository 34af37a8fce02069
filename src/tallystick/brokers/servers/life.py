"""Start a broker and wait until it is ready; stop it without leaving a process or a port.

`up` of a running broker returns that broker. After a crash of the broker or of Tallystick, the next
`up` or `down` repairs the state. Data is kept until `fresh` is requested. The ports stay the same
if they are free, so clients find a restarted broker at its old address.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tallystick.brokers.owner import inherited, scratch, tied
from tallystick.brokers.servers.download import SILENT, Talk, fetch, install_folder
from tallystick.brokers.servers.java import archive_exists, find_java
from tallystick.brokers.servers.launch import await_answer, clear, launch
from tallystick.brokers.servers.places import Place, check_plain, hold, state_folder
from tallystick.brokers.servers.probe import answers
from tallystick.brokers.servers.process import is_alive
from tallystick.brokers.servers.recipe import Here, Server
from tallystick.brokers.servers.state import Running, read_state
from tallystick.brokers.servers.table import find_server
from tallystick.core.errors import Unavailable
from tallystick.core.extras import check_extra

__all__ = ["LIMIT", "Status", "down", "running", "status", "up"]

LIMIT: Final = 60.0
_START: Final = 300.0
"""Seconds for a private broker to answer. One that ends is noticed at once, so the limit only stops
the wait for one that hangs; a Java broker on a very busy machine needs minutes."""
"""Seconds a broker may take to start, and to stop (IOP-11, IOP-14)."""


def up(
    name: str,
    *,
    fresh: bool = False,
    port: int | None = None,
    home: Path | None = None,
    limit: float = LIMIT,
    talk: Talk = SILENT,
    recipe: Server | None = None,
    stays: bool = True,
) -> Running:
    """Start a broker and return it when it answers; `home` separates it from all others.

    A given `recipe` replaces the one of the table, and needs its own `home`. A broker that is not
    to stay ends with this process, also when this process is killed.
    """
    server = recipe or find_server(name)
    place = _place(name, home)
    with hold(place.folder):
        found = read_state(place)
        if found and not fresh and (ready := await_answer(server, place, found, limit)):
            return _same(ready, port)
        clear(server, place, found, limit)
        if fresh and place.data.exists():
            shutil.rmtree(place.data)
        install = _install(server, talk)
        place.data.mkdir(parents=True, exist_ok=True)
        talk.say(f"starting {name} {server.version}")
        return launch(server, place, install, port, limit, inherited() if stays else tied())


def down(name: str, *, wipe: bool = False, home: Path | None = None, limit: float = LIMIT) -> bool:
    """Stop a broker; return whether it ended by itself in time, or was not running."""
    server = find_server(name)
    place = _place(name, home)
    if not place.folder.exists():
        return True
    with hold(place.folder):
        willing = clear(server, place, read_state(place), limit)
        if wipe:
            shutil.rmtree(place.folder)
    return willing


@contextmanager
def running(
    name: str,
    *,
    home: Path | None = None,
    talk: Talk = SILENT,
    limit: float = _START,
    recipe: Server | None = None,
) -> Iterator[Running]:
    """Run a private broker with empty data inside a `with` block; remove it at the end.

    It ends with this process, also when this process is killed.
    """
    with tempfile.TemporaryDirectory(dir=scratch()) as folder:
        mine = home or Path(folder)
        try:
            yield up(
                name, fresh=True, home=mine, talk=talk, limit=limit, recipe=recipe, stays=False
            )
        finally:
            down(name, wipe=True, home=mine, limit=_parting(find_server(name)))


def _parting(server: Server) -> float:
    """Give no time to end data that nobody will read, unless a class archive or tidying is due."""
    if server.tidies:
        return LIMIT
    archived = not server.shared_classes or archive_exists(find_java(), install_folder(server))
    return 0.0 if archived else LIMIT


@dataclass(frozen=True, slots=True)
class Status:
    """The current state of one broker; `dead` means that it ended without a request."""

    name: str
    state: Literal["running", "starting", "silent", "dead", "down"]
    found: Running | None


def status(name: str, *, home: Path | None = None) -> Status:
    """Return the status of one broker, from any process, without changing it."""
    server = find_server(name)
    found = read_state(_place(name, home))
    if found is None:
        return Status(name, "down", None)
    if not is_alive(found.identity):
        return Status(name, "dead", found)
    if answers(server.probe, found.ports):
        return Status(name, "running", found)
    return Status(name, "silent" if found.ready else "starting", found)


def _same(found: Running, port: int | None) -> Running:
    """Give the broker that runs already, unless another port was asked for."""
    current = next(iter(found.ports.values()))
    if port in (None, current):
        return found
    raise Unavailable(
        f"{found.name} is already running, on port {current}",
        code="runs_already",
        hint=f"stop it first: tally broker down {found.name}",
    )


def _place(name: str, home: Path | None) -> Place:
    return Place(check_plain(home, "TMPDIR") / name if home else state_folder() / name)


def _install(server: Server, talk: Talk) -> Path:
    if isinstance(server.fetch, Here) and server.fetch.extra:
        check_extra(server.fetch.extra)
    if server.uses_java:
        find_java()
    return fetch(server, talk)
