"""Find, start and end client programs: `interop/<language>/client/start` (IOP-1, 3, 16 to 21, 23).

`client/manifest.json` says on which platforms a client runs and which programs it needs; a client
that cannot run here is listed and not started. Start scripts get a PATH and nothing else (IOP-8).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from tallystick.core.errors import Unavailable, UsageError
from tallystick.lab.shell import Place

__all__ = ["Client", "Started", "end_clients", "find_clients", "find_interop", "start_client"]

_LOOK: Final = 0.02
_LIMIT: Final = 60.0
_BUILD: Final = 1200.0


@dataclass(frozen=True, slots=True)
class Client:
    """A client program; `missing` says why it cannot run here."""

    name: str
    start: Path
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Started:
    """A client that runs in the background."""

    name: str
    process: int
    log: Path


def find_interop(given: Path | None = None) -> Path:
    """Give the folder with the clients: the one given, `./interop`, or that of the checkout."""
    places = [given] if given else [Path("interop"), Path(__file__).parents[3] / "interop"]
    for place in places:
        if place.is_dir():
            return place.resolve()
    raise UsageError(
        "there is no folder `interop` with clients",
        code="interop",
        hint="run it in a checkout of Tallystick, or give --interop DIR",
    )


def find_clients(interop: Path) -> dict[str, Client]:
    """List every client there is, by name."""
    found = sorted(interop.glob("*/client/start"))
    if not found:
        raise UsageError(f"there is no client in {interop}", code="interop",
                         hint="a client is a program <language>/client/start")  # fmt: skip
    return {start.parents[1].name: _look(start) for start in found}


def _look(start: Path) -> Client:
    name = start.parents[1].name
    manifest = start.with_name("manifest.json")
    about = json.loads(manifest.read_text(encoding="utf-8")) if manifest.exists() else {}
    platforms = about.get("platforms", [sys.platform])
    if sys.platform not in platforms:
        return Client(name, start, f"it does not run on {sys.platform}")
    absent = [program for program in about.get("needs", ()) if not shutil.which(program)]
    return Client(name, start, f"it needs {', '.join(absent)}" if absent else "")


def start_client(client: Client, place: Place, given: Mapping[str, str]) -> Started:
    """Run a start script; it returns when the client listens, or fails."""
    if client.missing:
        raise Unavailable(
            f"the {client.name} client cannot run here: {client.missing}", code="client"
        )
    options = ["-b", place.host, "-p", str(place.port), "-v", place.vhost]
    pairs = [f"{name}={value}" for name, value in given.items()]
    try:
        done = subprocess.run(  # noqa: S603 (to start clients is the job)
            [str(client.start), *options, *pairs],
            capture_output=True,
            text=True,
            timeout=_LIMIT + _BUILD,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"cannot start {client.name}: {error}", code="client") from error
    words = done.stdout.split()
    if done.returncode or len(words) < 3:
        said = " | ".join(done.stderr.strip().splitlines()[-3:])
        raise Unavailable(f"the {client.name} client did not start: {said}", code="client")
    return Started(words[-3], int(words[-2]), Path(words[-1]))


def end_clients(started: Sequence[Started], patience: float = 10.0) -> tuple[str, ...]:
    """Wait until clients that were told to end are gone, kill the rest, and name those."""
    until = monotonic() + patience
    left = [one for one in started if _lives(one.process)]
    while left and monotonic() < until:
        sleep(_LOOK)
        left = [one for one in left if _lives(one.process)]
    for one in left:
        try:
            os.kill(one.process, signal.SIGKILL)
        except ProcessLookupError:
            continue
    for one in started:
        shutil.rmtree(one.log.parent, ignore_errors=True)
    return tuple(one.name for one in left)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return True
    return state[0] != "Z"
