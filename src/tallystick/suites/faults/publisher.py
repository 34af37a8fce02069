"""The publisher process of a fault run: sends every number, and again what was not confirmed.

    python -m tallystick.suites.faults.publisher TASK

It keeps a bounded distance from the effects, so that there is something to send throughout the run.
Started again, it goes on after what the broker has confirmed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from time import sleep
from typing import Final

from tallystick.core.errors import Unavailable
from tallystick.runtime.app import App
from tallystick.suites.faults.ledger import Ledger, Runs, id_of, read_ranges
from tallystick.suites.faults.programs import URN, Task, begin

__all__ = ["publish"]

_LOG: Final = logging.getLogger("tallystick.faults")
_PAUSE: Final = 0.05


def publish(task: Task) -> None:
    """Send every number until the broker has confirmed it."""
    path = task.file(f"{task.name}.runs")
    start = len(read_ranges(path, "c"))
    runs, ledger = Runs(path), Ledger(task.file("effects.db"))
    ids: Iterator[str] = iter(())
    with App(task.url, queue=task.queue, new_id=lambda: next(ids)) as app:
        while start < task.messages:
            if start - ledger.count() > task.backlog:
                sleep(_PAUSE)
                continue
            stop = min(start + task.batch, task.messages)
            numbers = range(start, stop)
            ids = iter([one for n in numbers for one in (id_of(task.seed, n),) * 2])
            runs.write(f"a {start} {stop}")
            try:
                app.publish_all((URN, {"n": n}) for n in numbers)
            except Unavailable as error:
                _LOG.warning("publishing messages %d to %d again: %s", start, stop, error)
                sleep(_PAUSE)
                continue
            runs.write(f"c {start} {stop}")
            start = stop
    ledger.close()


if __name__ == "__main__":
    publish(begin())
