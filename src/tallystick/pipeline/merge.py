"""Join small parts of a log into larger ones, so that a long stream does not leave many files.

When `FEW` adjacent parts are each smaller than `MOST` bytes, they become one part of the whole
range. It is finished before the small parts are deleted; a small part that is left after a kill
lies inside it and no longer counts (`ranges.read_parts`). Published tables keep their own links.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tallystick.pipeline.arrow import pq
from tallystick.pipeline.ingest import Receipt, part_tables
from tallystick.pipeline.parts import read_part
from tallystick.pipeline.sources import GROWING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tallystick.pipeline.sources import Source

__all__ = ["find_merges", "join_parts"]

FEW: Final = 32
MOST: Final = 64 << 20


def find_merges(parts: Sequence[Source]) -> list[list[Source]]:
    """Give the parts of one log, in order, that are to be joined."""
    groups: list[list[Source]] = [[]]
    for one in parts:
        held = groups[-1]
        full = sum(part.weight for part in held) >= MOST
        if held and (full or held[-1].stop != one.start):
            groups.append([])
        if one.weight < MOST and one.form in GROWING:
            groups[-1].append(one)
        else:
            groups.append([])
    return [group for group in groups if len(group) >= FEW]


def join_parts(folder: Path, parts: Sequence[Source]) -> tuple[Source, Receipt]:
    """Write the tables of some parts as those of one; give its source and its rows."""
    start = parts[0].start
    whole = replace(parts[-1], start=start, size=parts[-1].stop - start)
    place = folder / whole.key
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    rows = {}
    for name in part_tables():
        pattern = f"{name}-*.parquet"  # what a killed task has begun has another ending
        files = [file for one in parts for file in sorted((folder / one.key).glob(pattern))]
        if files:
            rows[name] = _join_files(place / f"{name}-00000.parquet", files)
    figures: Counter[str] = Counter()
    for one in parts:
        if (known := read_part(folder / one.key)) is not None:
            figures.update(known.figures)
    return whole, Receipt(whole.key, 0, rows, dict(figures))


def _join_files(place: Path, files: Sequence[Path]) -> int:
    rows = 0
    with pq.ParquetWriter(place, pq.read_schema(files[0]), compression="zstd") as writer:
        for file in files:
            for batch in pq.ParquetFile(file).iter_batches():
                writer.write_batch(batch)
                rows += batch.num_rows
    return rows
