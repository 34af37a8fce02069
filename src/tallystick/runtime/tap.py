"""Capture a queue by URL without consuming it, and explain which brokers do not allow it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from threading import Event
from typing import Any, Final

from tallystick.core.errors import UsageError
from tallystick.core.tap import Tap, Watch
from tallystick.runtime.address import link_to, read_address
from tallystick.runtime.capture import Sink

__all__ = ["UNTAPPED", "capture_queue", "tapping"]

_BATCH: Final = 500
_WAIT: Final = 0.2

UNTAPPED: Final = {
    "sqs": "SQS cannot show a message without hiding it from its consumers",
    "memory": "only the process that holds messages in memory can see them",
}
"""Brokers that cannot be tapped, and why."""


@contextmanager
def tapping(url: str, watch: Watch) -> Iterator[Tap]:
    """Keep a tap on a queue open inside the `with` block."""
    broker = read_address(url).broker
    if broker in UNTAPPED:
        raise UsageError(
            UNTAPPED[broker], code="tap", hint="capture in the app instead: App(url, capture=DIR)"
        )
    transport: Any = link_to(url).open()
    try:
        tap: Tap = transport.tap(watch)
        try:
            yield tap
        finally:
            tap.close()
    finally:
        transport.close()


def capture_queue(
    url: str,
    watch: Watch,
    sink: Sink,
    *,
    limit: int | None = None,
    seconds: float | None = None,
    idle: float | None = None,
    stopping: Event,
    ready: Callable[[], None] = lambda: None,
    counted: Callable[[int], None] = lambda _count: None,
) -> int:
    """Capture a queue until it is stopped, the limit or the time is reached, or nothing arrives.

    Returns the number of captured frames. `ready` is called when the tap is open.
    """
    broker, count = read_address(url).broker, 0
    most = inf if limit is None else limit
    with tapping(url, watch) as tap:
        ready()
        began = last = time.monotonic()
        while count < most and not stopping.is_set():
            now = time.monotonic()
            if now - began >= (inf if seconds is None else seconds):
                break
            if now - last >= (inf if idle is None else idle):
                break
            frames = tap.read(int(min(_BATCH, most - count)), _WAIT)
            if not frames:
                continue
            sink.record("tapped", broker, watch.queue, time.time_ns(), frames)
            count += len(frames)
            counted(count)
            last = time.monotonic()
    return count
