"""Write captures to a folder: one line per frame, a new file by size and age.

Every call of `record` writes whole lines to `NODE-TIME-PID-N.jsonl.part` in one write. Nothing is
buffered in memory, so a killed program keeps what it recorded. A part that is full, too old, or
closed is finished under its final name (`capture_finish`). The next sink in the folder finishes the
parts of killed programs.

If nothing can be written (a full disk), one error is logged, frames are not captured, and writing
is tried again every few seconds. With `strict`, for programs that only capture, the error is raised
instead. `sequence` counts from 0 in each file and includes frames that were not captured: a gap, or
a first number above 0, shows how many are missing.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from threading import Lock, Thread, Timer
from time import monotonic
from typing import Final, Self
from weakref import WeakSet

from tallystick.core.capture import Capture, write
from tallystick.core.errors import TallystickError, Unavailable, UsageError
from tallystick.core.frame import Frame
from tallystick.runtime.capture_finish import PART, check_form, finish, lock_part, recover

__all__ = ["CaptureFiles", "program_name"]

_LOG: Final = logging.getLogger("tallystick.capture")
_AGAIN: Final = 5.0
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._]+")
_OPEN: Final[WeakSet[CaptureFiles]] = WeakSet()
_NUMBER: Final = count()


class CaptureFiles:
    """A sink that writes files in a folder; safe with many threads."""

    def __init__(
        self,
        folder: str | Path,
        *,
        form: str = "jsonl",
        node: str = "",
        clock_error: int | None = None,
        max_bytes: int = 64 << 20,
        max_age: float = 300.0,
        again: float = _AGAIN,
        strict: bool = False,
        tick: Callable[[], float] = monotonic,
    ) -> None:
        check_form(form)
        if max_bytes < 1 or max_age <= 0:
            raise UsageError(
                "the maximum size and age of a capture file must be above 0", code="setting"
            )
        if clock_error is not None and clock_error < 0:
            raise UsageError(
                f"the clock error must be 0 or more, not {clock_error}", code="setting"
            )
        self.folder: Final = Path(folder)
        self.node: Final = node or program_name()
        self.missing = 0
        self.trouble = ""
        self._form: Final = form
        self._clock_error: Final = clock_error
        self._max_bytes: Final = max_bytes
        self._max_age: Final = max_age
        self._again: Final = again
        self._strict: Final = strict
        self._tick: Final = tick
        self._lock: Final = Lock()
        self._number: int | None = None
        self._part = Path()
        self._size = 0
        self._sequence = 0
        self._try_at = 0.0
        self._timer: Timer | None = None
        self._finishing: Thread | None = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for part in recover(self.folder):
                self._finish(part)
        except OSError as error:
            raise Unavailable(
                f"cannot write captures to {folder}: {error.strerror}",
                code="capture_folder",
                hint="name a folder that you can write to",
            ) from error
        _OPEN.add(self)

    def record(
        self, direction: str, broker: str, queue: str, at: int, frames: Sequence[Frame]
    ) -> None:
        """Write frames; a frame that cannot be written is counted as missing, never raised."""
        with self._lock:
            if self.trouble and self._tick() < self._try_at:
                self._lose(len(frames))
                return
            lines = self._lines(direction, broker, queue, at, frames)
            try:
                self._write(b"".join(lines))
            except (OSError, RuntimeError) as error:  # the second: no thread can be started
                self._stumble(error)
                self._lose(len(frames))
                return
            self._sequence += len(frames)
            self.missing += len(frames) - len(lines)
            if self.trouble:
                _LOG.warning("capturing continues; %d frames are missing", self.missing)
                self.trouble = ""
            if self._size >= self._max_bytes:
                self._rotate()

    def close(self) -> None:
        """Finish the file that is being written; a later frame begins another."""
        with self._lock:
            self._rotate(wait=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _lines(
        self, direction: str, broker: str, queue: str, at: int, frames: Sequence[Frame]
    ) -> list[bytes]:
        lines: list[bytes] = []
        for sequence, frame in enumerate(frames, start=self._sequence):
            seen = Capture(
                direction, broker, queue, self.node, at, sequence, frame, self._clock_error
            )
            try:
                lines.append(write(seen) + b"\n")
            except Exception:  # noqa: BLE001 (a sink looks on; its sequence is not used again)
                _LOG.exception("a frame of %s cannot be captured", queue)
        return lines

    def _write(self, lines: bytes) -> None:
        number = self._begin() if self._number is None else self._number
        rest = memoryview(lines)
        while rest:
            rest = rest[os.write(number, rest) :]
        self._size += len(lines)

    def _begin(self) -> int:
        """Open a new part that only this process writes."""
        while True:
            moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
            safe = _UNSAFE.sub("-", self.node).strip("-") or "node"
            name = f"{safe}-{moment}-{os.getpid()}-{next(_NUMBER)}{PART}"
            part = self.folder / name
            self.folder.mkdir(parents=True, exist_ok=True)
            number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
            if lock_part(number) and part.exists():
                break
            os.close(number)
        self._number, self._part, self._size = number, part, 0
        self._timer = Timer(self._max_age, self._grow_old, (number, part))
        self._timer.daemon = True
        self._timer.start()
        return number

    def _grow_old(self, number: int, part: Path) -> None:
        with self._lock:
            if (number, part) != (self._number, self._part):
                return
            try:
                self._rotate()
            except Unavailable as error:
                _LOG.error("%s", error)

    def _rotate(self, *, wait: bool = False) -> None:
        """End the part that is open; converting one goes on beside the traffic, one at a time."""
        number, self._number = self._number, None
        if self._finishing is not None:
            self._finishing.join()
            self._finishing = None
        if number is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        if self._size:
            self._sequence = 0
        if wait or self._strict or self._form == "jsonl":
            self._finish(self._part, number)
        else:
            finishing = Thread(target=self._finish, args=(self._part, number))
            try:
                finishing.start()
                self._finishing = finishing
            except RuntimeError:  # there is no thread to be had
                self._finish(self._part, number)

    def _finish(self, part: Path, number: int | None = None) -> None:
        """Finish a part, then let go of its lock."""
        try:
            finish(part, self._form)
        except (OSError, TallystickError) as error:
            text = f"the capture file {part} cannot be finished and keeps its name: {error}"
            if self._strict:
                raise Unavailable(text, code="capture_folder") from error
            _LOG.error("%s", text)
        finally:
            if number is not None:
                with suppress(OSError):  # a disk may say only now that it is full; it is let go
                    os.close(number)

    def _lose(self, frames: int) -> None:
        self.missing += frames
        self._sequence += frames

    def _stumble(self, error: OSError | RuntimeError) -> None:
        """Log the error once, and remove a line that was written in part.

        If that fails too, the part is left for the next sink to finish: it cuts the incomplete line
        off.
        """
        self._try_at = self._tick() + self._again
        if self._number is not None:
            with suppress(OSError):
                os.ftruncate(self._number, self._size)
            self._rotate(wait=True)
        reason = getattr(error, "strerror", None) or type(error).__name__
        text = f"cannot write captures to {self.folder}: {reason}"
        if self._strict:
            raise Unavailable(
                text, code="capture_folder", hint="check the free space on the disk"
            ) from error
        if not self.trouble:
            _LOG.error("%s; messages are still handled, but not captured", text)
        self.trouble = reason


def program_name() -> str:
    """Give the name of this program, as a node."""
    name = Path(sys.argv[0] if sys.argv else "").stem
    return name if name not in ("", "-c", "-m", "__main__") else "python"


@atexit.register
def _close_all() -> None:
    for files in list(_OPEN):
        files.close()
