"""Build the tables that come after reading, check every table, and write what was built.

Checks are counted while a table is written, so they cost no pass of their own. A table whose key is
proven unique is small: it is written as one file, sorted by its key.
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
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["build_tables", "read_files", "registered_paths"]


def build_tables(
    session: SparkSession,
    catalog: Catalog,
    parts: Mapping[str, DataFrame],
    folder: Path,
    tell: Callable[[str, float], None],
) -> dict[str, float]:
    """Check the tables of rows in a run's folder and add the built ones; give the seconds each."""
    frames = dict(parts)
    seconds = {}
    registered = registered_paths(catalog)
    for table in TABLES.values():
        if table.build is None:
            frames[table.name] = _read(session, table, folder)
    _check_rows(frames)
    built = [table for table in TABLES.values() if table.build is not None]
    for number, table in enumerate(built):
        begun = monotonic()
        tell(table.name, number / len(built))
        frame = table.build(Frames(session, frames, registered))  # type: ignore[misc]
        _write(table, frame, folder / table.name)
        frames[table.name] = _read(session, table, folder)
        seconds[table.name] = round(monotonic() - begun, 3)
    return seconds


def _read(session: SparkSession, table: Table, folder: Path) -> DataFrame:
    files = sorted((folder / table.name).glob("*.parquet"))
    return read_files(session, table.schema, [str(one) for one in files])


def read_files(session: SparkSession, schema: Any, files: list[str]) -> DataFrame:
    """Read Parquet files of one schema; no files are no rows."""
    kind = _spark_schema(schema)
    if not files:
        return session.createDataFrame([], kind)
    return session.read.schema(kind).parquet(*files)


def _spark_schema(schema: Any) -> Any:
    """Give the Spark schema of Arrow columns."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    return from_arrow_schema(schema)


def _check_rows(frames: Mapping[str, DataFrame]) -> None:
    """Count the rows of the tables of rows that break a check, all in one query."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    tables = [table for table in TABLES.values() if table.build is None]
    counts = [
        frames[table.name].agg(F.array(*_broken(table)).alias("broken")).select(
            F.lit(table.name).alias("name"), "broken"
        )
        for table in tables
    ]  # fmt: skip
    query = counts[0]
    for more in counts[1:]:
        query = query.unionAll(more)
    for row in query.collect():
        _judge_checks(
            TABLES[row["name"]], {f"c{at}": count for at, count in enumerate(row["broken"])}
        )


def _broken(table: Table) -> list[Column]:
    """Give the counts of rows for which a check is not true."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    return [
        F.count_if(~F.coalesce(F.expr(check), F.lit(False))).alias(f"c{at}")
        for at, check in enumerate(table.checks)
    ]


def _judge_checks(table: Table, found: Mapping[str, Any]) -> None:
    for at, check in enumerate(table.checks):
        if found.get(f"c{at}"):
            raise Unavailable(
                f"{table.name}: {found[f'c{at}']} rows break the check `{check}`",
                code="check.rows",
                hint="the tables of the last good run are still in place",
            )


def _write(table: Table, frame: DataFrame, place: Path) -> None:
    """Write a built table, its checks counted on the way; the key of a small one must be unique."""
    from pyspark.sql import Observation  # noqa: PLC0415
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    wanted = _spark_schema(table.schema)
    columns = [F.col(one.name).cast(one.dataType).alias(one.name) for one in wanted]
    observed = Observation(table.name)
    ready = frame.select(*columns).observe(observed, *_broken(table))
    if table.unique:
        ready = ready.coalesce(1).sortWithinPartitions(*table.key)
    ready.write.mode("overwrite").parquet(str(place))
    _judge_checks(table, observed.get)
    if table.unique:
        _check_unique(table, place)


def _check_unique(table: Table, place: Path) -> None:
    for file in place.glob("*.parquet"):
        keys = pq.read_table(file, columns=list(table.key))
        if keys.group_by(list(table.key)).aggregate([]).num_rows != keys.num_rows:
            raise Unavailable(f"{table.name}: a key stands twice", code="check.key")


def registered_paths(catalog: Catalog) -> tuple[tuple[str, str], ...]:
    """Give every URN (with an empty path) and every plain path that its schema declares."""
    found = {(urn, "") for urn in catalog.entries}
    for urn in catalog.entries:
        for one in fields_of(self_contained(catalog, urn)):
            path = one.path
            if path and not path.endswith("]") and not any(sign in path for sign in "{*"):
                found.add((urn, path))
    return tuple(sorted(found))
