"""What a test run left behind: processes that carry its token, and files in its folder."""

from __future__ import annotations

import time
from pathlib import Path

from tallystick.brokers.guardian import PROC, find_owned

_PATIENCE = 60.0
"""Seconds for processes that are just ending, such as the workers of xdist."""


def find_leavings(token: str, folder: Path) -> list[str]:
    """Give a line for each process and each file that is still there after a while."""
    until = time.monotonic() + _PATIENCE
    found = _look(token, folder)
    while found and time.monotonic() < until:
        time.sleep(0.05)
        found = _look(token, folder)
    return found


def _look(token: str, folder: Path) -> list[str]:
    processes = [f"process {pid}: {_command(pid)}" for pid in find_owned(token)]
    return sorted(processes) + sorted(f"file {path}" for path in folder.iterdir())


def _command(pid: int) -> str:
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:200]
    except OSError:
        return "it has just ended"
