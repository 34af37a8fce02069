"""Fetch a broker once, by package name, through the ordinary client of its registry.

Rule: the work is done in a separate folder beside the target. The files are compared with their
pins, unpacked, and renamed to the target in one step, so the target never contains an incomplete
broker. If a registry is busy (429, 5xx, a stalled connection), the download is tried again, with
growing pauses.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from tallystick.brokers.servers.clients import CLIENTS, Order
from tallystick.brokers.servers.pins import Pin, pins_digest, read_pins, verify
from tallystick.brokers.servers.places import cache_folder, hold
from tallystick.brokers.servers.process import tail
from tallystick.brokers.servers.recipe import Here, Server
from tallystick.brokers.servers.unpack import unpack
from tallystick.core.errors import Unavailable

__all__ = ["PAUSES", "SILENT", "Talk", "fetch", "install_folder", "is_fetched"]

PAUSES: Final = (3.0, 10.0, 30.0, 90.0)
"""Seconds before each further try."""

_LOOK: Final = 0.2
_STALLED: Final = 180.0
_BUSY: Final = re.compile(
    r"\b(429|5\d\d)\b|too many requests|timed? ?out|stalled|temporar|reset by peer|refused"
    r"|unreachable|connection closed|premature|could not resolve|unknown host|hash sum mismatch",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Talk:
    """Receivers of progress: lines for a person, and (title, bytes so far, total bytes)."""

    say: Callable[[str], object] = len
    fetched: Callable[[str, int, int], object] = lambda _title, _done, _total: None


SILENT: Final = Talk()


def install_folder(server: Server) -> Path:
    """Return the folder of this version with these pins."""
    digest = pins_digest(read_pins(server.name))
    return cache_folder() / server.name / f"{server.version}-{digest}"


def is_fetched(server: Server) -> bool:
    """Return whether the broker is already fetched."""
    return isinstance(server.fetch, Here) or install_folder(server).is_dir()


def fetch(
    server: Server,
    talk: Talk = SILENT,
    *,
    pins: Sequence[Pin] | None = None,
    pauses: Sequence[float] = PAUSES,
) -> Path:
    """Return the folder of the broker's program; fetch it if it is missing."""
    target = install_folder(server)
    if target.is_dir() or isinstance(server.fetch, Here):
        return target
    client = CLIENTS[type(server.fetch)]
    pins = read_pins(server.name) if pins is None else pins
    with hold(target.parent):
        if target.is_dir():
            return target
        for left in target.parent.glob("part-*"):  # of one who was killed in the middle
            shutil.rmtree(left)
        with tempfile.TemporaryDirectory(prefix="part-", dir=target.parent) as stage:
            order = Order(server.fetch, tuple(pins), Path(stage), cache_folder() / "clients")
            order.files.mkdir()
            client.check(order)
            with hold(order.shared):
                try:
                    _gather(server, client.steps(order), order, talk, pauses)
                    verify(pins, order.files)
                finally:
                    client.tidy(order)
            tree = Path(stage, "tree")
            unpack(server.fetch, order.files, tree)
            tree.rename(target)
    return target


def _gather(
    server: Server,
    steps: Sequence[Sequence[Sequence[str]]],
    order: Order,
    talk: Talk,
    pauses: Sequence[float],
) -> None:
    """Try each way in turn; repeat a busy registry before the next way is tried."""
    total = sum(pin.size for pin in order.pins)
    title = f"{server.name} {server.version}"
    talk.say(f"downloading {title} ({total / 1e6:.1f} MB)")
    said = ""
    for way in steps:
        for pause in (*pauses, None):
            said = _run(way, order, lambda done: talk.fetched(title, done, total))
            if not said:
                return
            if pause is None or not _BUSY.search(said):
                break
            talk.say(f"the registry is busy; will try again in {pause:.0f} s")
            sleep(pause)
    raise Unavailable(
        f"{title} cannot be downloaded: {_reason(said)}",
        code="fetch",
        hint="check the network; if the pinned version is gone, update Tallystick",
    )


def _run(way: Sequence[Sequence[str]], order: Order, progress: Callable[[int], object]) -> str:
    """Run the commands of one way; return the output of the failing one, or nothing."""
    log = order.stage / "log"
    for command in way:
        with log.open("wb") as sink:
            child = subprocess.Popen(  # noqa: S603 (a fixed client and pinned names)
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, cwd=order.files
            )
        try:
            stalled = _watch(child, order, progress)
        finally:
            if child.poll() is None:
                child.kill()
            child.wait()
        if stalled or child.returncode:
            return tail(log, 200) + ("\nstalled" if stalled else "\n(no output)")
    progress(sum(pin.size for pin in order.pins))
    return ""


def _watch(child: subprocess.Popen[bytes], order: Order, progress: Callable[[int], object]) -> bool:
    """Report the received bytes; return whether the download has stalled."""
    names = {pin.file: pin.size for pin in order.pins}
    done, moved = -1, monotonic()
    while child.poll() is None:
        now = _bytes_in((order.files, order.shared), names)
        if now != done:
            done, moved = now, monotonic()
            progress(done)
        if monotonic() - moved > _STALLED:
            return True
        sleep(_LOOK)
    return False


def _bytes_in(folders: Sequence[Path], names: Mapping[str, int]) -> int:
    """Add up the bytes of the wanted files, whole or partial; none is counted twice."""
    seen: dict[str, int] = {}
    for folder in folders:
        for path in folder.rglob("*"):
            match = re.match(r"(.+?\.(?:deb|jar|tar\.gz))", path.name)
            if match and match[1] in names and path.is_file():
                seen[match[1]] = max(seen.get(match[1], 0), _size(path))
    return sum(min(size, names[name]) for name, size in seen.items())


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # renamed while we looked
        return 0


def _reason(said: str) -> str:
    """Pick the line of a client's talk that says why."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    worst = [line for line in lines if re.match(r"\[ERROR\]|E:|Err:", line)]
    return re.sub(r"\s+", " ", (worst or lines or ["no reason given"])[0])[:300]
