"""Shared by the processes of a fault run: their task as JSON, and how they end.

The standard input of a process is a pipe from its parent. When the parent ends, for any
reason, the pipe closes and the process ends too.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from threading import Thread

import msgspec

__all__ = ["URN", "Task", "begin"]

URN = "urn:tallystick:faults:counted"


class Task(msgspec.Struct, frozen=True):
    """The task of a process of a fault run."""

    url: str
    queue: str
    folder: str
    name: str
    seed: int
    messages: int
    batch: int = 50
    backlog: int = 1000
    concurrency: int = 4
    prefetch: int = 50
    handling: float = 0.0

    def file(self, name: str) -> Path:
        """Give the path of a file of the run."""
        return Path(self.folder, name)


def begin() -> Task:
    """Read the task from the command line, note the start, and end when standard input does."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    task = msgspec.json.decode(sys.argv[1], type=Task)
    with task.file(f"{task.name}.starts").open("ab") as starts:
        starts.write(b".")
    Thread(target=_watch, name="watch", daemon=True).start()
    return task


def _watch() -> None:
    os.read(0, 1)
    os._exit(3)
