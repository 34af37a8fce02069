"""Compare a whole registry with another version of itself: added, removed, changed.

Removing a URN breaks its senders and readers; adding one breaks nobody. A URN whose
schema is unchanged, with all its references brought in, is left out. An old version that
cannot be read, or an old schema that is malformed, is unknown: nothing was proven about it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tallystick.core.errors import Rejected
from tallystick.schemas.catalog import Catalog, Entry, self_contained
from tallystick.schemas.change_rows import Change
from tallystick.schemas.compat import Comparison, compare_bundled
from tallystick.schemas.modes import mode_named
from tallystick.schemas.validate import Formats, compile_entry
from tallystick.schemas.witness import Clock

__all__ = ["Unread", "UrnChange", "compare_history"]


@dataclass(frozen=True, slots=True)
class UrnChange:
    """The change of one URN: `entry` of `catalog` has its schema, `against` names the old one."""

    urn: str
    state: Literal["added", "removed", "changed"]
    comparison: Comparison
    entry: Entry
    catalog: Catalog
    against: str


@dataclass(frozen=True, slots=True)
class Unread:
    """A version in history that could not be read, and why."""

    commit: str
    reason: str


@dataclass(frozen=True, slots=True)
class _How:
    """How pairs are compared; `known` holds what was found for the same two texts of a URN."""

    mode: str
    formats: Formats
    clock: Clock | None
    known: dict[Any, Comparison | None]


def _against(old: Catalog, new: Catalog, how: _How) -> Iterator[UrnChange]:
    row = mode_named(how.mode)
    for urn in sorted(old.entries.keys() | new.entries.keys()):
        before, after = old.entries.get(urn), new.entries.get(urn)
        if after is None and before is not None:
            verdict: Any = "breaking" if row.backward else "compatible"
            gone = Change("", "urn-removed", verdict, "the URN is no longer registered")
            yield UrnChange(urn, "removed", Comparison(verdict, (gone,)), before, old, old.manifest)
        elif before is None and after is not None:
            yield UrnChange(urn, "added", Comparison("compatible"), after, new, old.manifest)
        elif after is not None:
            found = _compare_urn(old, new, urn, how)
            if found is not None:
                yield UrnChange(urn, "changed", found, after, new, old.manifest)


def _compare_urn(old: Catalog, new: Catalog, urn: str, how: _How) -> Comparison | None:
    known = how.known
    before, after = self_contained(old, urn), self_contained(new, urn)
    mark = (urn, json.dumps(before, sort_keys=True))
    if mark in known:
        return known[mark]
    if mark[1] == json.dumps(after, sort_keys=True):
        known[mark] = None
        return None
    compile_entry(new, urn)
    try:
        compile_entry(old, urn)
    except Rejected as error:
        known[mark] = Comparison("unknown", reason=str(error))
    else:
        known[mark] = compare_bundled(before, after, how.mode, formats=how.formats, clock=how.clock)
    return known[mark]


def compare_history(
    past: Iterable[Catalog | Unread],
    new: Catalog,
    mode: str,
    *,
    formats: Formats = "dialect",
    clock: Clock | None = None,
) -> tuple[list[UrnChange], list[Unread]]:
    """Compare with every past version; for each URN keep the worst comparison.

    A URN is added when no version had it.
    """
    order = {"compatible": 0, "unknown": 1, "breaking": 2}
    worst: dict[str, UrnChange] = {}
    unread: list[Unread] = []
    known: set[str] = set()
    how = _How(mode, formats, clock, {})
    for old in past:
        if isinstance(old, Unread):
            unread.append(old)
            continue
        known.update(old.entries)
        for change in _against(old, new, how):
            kept = worst.get(change.urn)
            if (
                kept is None
                or kept.state == "added"
                or order[change.comparison.verdict] > order[kept.comparison.verdict]
            ):
                worst[change.urn] = change
    rows = [worst[urn] for urn in sorted(worst)]
    return [row for row in rows if row.state != "added" or row.urn not in known], unread
