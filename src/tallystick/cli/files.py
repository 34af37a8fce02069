"""Read a file that the user named, or standard input for `-`; errors are one line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO

from tallystick.cli.dispatch import name_fault
from tallystick.core.errors import UsageError
from tallystick.core.scan import MAX_BYTES

__all__ = ["read_bytes", "read_message", "standard_input"]


def read_message(name: str) -> bytes:
    """Give the bytes of a message; one byte too many is enough to know that it is too large."""
    return read_bytes(name, MAX_BYTES + 1)


def read_bytes(name: str, most: int = -1) -> bytes:
    """Read the bytes of a file, or of standard input for `-`; at most `most` bytes."""
    if name != "-":
        try:
            with Path(name).open("rb") as file:
                return file.read(most)
        except OSError as error:
            raise name_fault(error) from error
    return standard_input().buffer.read(most)


def standard_input() -> TextIO:
    """Give standard input, if there is one."""
    if sys.stdin is None:
        raise UsageError(
            "standard input is closed", code="no_input", hint="name a file, or pipe a message in"
        )
    return sys.stdin
