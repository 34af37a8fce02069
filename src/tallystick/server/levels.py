"""Confluent's compatibility levels, and the modes of comparison that each one asks for.

A level says who must be able to read whose messages. The rules say what reading means:

    babelqueue  the seed's table: an optional field may be added, none may be removed
    strict      containment of documents, nothing else

There is one version per subject, so a `_TRANSITIVE` level asks what its plain level asks.
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
    """Name the comparisons that must all hold under a level."""
    return RULES[rules][level.removesuffix("_TRANSITIVE")]


def read_level(text: str) -> str:
    """Read a level in any case, or say which there are."""
    if text.upper() in LEVELS:
        return text.upper()
    raise UsageError(
        f"{text!r} is no compatibility level",
        code="server.level",
        hint=f"one of {', '.join(LEVELS)}",
    )
