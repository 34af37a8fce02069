r"""Patterns as expressions that find less, never more, and never look back.

A pattern of plain characters, classes, groups, counts and `|`, anchored at its start, is rewritten
for Python: every count is possessive and every group atomic, so that matching takes a time that the
length of the text bounds; `$` is the very end; `\d` and `\w` are the ASCII ones. Whatever the
rewritten pattern finds, the original finds too. Anything else is not translated.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["FORMATS", "translate"]

_CLASSES: Final = {"d": "0-9", "w": "0-9A-Za-z_"}
_ESCAPED: Final = frozenset(".-/+*?()[]{}|^$")
_COUNT: Final = re.compile(r"[*+?]|\{[0-9]{1,4}(?:,[0-9]{0,4})?\}")
_PLAIN: Final = re.compile(r"[A-Za-z0-9 _:;,@#%&=!<>~/'\"-]")

_DATE: Final = r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
_TIME: Final = (
    r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?"
    r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
FORMATS: Final[dict[str, str]] = {
    "date": rf"\A{_DATE}\Z",
    "time": rf"\A{_TIME}\Z",
    "date-time": rf"\A{_DATE}T{_TIME}\Z",
    "uuid": r"\A[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z",
}
"""Texts that surely have a format: the usual ones; the first 28 days of a month."""


class _UntranslatedError(Exception):
    """The pattern is outside the subset."""


def translate(pattern: str) -> str:
    """Rewrite a pattern, or give nothing."""
    reader = _Reader(pattern)
    try:
        out = reader.union(0)
        if reader.at != len(pattern):
            return ""
        re.compile(out)
    except (_UntranslatedError, re.error, IndexError):
        return ""
    return out


class _Reader:
    """A pattern read from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def take(self, prefix: str) -> bool:
        found = self.text.startswith(prefix, self.at)
        self.at += len(prefix) if found else 0
        return found

    def union(self, depth: int) -> str:
        branches = [self.sequence(depth)]
        while self.take("|"):
            branches.append(self.sequence(depth))
        return "|".join(branches)

    def sequence(self, depth: int) -> str:
        if not depth and not self.take("^"):
            raise _UntranslatedError  # a search from every place would take a square of the time
        parts = [] if depth else [r"\A"]
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            if not depth and self.text[self.at : self.at + 2] in ("$", "$|"):
                self.at += 1
                parts.append(r"\Z")
                break
            parts.append(self.atom(depth) + self.count())
        return "".join(parts)

    def count(self) -> str:
        found = _COUNT.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        if self.text[self.at : self.at + 1] in ("*", "+", "?", "{"):
            raise _UntranslatedError
        return found.group() + "+"

    def atom(self, depth: int) -> str:
        if self.take("("):
            self.take("?:")
            inner = self.union(depth + 1)
            if not self.take(")"):
                raise _UntranslatedError
            return f"(?>{inner})"
        if self.take("["):
            return self.bracket()
        if self.take("\\"):
            char = self.text[self.at]
            self.at += 1
            if char in _CLASSES:
                return f"[{_CLASSES[char]}]"
            if char in _ESCAPED:
                return "\\" + char
            raise _UntranslatedError
        char = self.text[self.at]
        if not _PLAIN.match(char):
            raise _UntranslatedError
        self.at += 1
        return re.escape(char)

    def bracket(self) -> str:
        """Read a class of plain characters and ranges; one that is negated is not translated."""
        out = []
        while not self.take("]"):
            low = self.member()
            if len(low) == 1 and self.text[self.at] == "-" and self.text[self.at + 1] != "]":
                self.at += 1
                high = self.member()
                if len(high) != 1 or not (low.isalnum() and high.isalnum() and low <= high):
                    raise _UntranslatedError
                out.append(f"{low}-{high}")
            else:
                out.append(low if len(low) > 1 else re.escape(low))
        if not out:
            raise _UntranslatedError
        return f"[{''.join(out)}]"

    def member(self) -> str:
        if self.take("\\"):
            char = self.text[self.at]
            self.at += 1
            if char in _CLASSES:
                return _CLASSES[char]
            if char in _ESCAPED:
                return char
            raise _UntranslatedError
        char = self.text[self.at]
        if not (_PLAIN.match(char) or char in ".+*?()$|"):
            raise _UntranslatedError
        self.at += 1
        return char
