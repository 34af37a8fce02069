"""`summary`: one row per figure of a run, for people and for `--fail-if`.

The figures are declared by the tables and counted while the tables are written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tallystick.pipeline.arrow import pa
from tallystick.pipeline.table import Frames, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TABLE"]

_SCHEMA: Final = pa.schema([("figure", pa.string()), ("value", pa.int64())])


def _build(frames: Frames) -> DataFrame:
    return frames.session.createDataFrame(
        list(frames.figures.items()), "figure string, value bigint"
    )


TABLE: Final = Table(
    name="summary",
    about="one row for each figure of the run",
    schema=_SCHEMA,
    key=("figure",),
    checks=("figure is not null and value >= 0",),
    build=_build,
)
