"""Every error that Tallystick raises on purpose, with its exit code and HTTP status.

    TallystickError          something a person can act on: a code, one line, a hint
    |-- Rejected             bytes that were read break the contract (a finding)
    |-- Refused              the value may not be written: writing it would break the contract
    |-- UsageError           a wrong request: an unknown name, a bad option
    `-- Unavailable          a file, program, broker or network is missing or did not answer
        `-- MissingExtra     an optional library is not installed; the hint is the pip command

A wrong *implementation* is never an exception: it is a `Verdict` or a row (law 2).
`Rejected` is the one documented outcome of reading hostile bytes.
"""

from __future__ import annotations

from typing import ClassVar, Final

__all__ = [
    "EXIT_AND_STATUS",
    "MissingExtra",
    "Refused",
    "Rejected",
    "TallystickError",
    "Unavailable",
    "UsageError",
    "exit_code",
    "http_status",
]


class TallystickError(Exception):
    """One line for a person, a stable `code` for a program, and a `hint` that says what to do."""

    default_hint: ClassVar[str] = ""

    def __init__(self, message: str, *, code: str, hint: str = "") -> None:
        super().__init__(message)
        self.message: Final = message
        self.code: Final = code
        self.hint: Final = hint or self.default_hint

    def __str__(self) -> str:
        return self.message


class _Located(TallystickError):
    """An error at a place: an RFC 6901 `pointer` into the document, a byte `offset`, or both."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        pointer: str | None = None,
        offset: int | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.pointer: Final = pointer
        self.offset: Final = offset

    def __str__(self) -> str:
        place = []
        if self.pointer is not None:
            place.append(f"at {self.pointer or 'the root'}")
        if self.offset is not None:
            place.append(f"byte {self.offset}")
        return f"{self.message} ({', '.join(place)})" if place else self.message


class Rejected(_Located):
    """Bytes that the contract does not allow, with the reason and the place."""


class Refused(_Located):
    """A value that may not be written, with the pointer of the member at fault."""


class UsageError(TallystickError):
    """A wrong request: an unknown name, a bad option, two options that exclude each other."""


class Unavailable(TallystickError):
    """Something outside was missing or did not answer: a file, a program, a broker."""


class MissingExtra(Unavailable):
    """An optional library is not installed: `extra` is the extra of the package that brings it.

    `tallystick.core.extras` has the table of extras and raises this error.
    """

    def __init__(self, extra: str, module: str) -> None:
        super().__init__(
            f"this needs the extra `{extra}` (the Python module {module} is not installed)",
            code="missing_extra",
            hint=f"pip install 'tallystick[{extra}]'",
        )
        self.extra: Final = extra
        self.module: Final = module


EXIT_AND_STATUS: Final[dict[type[TallystickError], tuple[int, int]]] = {
    Rejected: (1, 422),
    Refused: (1, 422),
    UsageError: (2, 400),
    Unavailable: (2, 503),
    TallystickError: (2, 500),
}
"""The one table from error to (exit code, HTTP status). Subclasses inherit the nearest row."""


def _row(error: TallystickError) -> tuple[int, int]:
    return next(EXIT_AND_STATUS[kind] for kind in type(error).__mro__ if kind in EXIT_AND_STATUS)


def exit_code(error: TallystickError) -> int:
    """Give the process exit code: 1 for a finding, 2 for usage or I/O."""
    return _row(error)[0]


def http_status(error: TallystickError) -> int:
    """Give the HTTP status a server answers with."""
    return _row(error)[1]
