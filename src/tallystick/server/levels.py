"""Confluent's compatibility levels, and the comparison modes of each level.

A level says which readers must be able to read which messages. The rules define reading:

    babelqueue  the rules of bqschema: an optional field may be added, none may be removed
    strict      containment of documents, nothing else

A subject has one version, so a `_TRANSITIVE` level is the same as its plain level.
"""

from __future__ import annotations

from typing import Final

from tallystick.core.errors import UsageError

__all__ = ["LEVELS", "RULES", "modes_of", "read_level"]

LEVELS: Final = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE",
                 "FULL", "FULL_TRANSITIVE")  # fmt: skip

RULES: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "babelqueue": {
        "NONE": (),
        "BACKWARD": ("babelqueue",),
        "FORWARD": ("FORWARD",),
        "FULL": ("babelqueue", "FORWARD"),
    },
    "strict": {
        "NONE": (),
        "BACKWARD": ("BACKWARD",),
        "FORWARD": ("FORWARD",),
        "FULL": ("BACKWARD", "FORWARD"),
    },
}


def modes_of(level: str, rules: str) -> tuple[str, ...]:
    """Give the comparison modes that must all hold under a level."""
    return RULES[rules][level.removesuffix("_TRANSITIVE")]


def read_level(text: str) -> str:
    """Read a level, in upper or lower case."""
    if text.upper() in LEVELS:
        return text.upper()
    raise UsageError(
        f"unknown compatibility level {text!r}",
        code="server.level",
        hint=f"use one of: {', '.join(LEVELS)}",
    )
