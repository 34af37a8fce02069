"""Find which ranges of a log the lake has and which are new: no record is read twice or skipped.

A part of a log is a range of positions. The parts in the lake are the only record of how far a log
was read, so the next run or stream continues after them. A log that is shorter than the part
already read, or that has another identity, is a different log under the same name, which is an
error.
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

_REPLACED: Final = "the input was replaced; give it another name, or use another --out"


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
    """Refuse a different log under the name of one already read, or a changed whole file."""
    read = known[-1].stop if known else 0
    if known and log.identity and known[-1].identity not in ("", log.identity):
        raise Unavailable(
            f"{log.path} was created again after it was read up to {read}",
            code="input.replaced",
            hint=_REPLACED,
        )
    if log.stop < read or (read and log.form not in GROWING and log.stop != read):
        raise Unavailable(
            f"{log.path} ends at {log.stop}, but was already read up to {read}",
            code="input.rewound",
            hint=_REPLACED,
        )


def check_unread(folder: Path, fresh: Sequence[Source]) -> None:
    """Refuse ranges that another run has read, or whose copy it deleted, since the plan."""
    known = read_parts(folder) if any(is_log(one) for one in fresh) else {}
    for one in fresh:
        is_gone = one.copy and not (Path(one.copy) / MARK).exists()
        if is_gone or (is_log(one) and find_new(known.get(one.path, []), one) != [one]):
            raise Unavailable(
                f"{one.path} was read by another run in the meantime",
                code="lake.changed",
                hint="run the command again: it continues where that run ended",
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
