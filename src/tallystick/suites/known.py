"""Known failures: `pattern -> reason`, in JSON or TOML.

They still run. When one passes, the record raises an alarm (law 8). Patterns at the top hold for
every implementation; a table with the name of an implementation holds patterns for it. A table
with an unknown name is an error. So is a pattern that matches no case, because the list is stale;
a pattern for a suite that is not loaded is ignored. A list that
cannot be used is a usage error (exit 2), not a finding about an implementation.
"""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

from tallystick.core.errors import UsageError
from tallystick.suites.select import match, may_begin_with

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from tallystick.core.verdict import Case

__all__ = ["check_known", "read_known", "reason_for"]

Known = dict[str, str]


def read_known(text: bytes, *, toml: bool, subject: str, subjects: Container[str] = ()) -> Known:
    """Give the known failures of one implementation; `subjects` are the allowed table names."""
    try:
        content = tomllib.loads(text.decode()) if toml else json.loads(text.decode())
    except UnicodeDecodeError:
        raise _unreadable("the file is not UTF-8") from None
    except RecursionError:
        raise _unreadable("the file is nested too deep") from None
    except ValueError as error:
        raise _unreadable(str(error)) from error
    if not isinstance(content, dict):
        raise _unreadable("the file must hold an object")
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    for name, entries in tables.items():
        if name != subject and name not in subjects:
            raise UsageError(
                f"the list of known failures has a table for an unknown implementation: {name!r}",
                code="known_subject",
                hint="`tally suite implementations` lists the names; "
                "for a command, use its program name",
            )
        _check_reasons(entries)
    everywhere = {name: value for name, value in content.items() if name not in tables}
    _check_reasons(everywhere)
    return everywhere | tables.get(subject, {})


def _unreadable(why: str) -> UsageError:
    return UsageError(
        f"cannot read the list of known failures: {why}",
        code="known_unreadable",
        hint='write JSON or TOML, `pattern -> reason`: {"suite/case*": "why it fails"}',
    )


def _check_reasons(entries: Mapping[str, Any]) -> None:
    for pattern, reason in entries.items():
        if not isinstance(reason, str) or not reason.strip():
            raise UsageError(
                f"the known failure {pattern!r} has no reason",
                code="known_without_reason",
                hint='say why it fails: `pattern = "reason"`',
            )


def check_known(known: Mapping[str, str], cases: Iterable[Case]) -> None:
    """Raise `UsageError` for a pattern of a loaded suite that matches none of its cases."""
    names = [case.name for case in cases]
    suites = {name.split("/", maxsplit=1)[0] for name in names}
    for pattern in known:
        test = match(pattern)
        loaded = any(may_begin_with(pattern, suite) for suite in suites)
        if loaded and not any(map(test, names)):
            raise UsageError(
                f"the known failure {pattern!r} matches no case",
                code="known_matches_nothing",
                hint="remove it from the list, or correct the pattern",
            )


def reason_for(known: Mapping[str, str], name: str) -> str:
    """Give the reason of a known failure, or an empty text."""
    return next((reason for pattern, reason in known.items() if match(pattern)(name)), "")
