"""Ways to look for a thing on this machine: each gives what was found, or raises `Unavailable`."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tallystick.brokers.servers.java import find_java
from tallystick.brokers.servers.places import cache_folder
from tallystick.core.errors import Unavailable
from tallystick.core.extras import EXTRAS, missing_modules

__all__ = [
    "Look",
    "find_cargo",
    "find_compiler",
    "find_disk",
    "find_java_version",
    "find_javac",
    "find_machine",
    "find_memory",
    "find_python",
    "look_for_extra",
    "look_for_program",
]

Look = Callable[[], str]

_GB: Final = 1_000_000_000
_DISK: Final = 2 * _GB
_MEMORY: Final = 2 * _GB
_PATIENCE: Final = 30


def look_for_program(*names: str, ask: str = "", oldest: tuple[int, ...] = ()) -> Look:
    """Look for programs on the PATH; `ask` is the option that makes the first tell its version."""

    def look() -> str:
        paths = [_on_path(name) for name in names]
        return _ask_version(paths[0], ask, oldest) if ask else ", ".join(paths)

    return look


def look_for_extra(name: str) -> Look:
    """Look for every module of an extra."""

    def look() -> str:
        absent = missing_modules(name)
        if len(absent) == len(EXTRAS[name].modules):
            raise Unavailable("not installed", code="missing")
        if absent:
            raise Unavailable(f"{', '.join(absent)} not installed", code="missing")
        return "installed"

    return look


def _on_path(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise Unavailable("not on the PATH", code="missing")
    return path


def _ask_version(
    path: str, ask: str, oldest: tuple[int, ...], environment: Mapping[str, str] | None = None
) -> str:
    try:
        answer = subprocess.run(  # noqa: S603 (a program of the table)
            [path, ask], capture_output=True, text=True, errors="replace",
            timeout=_PATIENCE, check=False, stdin=subprocess.DEVNULL, env=environment,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        raise Unavailable(f"{path} does not answer", code="broken") from late
    match = re.search(r"\d+(?:\.\d+)+", answer.stdout + answer.stderr)
    if answer.returncode or match is None:
        raise Unavailable(f"{path} does not run", code="broken")
    if tuple(map(int, match[0].split("."))) < oldest:
        wanted = ".".join(map(str, oldest))
        raise Unavailable(f"{match[0]} is older than {wanted}", code="old")
    return match[0]


def find_python() -> str:
    """Give the version; an older Python than we need cannot import this file."""
    return platform.python_version()


def find_machine() -> str:
    """Give the kind of machine, which must be one that Redis and RabbitMQ are pinned for."""
    found = f"{platform.system()} {platform.machine()}"
    if found != "Linux x86_64":
        raise Unavailable(f"this is {found}", code="machine")
    return found


def find_disk() -> str:
    """Give the free space of the cache."""
    folder = cache_folder()
    while not folder.exists():
        folder = folder.parent
    return _enough(shutil.disk_usage(folder).free, _DISK, "free")


def find_memory() -> str:
    """Give the memory that a new program can have."""
    place = Path("/proc/meminfo")
    text = place.read_text("ascii") if place.exists() else ""
    match = re.search(r"MemAvailable:\s+(\d+) kB", text)
    if match is None:
        raise Unavailable("the system does not report it", code="missing")
    return _enough(int(match[1]) * 1024, _MEMORY, "available")


def _enough(here: int, wanted: int, what: str) -> str:
    text = f"{here / _GB:.1f} GB {what}"
    if here < wanted:
        raise Unavailable(f"{text}, {wanted / _GB:.0f} GB are needed", code="too_little")
    return text


def find_java_version() -> str:
    """Give the version of the Java runtime that we would use."""
    java = find_java()
    release = java.parent.parent / "release"
    text = release.read_text("utf-8") if release.exists() else ""
    match = re.search(r'JAVA_VERSION="([^"]+)"', text)
    return match[1] if match else str(java)


def find_javac() -> str:
    """Give the path of the Java compiler: in JAVA_HOME, or on the PATH."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("javac", path=f"{home}/bin" if home else None) or _on_path("javac")


def find_cargo() -> str:
    """Give the version of cargo; rustup keeps its toolchains beside it, wherever HOME points."""
    path = _on_path("cargo")
    toolchains = Path(path).parent.parent.parent / ".rustup"
    beside = {"RUSTUP_HOME": str(toolchains)} if toolchains.is_dir() else {}
    return _ask_version(path, "--version", (1, 88), {**beside, **os.environ})


def find_compiler() -> str:
    """Give the path of the C compiler: the one that CC names, or `cc`."""
    named = os.environ.get("CC", "")
    return _on_path(named.partition(" ")[0] or "cc")
