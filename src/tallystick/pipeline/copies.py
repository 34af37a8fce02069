"""Judge a log again under another registry, from the bytes in the lake, not from the broker.

A broker deletes old records, and a streamed file may be gone; `messages` of a part has every byte
that was read. So the parts of a log under older rules are sources for the new rules, with the same
ranges, and only newer records are read from the log itself.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tallystick.pipeline.arrow import pq
from tallystick.pipeline.capture import Record
from tallystick.pipeline.ranges import read_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tallystick.pipeline.lake import Lake
    from tallystick.pipeline.sources import Source, Split

__all__ = ["find_copies", "join_copies", "read_copy"]

_BATCH: Final = 8192
_COLUMNS: Final = [*Record._fields[:-2]]


def find_copies(lake: Lake, rules: str) -> dict[str, list[Source]]:
    """Give the parts of logs under the older rules that went furthest, by path, in order."""
    found: dict[str, list[Source]] = {}
    for older in sorted((lake.root / "parts").glob("*")):
        if older.name == rules:
            continue
        for path, parts in read_parts(older).items():
            if parts[-1].form == "journal":
                continue  # it has no messages; the file itself is read again
            if path not in found or found[path][-1].stop < parts[-1].stop:
                found[path] = [replace(one, copy=str(older / one.key)) for one in parts]
    return found


def join_copies(known: Sequence[Source], copies: Sequence[Source]) -> list[Source]:
    """Give the known parts of a log and the copies that none of them overlaps, in order."""
    apart = [
        copy
        for copy in copies
        if all(copy.stop <= one.start or one.stop <= copy.start for one in known)
    ]
    return sorted([*known, *apart], key=lambda one: one.start)


def read_copy(split: Split) -> Iterator[Record]:
    """Give the records of one file of a part as they were when they were read."""
    files = sorted(Path(split.source.copy).glob("messages-*.parquet"))
    for file in files[split.start : split.stop]:
        faults = _read_faults(file.with_name(file.name.replace("messages", "quarantine")))
        for batch in pq.ParquetFile(file).iter_batches(_BATCH, columns=_COLUMNS):
            rows = zip(*(batch.column(name).to_pylist() for name in _COLUMNS), strict=True)
            for row in rows:
                yield Record._make((*row, *faults.get(row[1], (None, None))))


def _read_faults(file: Path) -> dict[int, tuple[str, str]]:
    """Return the unreadable records by position: their bytes do not give the reason."""
    if not file.exists():
        return {}
    rows = pq.read_table(
        file, columns=["position", "code", "reason"], filters=[("stage", "=", "read")]
    ).to_pylist()
    return {row["position"]: (row["code"], row["reason"]) for row in rows}
