"""ECMA-262 patterns read into regular languages.

A pattern may match anywhere in a string; here it becomes the language of all strings with a match.
Anchors and look-ahead are resolved (a look-ahead is an intersection with the rest of the pattern).
Constructs that are not regular, or that differ between engines (back-references, look-behind, word
boundaries, Unicode properties), raise `NotRegular`. `.` is any character except a line feed, as in
the validator.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from tallystick.schemas.containment.regex import (
    ANY,
    EMPTY,
    EVERYTHING,
    NOTHING,
    Ranges,
    Term,
    alt,
    both,
    cat,
    chars,
    complement,
    normal,
    nullable,
    outside,
    repeat,
)

__all__ = ["NotRegular", "approximate", "pattern_language"]

_MAX_PATTERN: Final = 2000


class NotRegular(Exception):
    """The pattern cannot be decided as a regular language."""


_DIGIT: Final[Ranges] = ((48, 57),)
_WORD: Final[Ranges] = normal([(48, 57), (65, 90), (95, 95), (97, 122)])
_SPACE: Final[Ranges] = normal(
    [(9, 13), (32, 32), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029),
     (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)]
)  # fmt: skip
_CLASSES: Final[dict[str, Ranges]] = {
    "d": _DIGIT, "D": outside(_DIGIT), "w": _WORD, "W": outside(_WORD),
    "s": _SPACE, "S": outside(_SPACE),
}  # fmt: skip
_CONTROLS: Final = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "0": 0}
_DOT: Final[Ranges] = outside(((10, 10),))


class _Parser:
    """A pattern read by recursive descent into a tree of tagged tuples."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def take(self, prefix: str) -> bool:
        if self.text.startswith(prefix, self.at):
            self.at += len(prefix)
            return True
        return False

    def union(self) -> Any:
        branches = [self.sequence()]
        while self.take("|"):
            branches.append(self.sequence())
        return branches[0] if len(branches) == 1 else ("union", branches)

    def sequence(self) -> Any:
        parts = []
        while self.peek() not in ("", "|", ")"):
            parts.append(self.quantified())
        return ("sequence", parts)

    def quantified(self) -> Any:
        atom = self.atom()
        low, high = self.bounds()
        while low is not None:
            self.take("?")
            if atom[0] in ("start", "end", "ahead"):
                raise NotRegular
            atom = ("many", atom, low, high)
            low, high = self.bounds()
        return atom

    def bounds(self) -> tuple[int | None, int | None]:
        if self.take("*"):
            return 0, None
        if self.take("+"):
            return 1, None
        if self.take("?"):
            return 0, 1
        if self.peek() != "{":
            return None, None
        end = self.text.find("}", self.at)
        low, comma, high = self.text[self.at + 1 : end].partition(",")
        if end < 0 or not low.isdecimal() or (high and not high.isdecimal()):
            raise NotRegular
        self.at = end + 1
        return int(low), (int(high) if high else None) if comma else int(low)

    def atom(self) -> Any:
        for text, node in (("^", ("start",)), ("$", ("end",)), (".", ("set", _DOT))):
            if self.take(text):
                return node
        if self.take("("):
            return self.group()
        if self.take("["):
            return ("set", self.bracket())
        if self.take("\\"):
            ranges = self.escape()
            return ("set", ranges)
        char = self.text[self.at]
        if char in "*+?{}])":
            raise NotRegular
        self.at += 1
        return ("set", ((ord(char), ord(char)),))

    def group(self) -> Any:
        if self.take("?="):
            node: Any = ("ahead", self.union(), True)
        elif self.take("?!"):
            node = ("ahead", self.union(), False)
        elif self.take("?:"):
            node = self.union()
        elif self.peek() == "?":
            raise NotRegular
        else:
            node = self.union()
        if not self.take(")"):
            raise NotRegular
        return node

    def escape(self) -> Ranges:
        char = self.peek()
        self.at += 1
        if char in _CLASSES:
            return _CLASSES[char]
        if char in _CONTROLS and not (char == "0" and self.peek().isdecimal()):
            return ((_CONTROLS[char],) * 2,)
        if char in "xu":
            point = self.hexadecimal({"x": 2, "u": 4}[char])
            return ((point, point),)
        if char.isalnum() or not char:
            raise NotRegular
        return ((ord(char), ord(char)),)

    def hexadecimal(self, width: int) -> int:
        digits = self.text[self.at : self.at + width]
        if len(digits) != width or any(one not in "0123456789abcdefABCDEF" for one in digits):
            raise NotRegular
        self.at += width
        return int(digits, 16)

    def bracket(self) -> Ranges:
        negated = self.take("^")
        ranges: list[tuple[int, int]] = []
        if self.peek() == "]":
            raise NotRegular
        while not self.take("]"):
            low = self.member()
            if self.peek() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = self.member()
                if len(low) != 1 or len(high) != 1 or low[0][0] != low[0][1]:
                    raise NotRegular
                ranges.append((low[0][0], high[0][1]))
            else:
                ranges.extend(low)
        return outside(normal(ranges)) if negated else normal(ranges)

    def member(self) -> Ranges:
        if self.take("\\"):
            if self.take("b"):
                return ((8, 8),)
            return self.escape()
        char = self.peek()
        if char in ("", "["):
            raise NotRegular
        self.at += 1
        return ((ord(char), ord(char)),)


