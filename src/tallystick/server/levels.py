"""Confluent's compatibility levels: who must be able to read whose messages."""

from __future__ import annotations

from typing import Final

from tallystick.core.errors import UsageError

__all__ = ["LEVELS", "read_level"]

LEVELS: Final = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE",
                 "FULL", "FULL_TRANSITIVE")  # fmt: skip


def read_level(text: str) -> str:
    """Read a level in any case, or say which there are."""
    if text.upper() in LEVELS:
        return text.upper()
    raise UsageError(
        f"{text!r} is no compatibility level",
        code="server.level",
        hint=f"one of {', '.join(LEVELS)}",
    )
