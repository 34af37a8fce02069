"""The guardian: a small process that ends the children of its owner when the owner has ended.

It reads a pipe whose other end only the owner has. When the owner ends, also by `kill -9`, the
kernel closes the pipe. Then the guardian ends every process with the owner's token in its
environment, whatever its current parent, and removes the owner's folder.

    python -I -S guardian.py TOKEN FOLDER

Its standard output closes when the work is done. It is not a child of the owner, so the owner can
count and await its own children as usual. The file imports nothing of the package:
the guardian starts in a few milliseconds. `owner.py` starts it.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["OWNER", "PROC", "read_environments", "read_stat"]

OWNER: Final = "TALLY_OWNER"
"""The variable with the tokens of all owners of a process, the outermost first."""
PROC: Final = Path("/proc")
_TICK: Final = 0.02
_GRACE: Final = 5.0
"""Seconds that a process gets to end, before it is killed."""
_LAST: Final = 60.0
"""Seconds after which the guardian gives up on a process that cannot be killed."""
_QUIET: Final = 5
"""Searches in a row that must find nothing: a process can be between `fork` and `exec`."""


def read_stat(pid: int) -> list[str] | None:
    """Read the fields after the program's name: 0 state, 17 threads, 19 start time."""
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text[text.rindex(")") + 2 :].split()


def read_environments() -> Iterator[tuple[int, list[str], list[bytes]]]:
    """Give every process that can be read: its number, its stat fields, its environment."""
    for entry in PROC.iterdir():
        if not entry.name.isdigit():
            continue
        fields = read_stat(int(entry.name))
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it ended, or belongs to another user: not one of ours
        if fields is not None:
            yield int(entry.name), fields, environment


def find_owned(token: str) -> list[int]:
    """Find every living process that carries the token, except this one."""
    name, wanted = f"{OWNER}=".encode(), token.encode()
    return [
        pid
        for pid, fields, environment in read_environments()
        if fields[0] not in "ZX"
        and pid != os.getpid()
        and any(one.startswith(name) and wanted in one for one in environment)
    ]


def _signal_all(pids: list[int], *numbers: signal.Signals) -> None:
    for pid in pids:
        for number in numbers:
            with suppress(ProcessLookupError, PermissionError):  # it ended, or took another user
                os.kill(pid, number)


def _until(is_so: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() >= end:
            return False
        time.sleep(_TICK)
    return True


def end_owned(token: str) -> None:
    """Ask everything with the token to end, then kill what is left, until nothing is found."""
    left = find_owned(token)
    if left:
        # a stopped process cannot take leave
        _signal_all(left, signal.SIGTERM, signal.SIGCONT)
        _until(lambda: not find_owned(token), _GRACE)
    quiet, end = 0, time.monotonic() + _LAST
    while quiet < _QUIET and time.monotonic() < end:
        left = find_owned(token)
        _signal_all(left, signal.SIGKILL)
        quiet = 0 if left else quiet + 1
        time.sleep(_TICK if left else _TICK / 10)


def _remove(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def main(token: str, folder: str) -> None:
    """Detach from the owner, wait for its end, then clean up."""
    if os.fork():
        os._exit(0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)  # they are meant for the owner
    while os.read(0, 4096):
        pass
    if PROC.is_dir():
        end_owned(token)
    _until(lambda: _remove(Path(folder)), _GRACE)


if __name__ == "__main__":
    main(*sys.argv[1:])
