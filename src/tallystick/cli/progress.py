"""A progress bar for long work, and an orderly stop on SIGTERM.

The bar is drawn on stderr at most ten times a second and shows the remaining time; while nothing
moves, for example during a build, it counts the seconds. Without a terminal no bar is drawn. Lines
that an implementation writes are always printed, each with its name and with visible control
characters. `end_in_order` turns SIGTERM into an exception, so that every process that we started is
stopped before we exit.
"""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from threading import Event, RLock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final

from tallystick.report.table import one_line

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from typing import Self, TextIO

__all__ = ["Progress", "end_in_order", "run_in_order"]

_WIDTH: Final = 30
_EVERY: Final = 0.1
_JUDGED_AFTER: Final = 2.0
_TICK: Final = 1.0
_STILL_AFTER: Final = 2.0
_LONGEST_TALK: Final = 1 << 16


@contextmanager
def end_in_order() -> Iterator[None]:
    """Unwind on SIGTERM as on Ctrl-C; the handler before is put back at the end."""

    def unwind(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, unwind)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def run_in_order(work: Coroutine[object, object, None]) -> None:
    """Run it to its end; a request to terminate cancels it once, so that it can clear up."""
    import asyncio  # noqa: PLC0415 (most commands have no use for it)

    before = signal.getsignal(signal.SIGTERM)

    async def cancellable() -> None:
        task = asyncio.ensure_future(work)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        await task

    try:
        asyncio.run(cancellable())
    except asyncio.CancelledError:
        raise SystemExit(128 + signal.SIGTERM) from None
    finally:
        signal.signal(signal.SIGTERM, before)


class Progress:
    """A bar over a known number of steps."""

    def __init__(self, total: int, title: str, stream: TextIO | None = None) -> None:
        self._stream: Final = stream or sys.stderr
        self._total: Final = total
        self._title = title
        self._done = 0
        self._begun = b""
        self._drawn = float("-inf")
        self._since: Final = monotonic()
        self._moved = self._since
        self._shown: Final = self._stream.isatty()
        self._lock: Final = RLock()
        self._over: Final = Event()
        self._ticker: Final = Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Self:
        self._draw(at_once=True)
        if self._shown:
            self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._shown:
            self._ticker.join()
        self._end_talk()
        self._clear()

    def _tick(self) -> None:
        """Draw anew while nothing moves, so that a person sees that the work goes on."""
        while not self._over.wait(_TICK):
            self._draw(at_once=False)

    def rename(self, title: str) -> None:
        """Show the name of the present work."""
        self._end_talk()
        self._title = title
        self._moved = monotonic()
        self._draw(at_once=True)

    def advance(self, _: object = None) -> None:
        """Count one step."""
        self._done += 1
        self._moved = monotonic()
        self._draw(at_once=False)

    def say(self, text: str) -> None:
        """Print a line of talk above the bar."""
        with self._lock:
            self._clear()
            print(text, file=self._stream, flush=True)
            self._draw(at_once=True)

    def talk(self, chunk: bytes) -> None:
        """Print what an implementation wrote to stderr, line by line, with its name."""
        *whole, self._begun = (self._begun + chunk).split(b"\n")
        for line in whole:
            text = line.decode("utf-8", "backslashreplace").rstrip().expandtabs()
            if text:
                self.say(f"{self._title}: {one_line(text)}")
        if len(self._begun) > _LONGEST_TALK:
            self._end_talk()

    def _end_talk(self) -> None:
        """Print a line that was begun and not ended."""
        if self._begun:
            self.talk(b"\n")

    def _draw(self, *, at_once: bool) -> None:
        now = monotonic()
        if not self._shown or (not at_once and now - self._drawn < _EVERY):
            return
        with self._lock:
            self._drawn = now
            self._stream.write(f"\r\x1b[K{self._line(now)}")
            self._stream.flush()

    def _line(self, now: float) -> str:
        share = self._done / self._total if self._total else 1.0
        bar = ("#" * int(share * _WIDTH)).ljust(_WIDTH, ".")
        still = now - self._moved
        waiting = f", waiting {still:.0f} s" if still >= _STILL_AFTER else self._left(now)
        return f"[{bar}] {self._done}/{self._total} {self._title}{waiting}"

    def _left(self, now: float) -> str:
        """Give the time still to go, once there is something to judge it by."""
        spent = now - self._since
        if spent < _JUDGED_AFTER or not 0 < self._done < self._total:
            return ""
        minutes, seconds = divmod(round(spent / self._done * (self._total - self._done)), 60)
        return f", {minutes}:{seconds:02} left"

    def _clear(self) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
