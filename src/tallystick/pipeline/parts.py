"""A part: the tables of one source under one set of rules; it is complete when `part.json` exists.

`part.json` names the source, the number of rows of each table, and the figures of those rows.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from tallystick.core.errors import Unavailable
from tallystick.pipeline.arrow import pq
from tallystick.pipeline.build import broken_check
from tallystick.pipeline.ingest import Receipt, part_tables
from tallystick.pipeline.lake import write_json
from tallystick.pipeline.sources import Source

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["MARK", "Part", "finish_part", "read_part"]

MARK = "part.json"


class Part(NamedTuple):
    """The description of a complete part; the first format did not name the source."""

    source: Source | None
    rows: dict[str, int]
    figures: dict[str, int]


def read_part(folder: Path) -> Part | None:
    """Give the part in a folder, or None when it is unfinished."""
    try:
        told = json.loads((folder / MARK).read_bytes())
    except FileNotFoundError:
        return None
    rows, figures = told.pop("rows"), told.pop("figures", {})
    return Part(Source(**told) if "path" in told else None, rows, figures)


def finish_part(folder: Path, source: Source, receipts: Sequence[Receipt]) -> None:
    """Check the part of one source and mark it as whole: nothing lost, nothing doubled."""
    rows = {name: sum(one.rows.get(name, 0) for one in receipts) for name in part_tables()}
    if rows["messages"] != rows["envelopes"] + rows["quarantine"]:
        raise Unavailable(
            f"{source.path}: {rows['messages']} messages, but {rows['envelopes']} envelopes and "
            f"{rows['quarantine']} in quarantine",
            code="check.nothing_lost",
        )
    figures: Counter[str] = Counter()
    for one in receipts:
        for check, broken in one.broken.items():
            raise broken_check(check, broken)
        figures.update(one.figures)
    for name, count in rows.items():
        written = sum(pq.read_metadata(file).num_rows for file in folder.glob(f"{name}-*.parquet"))
        if written != count:
            raise Unavailable(
                f"{source.path}: {count} rows of {name} were produced, but {written} are on disk",
                code="check.written",
            )
    write_json(folder / MARK, {**source.as_json(), "rows": rows, "figures": figures})
