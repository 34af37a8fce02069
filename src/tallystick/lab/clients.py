"""Find, start and stop client programs: `interop/<language>/client/start` (IOP-1, 3, 16 to 21, 23).

`client/manifest.json` lists the platforms of a client and the programs that it needs. A client that
cannot run on this machine is listed and not started. Start scripts need only a PATH (IOP-8).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final

from tallystick.brokers.owner import scratch, tied
from tallystick.core.errors import Unavailable, UsageError
from tallystick.suites.shipped import find_shipped, script_command, script_environment

if TYPE_CHECKING:
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
    """Give the folder with the clients: the one given, `./interop`, or the one that we ship."""
    places = [given] if given else [Path("interop"), find_shipped("interop")]
    for place in places:
        if place.is_dir():
            return place.resolve()
    raise UsageError(
        "there is no folder `interop` with clients",
        code="interop",
        hint="pass --interop DIR, a folder with <language>/client/start",
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
        return Client(name, start, f"not available on {sys.platform}")
    absent = [program for program in about.get("needs", ()) if not shutil.which(program)]
    return Client(name, start, f"needs {', '.join(absent)}" if absent else "")


def start_client(
    client: Client, place: Place, given: Mapping[str, str], say: Callable[[str], object] = len
) -> Started:
    """Run a start script; it returns when the client listens, or fails. `say` gets its talk."""
    if client.missing:
        raise Unavailable(
            f"the {client.name} client cannot run on this machine: {client.missing}", code="client"
        )
    options = ["-b", place.host, "-p", str(place.port), "-v", place.vhost]
    pairs = [f"{name}={value}" for name, value in given.items()]
    command = [*script_command(client.start), *options, *pairs]
    try:
        code, words, lines = _run_start(command, lambda line: say(f"{client.name}: {line}"))
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"cannot start {client.name}: {error}", code="client") from error
    if code or len(words) < 3:
        said = " | ".join(lines[-3:])
        raise Unavailable(f"the {client.name} client did not start: {said}", code="client")
    return Started(words[-3], int(words[-2]), Path(words[-1]))


def _run_start(
    command: Sequence[str], say: Callable[[str], object]
) -> tuple[int, list[str], list[str]]:
    """Run a script that may build first; give its exit code, its words, and its lines of talk.

    Its stderr is a file: what it has started may keep it open after the script was killed.
    """
    lines: list[str] = []
    until = monotonic() + _LIMIT + _BUILD
    with (
        NamedTemporaryFile("wb", dir=scratch()) as sink,
        Path(sink.name).open(errors="replace") as talk,
        subprocess.Popen(  # noqa: S603 (to start clients is the job)
            command,
            env={**script_environment(), **tied(), "TMPDIR": str(scratch())},
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
        ) as process,
    ):
        try:
            ended = False
            while not ended:
                ended = process.poll() is not None
                fresh = [line for line in map(str.rstrip, talk) if line]
                lines += fresh
                for line in fresh:
                    say(line)
                if monotonic() > until:
                    raise subprocess.TimeoutExpired(command, _LIMIT + _BUILD)
                if not ended:
                    sleep(_LOOK)
            out, _ = process.communicate()
        finally:
            if process.poll() is None:
                process.kill()
    return process.returncode, out.split(), lines


def end_clients(started: Sequence[Started], patience: float = 10.0) -> tuple[str, ...]:
    """Wait until stopped clients have ended, kill the rest, and return the names of those."""
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
