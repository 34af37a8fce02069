"""A worker process of a fault run: a real app, with idempotency, whose effects are in the ledger.

    python -m tallystick.suites.faults.worker TASK

A handler notes its start, has its effect, and notes its end. If it is killed in between,
the second note is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from time import sleep
from typing import Any

from tallystick.runtime.app import App
from tallystick.runtime.handlers import Message
from tallystick.runtime.retry import Backoff
from tallystick.suites.faults.ledger import Ledger, Runs
from tallystick.suites.faults.programs import URN, Task, begin

__all__ = ["Handle", "handle", "serve"]

Handle = Callable[[Task, Ledger, Runs, str, int], None]
"""The effect of one message, from its id and number."""


def handle(task: Task, ledger: Ledger, runs: Runs, message_id: str, number: int) -> None:
    """Have the effect, once."""
    runs.write(f"b {message_id}")
    if task.handling:
        sleep(task.handling)
    ledger.apply(message_id, number)
    runs.write(f"e {message_id}")


def serve(task: Task, do: Handle = handle) -> None:
    """Handle messages until told to stop."""
    runs = Runs(task.file(f"{task.name}.runs"))
    ledger = Ledger(task.file("effects.db"), runs)
    app = App(
        task.url,
        queue=task.queue,
        seen=ledger,
        concurrency=task.concurrency,
        prefetch=task.prefetch,
        backoff=Backoff(0.1, 2, 1, "full"),
        max_attempts=100,
    )

    @app.handler(URN)
    def counted(data: Any, message: Message) -> None:
        do(task, ledger, runs, message.id or "", data["n"])

    app.run()


if __name__ == "__main__":
    serve(begin())
