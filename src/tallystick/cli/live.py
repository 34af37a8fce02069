"""Show the state of a running worker: a view on a terminal, else plain lines, or JSON.

    120 handled (40.0/s), 4 in flight, 2 retried, 1 dead-lettered, lag 17
    last error: orders: retried: builtins.ValueError

Everything goes to stderr. The view is drawn again every second; log lines, and what handlers print
to the same terminal, appear above it. Without a terminal, a line is written when something has
changed, at most every `every` seconds. The lag is asked on a separate thread, so an unreachable
broker blocks nothing.
"""

from __future__ import annotations

import io
import json
import logging
import os
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stdout
from threading import Event, RLock, Thread, local
from time import monotonic, time
from typing import Any, Final, Self, TextIO

from tallystick import App
from tallystick.report.table import one_line
from tallystick.runtime.status import Backlog

__all__ = ["Live"]

_DRAW: Final = 1.0
_ASK: Final = 5.0
_SPAN: Final = 10
_FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"
_SHOWN: Final = {"retried": "retried", "dead_lettered": "dead-lettered"}
_ODD: Final = ("skipped", "dropped", "native", "released", "unsettled", "left")


class Live(logging.Handler):
    """Shows an app while it is entered; also where the lines of the log go."""

    def __init__(
        self, app: App, queues: Sequence[str], *, machine: bool, every: float | None = None
    ) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter(_FORMAT))
        self._app: Final = app
        self._queues: Final = tuple(queues) or (app.settings.queue,)
        self._machine: Final = machine
        self._stream: Final[TextIO] = sys.stderr
        self._view: Final = not machine and self._stream.isatty()
        self._every: Final = every if every is not None else _DRAW if self._view else 10.0
        self._done: Final = Event()
        self._drawing: Final = RLock()
        self._drawn = 0
        self._told: dict[str, Any] = {}
        self._lag: int | None = None
        self._history: Final[deque[tuple[float, int]]] = deque(maxlen=_SPAN)
        self._stack: Final = ExitStack()

    def __enter__(self) -> Self:
        root = logging.getLogger()
        if not root.handlers:  # an app may log in its own way
            root.addHandler(self)
            self._stack.callback(root.removeHandler, self)
        if self._view and sys.stdout.isatty():
            self._stack.enter_context(redirect_stdout(_Above(sys.stdout, self)))
        for target in (self._show, self._ask):
            thread = Thread(target=target, daemon=True)
            thread.start()
            self._stack.callback(thread.join, 1.0)
        self._stack.callback(self._done.set)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self.clear()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line of the log above the view."""
        self.write_above(self._stream, self.format(record) + "\n")

    def write_above(self, stream: TextIO, text: str) -> None:
        """Write a text where the view was, and draw it again below."""
        with self._drawing:
            self.clear()
            stream.write(text)
            stream.flush()
            if text.endswith("\n"):
                self._draw()

    def clear(self) -> None:
        """Take the view away."""
        with self._drawing:
            if self._drawn:
                up = f"\x1b[{self._drawn - 1}A" if self._drawn > 1 else ""
                self._stream.write(f"\r{up}\x1b[J")
                self._stream.flush()
            self._drawn = 0

    def _show(self) -> None:
        while not self._done.wait(self._every):
            before = self._told
            self._told = self._status()
            if self._view:
                with self._drawing:
                    self.clear()
                    self._draw()
            elif {**self._told, "time": 0, "rate": 0} != {**before, "time": 0, "rate": 0}:
                with self._drawing:
                    print(self._line(), file=self._stream, flush=True)

    def _ask(self) -> None:
        backlog = Backlog(self._app.link)
        self._lag = backlog.ask(self._queues)
        while not self._done.wait(_ASK):
            self._lag = backlog.ask(self._queues)
        backlog.close()

    def _status(self) -> dict[str, Any]:
        status = self._app.status()
        handled = status.counts["handled"]
        self._history.append((monotonic(), handled))
        (began, first), (now, last) = self._history[0], self._history[-1]
        rate = (last - first) / (now - began) if now > began else 0.0
        return {
            "kind": "status",
            "time": int(time() * 1000),
            "handled": handled,
            "rate": round(rate, 1),
            "in_flight": status.in_flight,
            **{name: status.counts[name] for name in _SHOWN},
            "lag": self._lag,
            "last_error": status.last_error,
            "counts": dict(status.counts),
        }

    def _line(self) -> str:
        return json.dumps(self._told) if self._machine else f"tally: {'; '.join(self._texts())}"

    def _texts(self) -> list[str]:
        told = self._told
        parts = [f"{told['handled']} handled ({told['rate']:.1f}/s)"]
        parts += [f"{told['in_flight']} in flight"]
        parts += [f"{told[name]} {text}" for name, text in _SHOWN.items()]
        parts += [f"{told['counts'][name]} {name}" for name in _ODD if told["counts"].get(name)]
        parts += [] if told["lag"] is None else [f"lag {told['lag']}"]
        error = told["last_error"]
        return [", ".join(parts), *([one_line(f"last error: {error}")] if error else [])]

    def _draw(self) -> None:
        if not self._view or not self._told or self._done.is_set():
            return
        width = os.get_terminal_size(self._stream.fileno()).columns or 80
        lines = [text[: width - 1] for text in self._texts()]
        self._stream.write("\n".join(lines))
        self._stream.flush()
        self._drawn = len(lines)


class _Above(io.TextIOBase):
    """Output of handlers on the terminal: it appears above the view, in whole lines per thread."""

    def __init__(self, stream: TextIO, live: Live) -> None:
        self._stream: Final = stream
        self._live: Final = live
        self._begun: Final = local()

    def write(self, text: str) -> int:
        """Write the lines that are whole; the view is drawn again in its time."""
        whole, end, rest = (getattr(self._begun, "text", "") + text).rpartition("\n")
        self._begun.text = rest
        if end:
            self._live.write_above(self._stream, whole + end)
        return len(text)

    def flush(self) -> None:
        """Write out a line that was begun."""
        text, self._begun.text = getattr(self._begun, "text", ""), ""
        if text:
            self._live.write_above(self._stream, text)

    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Give the terminal's number."""
        return self._stream.fileno()
