"""A relay in a process of its own: `URL BROKER WHEN`, killed with -9 at a chosen instant.

never        until nothing is left
before       after the first batch was confirmed, before it is marked
within       in the middle of the second batch
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import closing
from threading import Event
from typing import Any

from tallystick.brokers.redis.transport import RedisTransport
from tallystick.runtime.outbox import Outbox, rows
from tallystick.runtime.outbox.relay import Terms, relay


class Drained(Event):
    """An event that is set when nothing waits any more."""

    def is_set(self) -> bool:
        with closing(Outbox(sys.argv[1])) as outbox:
            return outbox.status().pending == 0


def die(*_: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def die_within() -> None:
    send, sent = RedisTransport.send, list[int]()

    def half(self: RedisTransport, queue: str, frames: Any) -> None:
        if not sent:
            sent.append(len(frames))
            return send(self, queue, frames)
        send(self, queue, frames[: len(frames) // 2])
        return die()  # type: ignore[no-any-return]

    RedisTransport.send = half  # type: ignore[method-assign]


if __name__ == "__main__":
    store, broker, when = sys.argv[1:]
    if when == "before":
        rows.mark_sent = die  # type: ignore[assignment]
    if when == "within":
        die_within()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    relay(store, broker, stopping=Drained(), terms=Terms(batch=20, poll=0.01, lease=2))