def _has(node: Any, kinds: tuple[str, ...]) -> bool:
    if node[0] in kinds:
        return True
    inner = node[1] if node[0] in ("union", "sequence") else [node[1]] if len(node) > 2 else []
    return any(_has(one, kinds) for one in inner)


def _language(node: Any, after: Term, *, first: bool) -> Term:
    """Give the language of `node` followed by `after`; `first`: nothing stands before it."""
    kind = node[0]
    if kind == "set":
        return cat(chars(node[1]), after)
    if kind == "start":
        return after if first else NOTHING
    if kind == "end":
        return EMPTY if nullable(after) else NOTHING
    if kind == "ahead":
        inner = _language(node[1], EVERYTHING, first=first)
        return both(after, inner if node[2] else complement(inner))
    if kind == "union":
        return alt(*(_language(one, after, first=first) for one in node[1]))
    if kind == "many":
        if _has(node[1], ("start", "end", "ahead")):
            raise NotRegular
        return cat(repeat(_language(node[1], EMPTY, first=False), node[2], node[3]), after)
    parts = node[1]
    start = first
    starts = []
    for part in parts:
        starts.append(start)
        if part[0] in ("set", "many", "union", "sequence"):
            if start and any(_has(one, ("start",)) for one in parts[len(starts) :]) and (
                part[0] != "set"
            ):  # fmt: skip
                raise NotRegular
            start = False
    for part, begins in zip(reversed(parts), reversed(starts), strict=True):
        after = _language(part, after, first=begins)
    return after


_PROPERTIES: Final = {"L": "a-zA-Zé", "Lu": "A-ZÉ", "Ll": "a-zé", "N": "0-9", "Nd": "0-9"}


def approximate(pattern: str) -> str:
    """Return a similar pattern without word boundaries and Unicode properties."""

    def stand_in(match: re.Match[str]) -> str:
        inner = _PROPERTIES.get(match[2] or match[3], "a-zA-Z0-9")
        return inner if _is_inside(pattern, match.start()) else f"[{inner}]"

    plain = re.sub(r"\\([pP])(?:\{(\w+)\}|(\w))", stand_in, pattern)
    return re.sub(r"\\[bB]", "", plain)


def _is_inside(pattern: str, at: int) -> bool:
    """Tell whether a place of a pattern is inside a class."""
    return pattern.rfind("[", 0, at) > pattern.rfind("]", 0, at)


@lru_cache(maxsize=5000)
def pattern_language(pattern: str) -> Term:
    """Return the language of the strings that match a pattern, or raise `NotRegular`."""
    if len(pattern) > _MAX_PATTERN:
        raise NotRegular
    parser = _Parser(pattern)
    try:
        tree = parser.union()
        if parser.at != len(pattern):
            raise NotRegular
        here = _language(tree, EVERYTHING, first=True)
        if _is_anchored(tree):
            return here
        later = _language(tree, EVERYTHING, first=False)
    except RecursionError:
        raise NotRegular from None
    return alt(here, cat(repeat(ANY, 1, None), later))


def _is_anchored(node: Any) -> bool:
    """Tell whether every match begins at the start."""
    if node[0] == "start":
        return True
    if node[0] == "union":
        return all(map(_is_anchored, node[1]))
    return node[0] == "sequence" and bool(node[1]) and _is_anchored(node[1][0])
