"""Tie child processes and temporary files to this process: they end with it, even on `kill -9`.

    subprocess.Popen(command, env={**os.environ, **tied()})      ends with this process
    tempfile.TemporaryDirectory(dir=scratch())                   is removed with this process

Both start the guardian of this process (`guardian.py`) if it does not run yet. A process that
must stay, such as a broker of `tally broker up`, is started with `inherited()` instead: it belongs
only to the owners of this process, for example to a test run.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Lock
from typing import Final
from uuid import uuid4

from tallystick.brokers import guardian
from tallystick.brokers.guardian import OWNER

__all__ = ["OWNER", "inherited", "scratch", "tied"]


class _Guarded:
    """The guardian of this process; closing the pipe lets it clear up."""

    def __init__(self) -> None:
        self.token: Final = uuid4().hex
        self.folder: Final = Path(tempfile.gettempdir(), f"tally-{self.token[:8]}")
        source, self._life = os.pipe()
        self._done, done = os.pipe()
        try:
            subprocess.run(  # noqa: S603 (our own program)
                [sys.executable, "-I", "-S", guardian.__file__, self.token, str(self.folder)],
                stdin=source,
                stdout=done,
                stderr=subprocess.DEVNULL,
                env={},  # no outer owner ends it before its work is done
                cwd="/",
                start_new_session=True,
                check=True,
            )
        except BaseException:
            self.leave()
            raise
        finally:
            os.close(source)
            os.close(done)
        self.folder.mkdir(mode=0o700)  # the guardian knows its name already

    def end(self) -> None:
        """Let the guardian clear up, and wait for it."""
        os.close(self._life)
        os.read(self._done, 1)
        os.close(self._done)

    def leave(self) -> None:
        """Leave the guardian to the process that this one was forked from."""
        os.close(self._life)
        os.close(self._done)


_lock: Lock = Lock()
_guarded: _Guarded | None = None


def _guard() -> _Guarded:
    global _guarded  # noqa: PLW0603 (a process has one guardian)
    with _lock:
        if _guarded is None:
            _guarded = _Guarded()
        return _guarded


def tied() -> dict[str, str]:
    """Give the environment that ties a child process to the life of this process."""
    outer = os.environ.get(OWNER)
    token = _guard().token
    return {OWNER: f"{outer}/{token}" if outer else token}


def inherited() -> dict[str, str]:
    """Give the environment of a child that outlives this process, but not its owners."""
    return {OWNER: os.environ[OWNER]} if OWNER in os.environ else {}


def scratch() -> Path:
    """Give the folder for temporary files that are removed with this process."""
    return _guard().folder


@atexit.register
def _end() -> None:
    if _guarded is not None:
        _guarded.end()


def _forget() -> None:
    global _guarded, _lock  # noqa: PLW0603 (as above; the lock may be held by a lost thread)
    _lock = Lock()
    if _guarded is not None:
        _guarded.leave()
        _guarded = None


os.register_at_fork(after_in_child=_forget)
