"""The processes of a fault run: restarted when they die, all ended at the end of the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from tallystick.brokers.owner import tied
from tallystick.core.errors import Unavailable
from tallystick.suites.faults.ledger import read_runs
from tallystick.suites.faults.programs import Task

__all__ = ["PUBLISHER", "WORKER", "Child"]

WORKER: Final = (sys.executable, "-m", "tallystick.suites.faults.worker")
PUBLISHER: Final = (sys.executable, "-m", "tallystick.suites.faults.publisher")

_LEAVING: Final = 40.0
_MOST_STARTS: Final = 100


class Child:
    """One process with a task, and its restarts."""

    def __init__(self, command: Sequence[str], task: Task) -> None:
        self.task: Final = task
        self.starts = 0
        self._command: Final = [*command, msgspec.json.encode(task).decode()]
        self._log: Final = task.file(f"{task.name}.log")
        self._open_before: Counter[str] = Counter()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def runs(self) -> Path:
        """The file in which the process logs its work."""
        return self.task.file(f"{self.task.name}.runs")

    def start(self) -> None:
        """Start the process."""
        self.starts += 1
        if self.starts > _MOST_STARTS:
            raise Unavailable(
                f"{self.task.name} ended {_MOST_STARTS} times; last log line: {self.last_words()}",
                code="child",
            )
        self._open_before = self._open()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 (our own program)
                self._command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, **tied()},
            )

    def has_begun(self) -> bool:
        """Tell whether the last started process has begun its work."""
        file = self.task.file(f"{self.task.name}.starts")
        return file.exists() and file.stat().st_size >= self.starts

    def poll(self) -> int | None:
        """Give its exit code, or nothing while it runs."""
        return None if self._process is None else self._process.poll()

    def keep_alive(self) -> None:
        """Restart it if it has ended, as a supervisor does."""
        if self.poll() is not None:
            self._reap()
            self.start()

    def kill_in_mid_handler(self) -> int:
        """Kill it with SIGKILL if handlers are running; give the number of running handlers."""
        self._signal(signal.SIGSTOP)
        at_work = (self._open() - self._open_before).total()
        if at_work:
            self.kill()
        else:
            self._signal(signal.SIGCONT)
        return at_work

    def kill(self) -> None:
        """End it at once."""
        self._signal(signal.SIGKILL)
        self._reap()

    def stop(self) -> int:
        """Ask it to end, and give its exit code."""
        if self._process is None:
            return 0
        self._signal(signal.SIGTERM)
        try:
            code = self._process.wait(_LEAVING)
        except subprocess.TimeoutExpired:
            code = -signal.SIGKILL
            self._signal(signal.SIGKILL)
        self._reap()
        return code

    def last_words(self) -> str:
        """Give the last line of its log."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return lines[-1] if lines else "(its log is empty)"

    def _open(self) -> Counter[str]:
        found = read_runs([self.runs])
        return found["b"] - found["e"]

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def _reap(self) -> None:
        if self._process is not None:
            self._process.wait()
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process = None
