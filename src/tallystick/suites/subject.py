"""A `Subject` is an implementation under test: it gives its identity and answers calls.

`ProcessSubject` speaks the protocol of docs/reference/protocol.md with a process. Every call has a
deadline. An implementation that is late, dies or breaks the protocol raises `Breach` for that call,
is ended at once, and is started again at the next call. If it cannot start, it is not tried again;
if it is late several times in a row, it is not called any more. So a run always ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from tallystick.suites.process import Process
from tallystick.suites.protocol import (
    PROTOCOL,
    Answer,
    Breach,
    Identity,
    read_answer,
    read_identity,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Deadlines", "ProcessSubject", "Subject"]

_LATE_IN_A_ROW: Final = 5


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds for each kind of call. A first start may have to build the implementation."""

    start: float = 600.0
    run: float = 10.0
    stop: float = 10.0


class Subject(Protocol):
    """The interface of an implementation for the runner."""

    def start(self) -> Identity:
        """Start it and give its identity. Raises `Breach` if it cannot start."""
        ...

    def call(self, case: str, operation: str, given: dict[str, Any]) -> Answer:
        """Run one operation. Raises `Breach` if there is no valid answer."""
        ...

    def stop(self) -> tuple[str, ...]:
        """End it, and give complaints about how it ended. Safe to repeat."""
        ...


class ProcessSubject:
    """An implementation that runs as a process and speaks JSON lines."""

    def __init__(
        self, command: Sequence[str], deadlines: Deadlines, talk: Callable[[bytes], None]
    ) -> None:
        self._command: Final = command
        self._deadlines: Final = deadlines
        self._talk: Final = talk
        self._process: Process | None = None
        self._number = 0
        self._late = 0
        self._lost: str = ""

    def start(self) -> Identity:
        """Start the process and read its identity."""
        self.stop()
        seconds = self._deadlines.start
        self._process = Process(self._command, self._talk)
        try:
            self._process.send(write({"op": "start", "protocol": PROTOCOL}), seconds)
            return read_identity(self._process.receive(seconds))
        except Breach as breach:
            needs = self._process.missing_tool()
            self._end()
            self._lost = f"could not start: {breach.reason}"
            raise Breach(self._lost, late=breach.late, needs=needs) from breach
        except BaseException:
            self._end()
            raise

    def call(self, case: str, operation: str, given: dict[str, Any]) -> Answer:
        """Send one call and read its answer; start again first after a breach."""
        if self._lost:
            raise Breach(self._lost)
        if self._process is None:
            self.start()
        self._number += 1
        try:
            answer = self._ask(case, operation, given)
        except Breach as breach:
            self._end()
            self._count_late(breach)
            raise
        except BaseException:
            self._end()
            raise
        self._late = 0
        return answer

    def _ask(self, case: str, operation: str, given: dict[str, Any]) -> Answer:
        process = self._process
        if process is None:
            raise Breach("is not running")
        unasked = process.unasked()
        if unasked is not None:
            raise Breach(self._out_of_turn(read_answer(unasked).id))
        seconds = self._deadlines.run
        message = {
            "op": "run",
            "id": self._number,
            "case": case,
            "operation": operation,
            "given": given,
        }
        process.send(write(message), seconds)
        answer = read_answer(process.receive(seconds))
        if answer.id != self._number:
            raise Breach(self._out_of_turn(answer.id))
        return answer

    def _out_of_turn(self, answered: int) -> str:
        if 0 < answered < self._number:
            return f"answered call {answered} twice"
        return f"answered call {answered} instead of call {self._number}"

    def _count_late(self, breach: Breach) -> None:
        self._late = self._late + 1 if breach.late else 0
        if self._late >= _LATE_IN_A_ROW:
            self._lost = f"stopped after {self._late} calls in a row without an answer"

    def stop(self) -> tuple[str, ...]:
        """Ask it to end by itself, make sure that it did, and say what was wrong."""
        if self._process is None:
            return ()
        try:
            complaint = self._process.stop(write({"op": "stop"}), self._deadlines.stop)
        finally:
            self._end()
        return (complaint,) if complaint else ()

    def _end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None
