"""Tallystick as an implementation under test: the protocol over the package's own functions.

It runs inside the runner's process, or as a process of its own
(`python -m tallystick.suites.tallystick_subject`). Either way an answer goes through JSON text, so
both see the same. It reports what the functions did and never judges.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import tallystick
from tallystick.core.errors import Refused, Rejected, UsageError
from tallystick.suites.compare import parse
from tallystick.suites.operations import OPERATIONS
from tallystick.suites.protocol import PROTOCOL, Answer, Identity, read_answer, write

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO

__all__ = ["TallystickSubject", "answer", "main", "serve"]

_IDENTITY: Final = Identity(
    protocol=PROTOCOL,
    name="tallystick",
    version=tallystick.__version__,
    language="python",
    library="tallystick.core",
    operations=list(OPERATIONS),
)


def answer(number: int, operation: str, given: dict[str, Any]) -> dict[str, Any]:
    """Do one operation and give its result."""
    if operation not in OPERATIONS:
        return {"id": number, "unsupported": f"unknown operation {operation!r}"}
    try:
        return {"id": number, "result": OPERATIONS[operation](given)}
    except (Rejected, Refused) as refusal:
        result = {"rejected": refusal.message, "code": refusal.code}
        if refusal.pointer is not None:
            result["pointer"] = refusal.pointer
        return {"id": number, "result": result}
    except UsageError as reason:
        return {"id": number, "unsupported": reason.message}


class TallystickSubject:
    """Tallystick inside the runner's own process."""

    def start(self) -> Identity:
        """Say who it is."""
        return _IDENTITY

    def call(self, case: str, operation: str, given: dict[str, Any]) -> Answer:  # noqa: ARG002
        """Do one operation; the answer goes through text, as with any other implementation."""
        return read_answer(write(answer(1, operation, given)))

    def stop(self) -> tuple[str, ...]:
        """There is nothing to end."""
        return ()


def serve(lines: Iterable[bytes], out: BinaryIO) -> None:
    """Speak the protocol until `stop` or the end of the input."""
    for line in lines:
        message = parse(line)
        match message["op"]:
            case "start":
                out.write(write(_identity()))
            case "run":
                done = answer(message["id"], message["operation"], message["given"])
                out.write(write(done))
            case _:
                return
        out.flush()


def _identity() -> dict[str, Any]:
    return {name: getattr(_IDENTITY, name) for name in _IDENTITY.__struct_fields__}


def main() -> None:
    """Run as a process of its own."""
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
