"""A `Table` is one output of the pipeline, declared in one file under `tables/`.

A table of *rows* is written where the records are read: `rows` takes the judged batch and gives
Arrow columns, and Spark only schedules it. A table that is *built* comes after: `build` gets the
frames of its `inputs` by name and gives a frame. `partial` is the schema of what a table of counts
gathers from each batch before it is built.

`figures` are SQL aggregates over the table, by name: they make the summary of the run. A check is
an SQL condition that holds for every row of the table. A row that breaks one fails the
run, and the tables of the last good run stay as they are. The key is unique where `unique` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tallystick.pipeline.arrow import pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

from tallystick.pipeline.judge import Judged

__all__ = ["ORIGIN", "Batch", "Counts", "Frames", "Table", "counted"]

ORIGIN: Final = (
    ("source", pa.string()),
    ("position", pa.int64()),
    ("direction", pa.string()),
    ("broker", pa.string()),
    ("queue", pa.string()),
    ("node", pa.string()),
    ("at", pa.int64()),
)
"""Where a record stood and was seen: the first columns of every table of records."""

Counts = dict[tuple[Any, ...], int]
"""How often each row of a partial table was seen in one part."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Records that were judged: all their columns as Arrow, and the rows as Python values."""

    wide: pa.Table
    judged: list[Judged]

    def column(self, name: str) -> list[Any]:
        """Give a column as Python values."""
        values: list[Any] = self.wide.column(name).to_pylist()
        return values


@dataclass(frozen=True, slots=True)
class Frames:
    """What a built table is made from: frames by name, registered paths, figures so far."""

    session: SparkSession
    tables: Mapping[str, DataFrame]
    registered: tuple[tuple[str, str], ...] = ()
    figures: Mapping[str, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> DataFrame:
        return self.tables[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One output: its name, what it says, its columns, where it comes from, what must hold."""

    name: str
    about: str
    schema: pa.Schema
    key: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    figures: Mapping[str, str] = field(default_factory=dict)
    unique: bool = True
    rows: Callable[[Batch], pa.Table] | None = None
    partial: pa.Schema | None = None
    count: Callable[[Batch, Counts], None] | None = None
    build: Callable[[Frames], DataFrame] | None = None


def counted(schema: pa.Schema, counts: Counts) -> pa.Table:
    """Write counts as rows: the key's columns, then how often."""
    columns = list(zip(*((*key, times) for key, times in counts.items()), strict=True))
    arrays = [
        pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)
    ] if counts else [pa.array([], field.type) for field in schema]  # fmt: skip
    return pa.table(arrays, schema=schema)
