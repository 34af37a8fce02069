"""Find the place of every value and every member name in a JSON text.

The text has been read already, so it is known to be well formed. Of members that stand twice the
last one counts, as it does for a reader.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

__all__ = ["Place", "Span", "find_spans"]

Place = tuple[str | int, ...]
"""The names and indexes that lead from the root to a value."""

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\]:,]|[^\s{}\[\]:,"]++', re.DOTALL)


class Span(NamedTuple):
    """From the first character of a value to behind its last; likewise its name, if any."""

    start: int
    end: int
    name_start: int = 0
    name_end: int = 0


def find_spans(text: str) -> dict[Place, Span]:
    """Map the path of each value to where it stands."""
    found: dict[Place, Span] = {}
    trail: list[str | int] = []  # the member or item being read in each open container
    opened: list[int] = []  # where each open container began
    names: list[tuple[int, int]] = [(0, 0)]
    expects_name = False
    for token in _TOKEN.finditer(text):
        word, start, end = token[0], token.start(), token.end()
        if word == ":":
            expects_name = False
        elif word == ",":
            step = trail[-1]
            expects_name = isinstance(step, str)
            trail[-1] = step if isinstance(step, str) else step + 1
        elif expects_name and word[0] == '"':
            trail[-1] = json.loads(word)
            names[-1] = (start, end)
        elif word in ("{", "["):
            opened.append(start)
            trail.append("" if word == "{" else 0)
            names.append((0, 0))
            expects_name = word == "{"
        elif word in ("}", "]"):
            trail.pop()
            names.pop()
            found[tuple(trail)] = Span(opened.pop(), end, *names[-1])
            expects_name = False
        else:
            found[tuple(trail)] = Span(start, end, *names[-1])
    return found
