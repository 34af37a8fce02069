"""Case names are paths, and globs select them.

`*` and `?` stay inside one part of the path, `**` crosses parts; every other character stands for
itself, so a case's own name always selects that case. A pattern that names a part of the path
selects everything below it: `public/trim` is `public/trim/**`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tallystick.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tallystick.core.verdict import Case

__all__ = ["match", "may_begin_with", "select"]

_SPECIAL: Final = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
_PARTS: Final = re.compile(r"\*\*|\*|\?|[^*?]+")


def match(pattern: str) -> Callable[[str], bool]:
    """Give the test whether a name is selected by a pattern."""
    bare = pattern.rstrip("/")
    body = "".join(_SPECIAL.get(part, re.escape(part)) for part in _PARTS.findall(bare))
    found = re.compile(rf"{body}(?:/.*)?", re.DOTALL).fullmatch
    return lambda name: found(name) is not None


def may_begin_with(pattern: str, suite: str) -> bool:
    """Say whether a pattern could select a case of a suite, before the suite is loaded."""
    first = pattern.split("/", maxsplit=1)[0]
    return "**" in first or match(first)(suite)


def select(cases: Sequence[Case], patterns: Iterable[str]) -> list[Case]:
    """Give the cases that any pattern selects, in their order; each pattern must select one."""
    tests = {pattern: match(pattern) for pattern in patterns}
    if not tests:
        return list(cases)
    for pattern, test in tests.items():
        if not any(test(case.name) for case in cases):
            raise UsageError(
                f"no case matches {pattern!r}",
                code="no_such_case",
                hint="`tally suite list` shows the names; 'public/**' selects the public suite",
            )
    return [case for case in cases if any(test(case.name) for test in tests.values())]
