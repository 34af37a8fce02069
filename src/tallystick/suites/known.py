"""Known failures: `pattern -> reason`, in JSON or TOML.

They still run. Each pattern must match a case, else the list is stale and that is an error. When
a known failure passes, the record raises an alarm (law 8). Patterns at the top hold for every
subject; those in a table named like a subject hold for that one.
"""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

from tallystick.core.errors import Rejected, UsageError
from tallystick.suites.select import match

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tallystick.core.verdict import Case

__all__ = ["check_known", "read_known", "reason_for"]

Known = dict[str, str]


def read_known(text: str, *, toml: bool, subject: str) -> Known:
    """Give the patterns and reasons that hold for one subject."""
    try:
        content = tomllib.loads(text) if toml else json.loads(text)
    except ValueError as error:
        raise Rejected(f"the list of known failures: {error}", code="known_unreadable") from error
    if not isinstance(content, dict):
        raise Rejected("the list of known failures is not an object", code="known_unreadable")
    own = content.get(subject, {})
    found = {name: value for name, value in content.items() if not isinstance(value, dict)}
    return _reasons(found) | _reasons(own if isinstance(own, dict) else {})


def _reasons(entries: Mapping[str, Any]) -> Known:
    for pattern, reason in entries.items():
        if not isinstance(reason, str) or not reason.strip():
            raise Rejected(
                f"known failure {pattern!r} has no reason",
                code="known_without_reason",
                hint='say why it fails: `pattern = "reason"`',
            )
    return dict(entries)


def check_known(known: Mapping[str, str], cases: Iterable[Case]) -> None:
    """Refuse a list with a pattern that matches no case."""
    names = [case.name for case in cases]
    for pattern in known:
        test = match(pattern)
        if not any(map(test, names)):
            raise UsageError(
                f"known failure {pattern!r} matches no case",
                code="known_matches_nothing",
                hint="take it out of the list, or correct its name",
            )


def reason_for(known: Mapping[str, str], name: str) -> str:
    """Give the reason why a case is known to fail, or nothing."""
    return next((reason for pattern, reason in known.items() if match(pattern)(name)), "")
