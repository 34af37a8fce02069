"""Build, check and write the tables that are made after reading.

Checks are counted while a table is written, so they need no extra pass. A table with a unique key
is small: it is written as one file, sorted by its key.
"""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from tallystick.core.errors import Unavailable
from tallystick.pipeline.arrow import pq
from tallystick.pipeline.table import Frames, Table
from tallystick.pipeline.tables import TABLES
from tallystick.schemas.catalog import Catalog, self_contained
from tallystick.schemas.pii import fields_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["broken_check", "build_tables", "read_files", "registered_paths"]


def build_tables(
    session: SparkSession,
    catalog: Catalog,
    parts: Mapping[str, DataFrame],
    folder: Path,
    counted: Mapping[str, int],
    tell: Callable[[str, float], None],
) -> dict[str, float]:
    """Add the built tables to the tables of rows in a run's folder; give the seconds of each.

    `counted` are the figures of the tables of rows.
    """
    frames = dict(parts)
    seconds = {}
    figures = dict(counted)
    registered = registered_paths(catalog)
    for table in TABLES.values():
        if table.build is None:
            frames[table.name] = _read(session, table, folder)
    built = [table for table in TABLES.values() if table.build is not None]
    for number, table in enumerate(built):
        begun = monotonic()
        tell(table.name, number / len(built))
        frame = table.build(Frames(session, frames, registered, figures))  # type: ignore[misc]
        figures |= _write(table, frame, folder / table.name)
        frames[table.name] = _read(session, table, folder)
        seconds[table.name] = round(monotonic() - begun, 3)
    return seconds


def _read(session: SparkSession, table: Table, folder: Path) -> DataFrame:
    files = sorted((folder / table.name).glob("*.parquet"))
    return read_files(session, table.schema, [str(one) for one in files])


def read_files(session: SparkSession, schema: Any, files: list[str]) -> DataFrame:
    """Read Parquet files of one schema; without files there are no rows."""
    kind = _spark_schema(schema)
    if not files:
        return session.createDataFrame([], kind)
    return session.read.schema(kind).parquet(*files)


def _spark_schema(schema: Any) -> Any:
    """Give the Spark schema of Arrow columns."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    return from_arrow_schema(schema)


def _counts(table: Table) -> list[Column]:
    """Give the counts of rows for which a check is not true, then the figures."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    broken = [F.count_if(~F.coalesce(F.expr(check), F.lit(False))) for check in table.checks]
    figures = [F.coalesce(F.expr(one), F.lit(0)) for one in table.figures.values()]
    return [one.cast("long").alias(f"c{at}") for at, one in enumerate([*broken, *figures])]


def broken_check(check: str, rows: int) -> Unavailable:
    """Give the error of a check that some rows break."""
    return Unavailable(
        f"{check}: false in {rows} rows",
        code="check.rows",
        hint="the tables of the last successful run are still in place",
    )


def _judge(table: Table, counts: Sequence[int]) -> dict[str, int]:
    """Fail the run when a check is broken, else give the figures."""
    for check, broken in zip(table.checks, counts, strict=False):
        if broken:
            raise broken_check(f"{table.name}: {check}", broken)
    return dict(zip(table.figures, counts[len(table.checks) :], strict=True))


def _write(table: Table, frame: DataFrame, place: Path) -> dict[str, int]:
    """Write a built table, its checks and figures counted on the way; give the figures."""
    from pyspark.sql import Observation  # noqa: PLC0415
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    wanted = _spark_schema(table.schema)
    columns = [F.col(one.name).cast(one.dataType).alias(one.name) for one in wanted]
    observed = Observation(table.name)
    ready = frame.select(*columns).observe(observed, *_counts(table))
    if table.unique:
        ready = ready.coalesce(1).sortWithinPartitions(*table.key)
    ready.write.mode("overwrite").parquet(str(place))
    if table.unique:
        _check_unique(table, place)
    found = observed.get
    return _judge(table, [found[f"c{at}"] for at in range(len(found))])


def _check_unique(table: Table, place: Path) -> None:
    for file in place.glob("*.parquet"):
        keys = pq.read_table(file, columns=list(table.key))
        if keys.group_by(list(table.key)).aggregate([]).num_rows != keys.num_rows:
            raise Unavailable(f"{table.name}: a key occurs twice", code="check.key")


def registered_paths(catalog: Catalog) -> tuple[tuple[str, str], ...]:
    """Give every URN (with an empty path) and every plain path that its schema declares."""
    found = {(urn, "") for urn in catalog.entries}
    for urn in catalog.entries:
        for one in fields_of(self_contained(catalog, urn)):
            path = one.path
            if path and not path.endswith("]") and not any(sign in path for sign in "{*"):
                found.add((urn, path))
    return tuple(sorted(found))
