"""Exceptions that people have agreed to, each with a reason and an end.

    {"waivers": [{"urn": "urn:babel:users:registered", "path": "profile.city",
                  "reason": "a city alone names nobody (DPO, 2026-10-02)",
                  "expires": "2027-04-01"}]}

A waiver clears one finding at one path until its last day. Afterwards it is a finding itself, and
what it cleared comes back. One that clears nothing is reported too: it hides nothing any more.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.errors import Rejected
from tallystick.schemas.values import line_of, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Settled", "Waiver", "parse_waivers", "settle"]

_MEMBERS: Final = ("urn", "path", "reason", "expires")


@dataclass(frozen=True, slots=True)
class Waiver:
    """One exception, and the line where it stands."""

    urn: str
    path: str
    reason: str
    expires: dt.date
    line: int = 1


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of the waivers: those in force, those past their end, those without a use."""

    cleared: frozenset[tuple[str, str]]
    expired: tuple[Waiver, ...]
    unused: tuple[Waiver, ...]


def parse_waivers(raw: bytes, file: str) -> tuple[Waiver, ...]:
    """Read a file of waivers; one without a reason or an end is rejected with its line."""
    value = parse_json(raw, file)
    text = raw.decode()
    rows = value.get("waivers") if isinstance(value, dict) else None
    if not isinstance(rows, list) or value.keys() != {"waivers"}:
        raise Rejected(
            f'{file}:1: a waiver file must have the form {{"waivers": [...]}}',
            code="waiver.shape",
            pointer="",
            hint=f"each waiver needs {', '.join(_MEMBERS)}",
        )
    return tuple(_waiver(row, f"/waivers/{at}", text, file) for at, row in enumerate(rows))


def _waiver(row: Any, pointer: str, text: str, file: str) -> Waiver:
    line = line_of(text, pointer)

    def fault(message: str) -> Rejected:
        return Rejected(f"{file}:{line}: {message}", code="waiver.entry", pointer=pointer)

    if not isinstance(row, dict) or set(row) != set(_MEMBERS):
        raise fault(f"a waiver must have exactly the members {', '.join(_MEMBERS)}")
    for name in _MEMBERS:
        if not isinstance(row[name], str) or (name != "path" and not row[name].strip()):
            raise fault(f"{name} must be a non-empty string")
    try:
        expires = dt.date.fromisoformat(row["expires"])
    except ValueError as error:
        raise fault(
            f"expires must be a date such as 2027-04-01, found {row['expires']!r}"
        ) from error
    return Waiver(row["urn"], row["path"], row["reason"], expires, line)


def settle(waivers: Iterable[Waiver], found: Iterable[tuple[str, str]], today: dt.date) -> Settled:
    """Set the waivers against the (URN, path) pairs that were found; the last day still counts."""
    places = set(found)
    rows = tuple(waivers)
    live = [waiver for waiver in rows if waiver.expires >= today]
    return Settled(
        frozenset((waiver.urn, waiver.path) for waiver in live),
        tuple(waiver for waiver in rows if waiver.expires < today),
        tuple(waiver for waiver in live if (waiver.urn, waiver.path) not in places),
    )
