"""Start a broker that outlives this process, recognise it later, and stop it completely.

A process is identified by its number, its start time and the boot of the machine. So a number that
now belongs to another process is never mistaken for a broker. All children of a broker have its
mark in their environment and are found by it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Final

import msgspec

from tallystick.brokers.guardian import PROC, read_environments, read_stat
from tallystick.core.errors import Unavailable
from tallystick.core.variables import BROKER_FOLDER

__all__ = ["MARK", "Identity", "find_marked", "identify", "is_alive", "spawn", "stop", "tail"]

MARK: Final = BROKER_FOLDER
_TICK: Final = 0.02
_KILLED: Final = 10.0

_WAIT_FOR_GO: Final = 'read -r go && cd "$0" && exec "$@" </dev/null'
"""The child waits until its state is on disk, so a kill never leaves an unknown broker."""


class Identity(msgspec.Struct, frozen=True):
    """One process, distinguished from any later process with the same number."""

    pid: int
    started: int
    boot: str


class Spawned:
    """A child process that waits for `begin`."""

    def __init__(self, identity: Identity, gate: int) -> None:
        self.identity: Final = identity
        self._gate: Final = gate

    def begin(self) -> None:
        """Let it run."""
        os.write(self._gate, b"go\n")
        os.close(self._gate)


def spawn(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, log: Path
) -> Spawned:
    """Create a process in its own session, with its output in the log; it waits for `begin`."""
    if not PROC.is_dir():
        raise Unavailable(
            "there is no /proc", code="no_proc", hint="brokers can be started on Linux only"
        )
    folder.mkdir(parents=True, exist_ok=True)
    source, gate = os.pipe()
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    try:
        pid = os.posix_spawn(
            "/bin/sh",
            ["sh", "-c", _WAIT_FOR_GO, str(folder), *command],
            environment,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, source, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
    except OSError:
        os.close(gate)
        raise
    finally:
        os.close(source)
    return Spawned(identify(pid), gate)


def identify(pid: int) -> Identity:
    """Return the identity of a running process."""
    fields = read_stat(pid)
    if fields is None:
        raise Unavailable(f"there is no process {pid}", code="no_process")
    return Identity(pid, int(fields[19]), _boot())


def is_alive(identity: Identity) -> bool:
    """Return whether exactly this process still runs; one thread is enough to keep its ports."""
    _reap(identity.pid)
    fields = read_stat(identity.pid)
    return (
        fields is not None
        and (fields[0] not in "ZX" or int(fields[17]) > 1)
        and int(fields[19]) == identity.started
        and identity.boot == _boot()
    )


def find_marked(mark: str) -> list[Identity]:
    """Find every running process with this mark: the broker and its children."""
    wanted = f"{MARK}={mark}".encode()
    return [
        Identity(pid, int(fields[19]), _boot())
        for pid, fields, environment in read_environments()
        if wanted in environment
    ]


def stop(
    identity: Identity, mark: str, limit: float, farewell: signal.Signals = signal.SIGTERM
) -> bool:
    """Stop it with all its children; return whether it ended by itself in time."""
    willing = True
    if is_alive(identity):
        _signal(identity, farewell)
        _signal(identity, signal.SIGCONT)  # a stopped process cannot take leave
        willing = _gone([identity], limit)
    rest = [one for one in [identity, *find_marked(mark)] if is_alive(one)]
    for one in rest:
        _signal(one, signal.SIGKILL)
    if not _gone(rest, _KILLED):
        raise Unavailable(
            f"process {rest[0].pid} cannot be killed",
            code="unkillable",
            hint="check that the process belongs to you",
        )
    return willing


def tail(log: Path, lines: int = 12) -> str:
    """Return the last lines of a log, without the inner lines of Java stack traces."""
    if not log.exists():
        return ""
    text = log.read_text(encoding="utf-8", errors="replace")
    said = [line for line in text.splitlines() if not line.startswith("\tat ")]
    return "\n".join(said[-lines:])


def _gone(those: Sequence[Identity], limit: float) -> bool:
    end = monotonic() + limit
    while any(is_alive(one) for one in those):
        if monotonic() >= end:
            return False
        sleep(_TICK)
    return True


def _signal(identity: Identity, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # it ended in the meantime: what was wanted
        os.kill(identity.pid, number)


def _reap(pid: int) -> None:
    with suppress(ChildProcessError):  # the child of another process is reaped by that one
        os.waitpid(pid, os.WNOHANG)


def _boot() -> str:
    return (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
