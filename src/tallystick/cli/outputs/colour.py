"""Colour for human output: verdict words, marks and the `tally:` prefix of an error.

Colour is used only when the stream is a terminal. `NO_COLOR` turns it off, `FORCE_COLOR` or
`CLICOLOR_FORCE` turns it on without a terminal, and `TERM=dumb` turns it off; the first of these
that is set decides, in this order. JSON and files never pass through this module.
"""

from __future__ import annotations

import os
import re
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import TextIO

__all__ = ["FORCED", "TONES", "Tone", "has_colour", "paint", "paint_first_words", "paint_verdict"]


class Tone(StrEnum):
    """A colour by its meaning; the value is the parameter of the SGR escape sequence."""

    GOOD = "32"
    BAD = "31"
    DOUBTFUL = "33"
    QUIET = "2"


TONES: Final = {
    **dict.fromkeys(("ok", "passed", "conforms", "compatible", "+"), Tone.GOOD),
    **dict.fromkeys(
        ("failed", "errored", "ALARM", "MISSING", "FAILS", "breaking", "error", "x"), Tone.BAD
    ),
    **dict.fromkeys(("known", "unknown", "warning", "absent", "unread", "?"), Tone.DOUBTFUL),
    "unsupported": Tone.QUIET,
}
"""Verdict word or mark -> its tone."""

FORCED: Final = ("FORCE_COLOR", "CLICOLOR_FORCE")
"""Variables that turn colour on without a terminal, unless empty or 0."""

_FIRST_WORD: Final = re.compile(
    rf"^(\s*)({'|'.join(map(re.escape, sorted(TONES, key=len, reverse=True)))})(?=[\s:]|$)",
    re.MULTILINE,
)


def has_colour(stream: TextIO | None = None) -> bool:
    """Tell whether output to this stream (default: stdout) is coloured."""
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in FORCED):
        return True
    target = stream or sys.stdout
    return os.environ.get("TERM") != "dumb" and target.isatty()


def paint(text: str, tone: Tone, stream: TextIO | None = None) -> str:
    """Give the text in this tone when the stream has colour, else unchanged."""
    return f"\x1b[{tone}m{text}\x1b[0m" if text and has_colour(stream) else text


def paint_verdict(word: str, stream: TextIO | None = None) -> str:
    """Give a verdict word in its tone; a word that is not in the table stays unchanged."""
    tone = TONES.get(word)
    return paint(word, tone, stream) if tone else word


def paint_first_words(text: str, stream: TextIO | None = None) -> str:
    """Paint the verdict word at the start of each line that begins with one."""
    if not has_colour(stream):
        return text
    return _FIRST_WORD.sub(lambda match: match[1] + paint_verdict(match[2], stream), text)
