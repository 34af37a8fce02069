"""A child process that reads and writes lines; every wait has a deadline.

One loop feeds stdin and drains stdout and stderr at once, so a child that does not read or floods
its pipes cannot block us. The child leads a process group of its own; ending it ends the whole
group, and it is always reaped. If this process is killed, the guardian ends what the child started.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final

from tallystick.brokers.owner import tied
from tallystick.core.errors import Unavailable
from tallystick.suites.protocol import Breach, seen
from tallystick.suites.shipped import script_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import IO, Self

__all__ = ["MISSING_TOOL", "Process"]

MISSING_TOOL: Final = 3
"""The exit code of a child that cannot start because a tool is not here."""

_CHUNK: Final = 1 << 16
_LONGEST_LINE: Final = 64 << 20
_TAIL: Final = 2000
_PAUSE: Final = 0.005


class Process:
    """A running child. `talk` gets its stderr output."""

    def __init__(self, command: Sequence[str], talk: Callable[[bytes], None]) -> None:
        self._talk: Final = talk
        self._line: bytearray = bytearray()
        self._lines: list[bytes] = []
        self._tail = b""
        try:
            self._child = subprocess.Popen(  # noqa: S603 - running subjects is the job
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env={**script_environment(), **tied()},
                start_new_session=True,
            )
        except OSError as error:
            raise Unavailable(
                f"cannot start {command[0]}: {error.strerror}",
                code="subject_not_started",
                hint="use a name from `tally suite implementations`, or a command line that exists",
            ) from error
        self._in, self._out, self._err = self._pipes()
        self._open = {self._out, self._err}

    def _pipes(self) -> tuple[int, int, int]:
        streams: tuple[IO[bytes] | None, ...] = (
            self._child.stdin, self._child.stdout, self._child.stderr,
        )  # fmt: skip
        numbers = [stream.fileno() for stream in streams if stream is not None]
        for number in numbers:
            os.set_blocking(number, False)
        return numbers[0], numbers[1], numbers[2]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def send(self, data: bytes, seconds: float) -> None:
        """Write a line; lines that come back meanwhile are kept."""
        self._exchange(data, monotonic() + seconds, want_line=False)

    def receive(self, seconds: float) -> bytes:
        """Give the next line the child wrote."""
        self._exchange(b"", monotonic() + seconds, want_line=True)
        if not self._lines:
            raise Breach(self._death())
        return self._lines.pop(0)

    def unasked(self) -> bytes | None:
        """Give a line that the child wrote without a request, if there is one."""
        self._exchange(b"", monotonic(), want_line=False)
        return self._lines[0] if self._lines else None

    def _exchange(self, data: bytes, until: float, *, want_line: bool) -> None:
        rest = memoryview(data)
        with selectors.DefaultSelector() as selector:
            for pipe in self._open:
                selector.register(pipe, selectors.EVENT_READ)
            if rest:
                selector.register(self._in, selectors.EVENT_WRITE)
            waiting = rest or (want_line and not self._lines and self._out in self._open)
            while waiting:
                for key, _ in selector.select(max(0.0, until - monotonic())):
                    if key.fd == self._in:
                        rest = self._feed(rest)
                        if not rest:
                            selector.unregister(self._in)
                    elif not self._drain(key.fd):
                        selector.unregister(key.fd)
                waiting = rest or (want_line and not self._lines and self._out in self._open)
                if waiting and monotonic() >= until:
                    raise Breach(self._with_tail(self._lateness(writing=bool(rest))), late=True)
            for key, _ in selector.select(0):
                if key.fd != self._in:
                    self._drain(key.fd)

    def _feed(self, rest: memoryview) -> memoryview:
        try:
            return rest[os.write(self._in, rest[:_CHUNK]) :]
        except BlockingIOError:
            return rest
        except BrokenPipeError as error:
            raise Breach(self._death()) from error

    def _drain(self, pipe: int) -> bool:
        try:
            chunk = os.read(pipe, _CHUNK)
        except BlockingIOError:
            return True
        if not chunk:
            self._open.discard(pipe)
            return False
        if pipe == self._err:
            self._tail = (self._tail + chunk)[-_TAIL:]
            self._talk(chunk)
            return True
        *whole, last = chunk.split(b"\n")
        for line in whole:
            self._lines.append(bytes(self._line) + line)
            self._line.clear()
        self._line += last
        if len(self._line) > _LONGEST_LINE:
            raise Breach(f"wrote a line longer than {_LONGEST_LINE} bytes")
        return True

    def _lateness(self, *, writing: bool) -> str:
        if writing:
            return "did not read its input before the deadline"
        started = f", only part of a line: {seen(bytes(self._line))}" if self._line else ""
        return f"gave no answer before the deadline{started}"

    def _death(self) -> str:
        self._settle(1.0)
        code = self._exit_code()
        how = "closed its output" if code is None else f"ended with {_exit_text(code)}"
        rest = f", after {seen(bytes(self._line))}" if self._line else ""
        return self._with_tail(f"{how}{rest}")

    def _with_tail(self, reason: str) -> str:
        last = self._tail.decode("utf-8", "backslashreplace").strip().splitlines()
        return f"{reason}; its last lines on stderr: {' | '.join(last[-3:])}" if last else reason

    def missing_tool(self) -> str:
        """Give the last line on stderr of a child that ended because a tool is not here."""
        last = self._tail.decode("utf-8", "backslashreplace").strip().splitlines()
        return last[-1] if last and self._exit_code() == MISSING_TOOL else ""

    def _exit_code(self) -> int | None:
        """Look at the exit without reaping, so that the group's id stays ours."""
        if self._child.returncode is not None:
            return self._child.returncode
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        status = os.waitid(os.P_PID, self._child.pid, flags)
        if status is None:
            return None
        return status.si_status if status.si_code == os.CLD_EXITED else -status.si_status

    def _settle(self, seconds: float) -> None:
        until = monotonic() + seconds
        while self._exit_code() is None and monotonic() < until:
            sleep(_PAUSE)

    def stop(self, farewell: bytes, seconds: float) -> str:
        """Ask the child to end by itself; give a complaint when it did not do so cleanly."""
        until = monotonic() + seconds
        try:
            self.send(farewell, seconds)
            self._close_input()
            while self._out in self._open and monotonic() < until:
                self._lines.clear()
                self._exchange(b"", until, want_line=True)
        except Breach as breach:
            return f"at stop: {breach.reason}"
        self._settle(max(0.0, until - monotonic()))
        code = self._exit_code()
        if code is None:
            return "at stop: did not end before the deadline"
        return f"at stop: ended with {_exit_text(code)}" if code else ""

    def _close_input(self) -> None:
        if self._child.stdin is not None:
            self._child.stdin.close()

    def end(self) -> None:
        """Kill whatever is left of the child's group, and reap the child. Safe to repeat."""
        if self._child.returncode is None:
            try:
                os.killpg(self._child.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                self._child.kill()
            self._child.wait()
        for stream in (self._child.stdin, self._child.stdout, self._child.stderr):
            if stream is not None:
                stream.close()


def _exit_text(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    names = {number.value: number.name for number in signal.Signals}
    return f"signal {names.get(-code, str(-code))}"
