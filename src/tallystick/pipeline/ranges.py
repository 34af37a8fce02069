"""What a lake has of a log, and what is new: nothing is read twice and nothing is left out.

A part of a log is a range of positions. The parts that stand in the lake are the only memory of how
far a log was read, so whoever reads it next, in a run or a stream, goes on behind them. A log that
is shorter than what was read of it, or has another identity, is another log under the same name,
and is told.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tallystick.core.errors import Unavailable
from tallystick.pipeline.parts import MARK, read_part
from tallystick.pipeline.sources import GROWING, Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["check_grown", "check_unread", "find_new", "is_log", "read_log", "read_parts"]

_REPLACED: Final = "it was replaced; give it another name, or another --out"


def is_log(source: Source) -> bool:
    """Tell a range of a log from a file in one state."""
    return source.changed is None


def read_parts(folder: Path) -> dict[str, list[Source]]:
    """Give the finished parts of logs in a folder of parts, by path, in order."""
    found: dict[str, list[Source]] = {}
    for place in folder.glob(f"*/{MARK}"):
        log = read_log(place)
        if log is not None:
            found.setdefault(log.path, []).append(log)
    return {path: _drop_inner(parts) for path, parts in found.items()}


def read_log(place: Path) -> Source | None:
    """Give the range that a `part.json` tells of, or None when it is of a file in one state."""
    part = read_part(place.parent)
    if part is None or part.source is None or not is_log(part.source):
        return None
    return part.source


def _drop_inner(parts: list[Source]) -> list[Source]:
    """Give parts in order, without those that lie within another."""
    kept: list[Source] = []
    for one in sorted(parts, key=lambda one: (one.start, -one.stop)):
        if not kept or one.stop > kept[-1].stop:
            kept.append(one)
    return kept


def check_grown(known: Sequence[Source], log: Source) -> None:
    """Refuse another log under the name of one that was read, or a whole file that has changed."""
    read = known[-1].stop if known else 0
    if known and log.identity and known[-1].identity not in ("", log.identity):
        raise Unavailable(
            f"{log.path} was made anew since it was read up to {read}",
            code="input.replaced",
            hint=_REPLACED,
        )
    if log.stop < read or (read and log.form not in GROWING and log.stop != read):
        raise Unavailable(
            f"{log.path} ends at {log.stop}, and was read up to {read} before",
            code="input.rewound",
            hint=_REPLACED,
        )


def check_unread(folder: Path, fresh: Sequence[Source]) -> None:
    """Refuse ranges that another run has read, or whose copy it took away, since the plan."""
    known = read_parts(folder) if any(is_log(one) for one in fresh) else {}
    for one in fresh:
        is_gone = one.copy and not (Path(one.copy) / MARK).exists()
        if is_gone or (is_log(one) and find_new(known.get(one.path, []), one) != [one]):
            raise Unavailable(
                f"{one.path} was read by another run in the meantime",
                code="lake.changed",
                hint="run it again: it goes on where that one ended",
            )


def find_new(known: Sequence[Source], log: Source) -> list[Source]:
    """Give the ranges of a log that no known part has; `known` is in order."""
    start = min(log.start, known[-1].stop) if known else log.start
    return list(_missing(known, replace(log, start=start, size=log.stop - start)))


def _missing(known: Sequence[Source], log: Source) -> Iterator[Source]:
    at = log.start
    for one in known:
        if at < (stop := min(one.start, log.stop)):
            yield replace(log, start=at, size=stop - at)
        at = max(at, one.stop)
    if at < log.stop:
        yield replace(log, start=at, size=log.stop - at)
