"""The messages of the protocol, checked by type (docs/reference/protocol.md).

An implementation speaks JSON lines. Any other line is a breach of the protocol, and
`Breach` shows that line.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal, TypeVar

import msgspec

from tallystick.suites.compare import parse

__all__ = [
    "PROTOCOL",
    "Answer",
    "Breach",
    "Identity",
    "read_answer",
    "read_identity",
    "seen",
    "write",
]

PROTOCOL: Final = 1
_SEEN: Final = 200


class Identity(msgspec.Struct, frozen=True):
    """The answer to `start`: the implementation's name, and the operations it offers.

    Every other operation is declared unsupported by that. `warnings=False` declares that the
    implementation never warns: a case that asks for a warning is then unsupported, not failed.
    """

    protocol: Literal[1]
    name: str
    version: str
    language: str
    operations: list[str]
    library: str = ""
    warnings: bool = True


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answer to one call: exactly one of `result`, `unsupported` and `error`."""

    id: int
    result: dict[str, Any] | None = None
    unsupported: str | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        given = (self.result, self.unsupported, self.error)
        if sum(one is not None for one in given) != 1:
            raise ValueError("an answer must hold exactly one of result, unsupported and error")


class Breach(Exception):
    """The implementation was late, died, or wrote a line that is not a protocol message.

    `needs` names the missing tool of an implementation that could not start for lack of it.
    """

    def __init__(self, reason: str, *, late: bool = False, needs: str = "") -> None:
        super().__init__(reason)
        self.reason: Final = reason
        self.late: Final = late
        self.needs: Final = needs


def write(message: dict[str, Any]) -> bytes:
    """Give one message as one line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def read_identity(line: bytes) -> Identity:
    """Read the answer to `start`."""
    return _read(line, Identity)


def read_answer(line: bytes) -> Answer:
    """Read the answer to `run`."""
    return _read(line, Answer)


_T = TypeVar("_T", Identity, Answer)


def _read(line: bytes, kind: type[_T]) -> _T:
    try:
        return msgspec.convert(parse(line), kind)
    except (ValueError, msgspec.ValidationError) as error:
        raise Breach(
            f"wrote a line that is not a protocol message ({error}): {seen(line)}"
        ) from error


def seen(line: bytes) -> str:
    """Show the beginning of a line."""
    text = line.decode("utf-8", "backslashreplace").rstrip("\n")
    return repr(text[:_SEEN]) + (f" ({len(line)} bytes)" if len(text) > _SEEN else "")
