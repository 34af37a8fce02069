"""A `Table` is one output of the pipeline, declared in one file under `tables/`.

A table of *rows* is written where the records are read: `rows` takes the judged batch and gives
Arrow columns, and Spark only schedules it. A *built* table is made later: `build` gets the frames
of its `inputs` by name and gives a frame. `partial` is the schema of the counts that each batch
contributes to a built table.

`figures` are counts over the table, by name: they make the summary of the run. A check is a
condition that must be true for every row. If it is false for a row, the run fails, and the tables
of the last successful run stay. Both are SQL for a built table and a `Mask` for a table of rows:
each is evaluated where the table is written. The key is unique if `unique` is set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.capture_columns import arrow_schema
from tallystick.pipeline.arrow import pa, pc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

from tallystick.pipeline.judge import Judged

__all__ = [
    "CAPTURE", "ORIGIN", "PLACE", "Batch", "Counts", "Frames", "Mask", "Table", "are_there",
    "capture_fields", "count_rows", "counted", "is_one_of",
]  # fmt: skip

CAPTURE: Final = arrow_schema(pa)
"""The columns of a capture."""


def capture_fields(*names: str) -> list[pa.Field]:
    """Give some columns of a capture."""
    return [CAPTURE.field(name) for name in names]


PLACE: Final = (pa.field("source", pa.string()), pa.field("position", pa.int64()))
"""The source of a record, and its position there."""
ORIGIN: Final = (*PLACE, *capture_fields("direction", "broker", "queue", "node", "at"))
"""Where a record stood and was seen: the first columns of every table of records."""

Counts = dict[tuple[Any, ...], int]
"""How often each row of a partial table was seen in one part."""
Mask = Callable[[pa.Table], pa.ChunkedArray]
"""Tells of every row whether something is so."""


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
    """The input of a built table: frames by name, registered paths, figures so far."""

    session: SparkSession
    tables: Mapping[str, DataFrame]
    registered: tuple[tuple[str, str], ...] = ()
    figures: Mapping[str, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> DataFrame:
        return self.tables[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One output: name, description, columns, origin and checks."""

    name: str
    about: str
    schema: pa.Schema
    key: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    figures: Mapping[str, str] = field(default_factory=dict)
    row_checks: Mapping[str, Mask] = field(default_factory=dict)
    row_figures: Mapping[str, Mask] = field(default_factory=dict)
    unique: bool = True
    rows: Callable[[Batch], pa.Table] | None = None
    partial: pa.Schema | None = None
    count: Callable[[Batch, Counts], None] | None = None
    build: Callable[[Frames], DataFrame] | None = None


def is_one_of(column: str, *values: str | None) -> Mask:
    """Return the mask of rows whose column has one of some values."""
    wanted = pa.array(values, pa.string())
    return lambda table: pc.is_in(table[column], wanted)


def are_there(*columns: str) -> Mask:
    """Give the mask of rows in which no one of some columns is null."""
    return lambda table: reduce(pc.and_, (pc.is_valid(table[one]) for one in columns))


def count_rows(table: pa.Table, mask: Mask) -> int:
    """Count the rows for which a mask is true; null is not."""
    return pc.sum(mask(table)).as_py() or 0


def counted(schema: pa.Schema, counts: Counts) -> pa.Table:
    """Write counts as rows: the key's columns, then how often."""
    columns = list(zip(*((*key, times) for key, times in counts.items()), strict=True))
    arrays = [
        pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)
    ] if counts else [pa.array([], field.type) for field in schema]  # fmt: skip
    return pa.table(arrays, schema=schema)
