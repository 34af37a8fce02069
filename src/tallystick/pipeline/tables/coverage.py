"""`coverage`: URNs and fields that were seen but not registered, or registered but never seen.

`path` is empty for the URN itself. The number of messages of a registered field is not counted (the
fast path does not look at each field): `seen` means that it was there at least once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tallystick.pipeline.arrow import pa
from tallystick.pipeline.table import Batch, Counts, Frames, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TABLE"]

_PARTIAL: Final = pa.schema([("urn", pa.string()), ("path", pa.string()), ("messages", pa.int64())])
_SCHEMA: Final = pa.schema(
    [
        ("urn", pa.string()),
        ("path", pa.string()),
        ("registered", pa.bool_()),
        ("seen", pa.bool_()),
        ("messages", pa.int64()),
    ]
)


def _count(batch: Batch, counts: Counts) -> None:
    for one in batch.judged:
        if one.urn is None:
            continue
        urn = (one.urn, "")
        counts[urn] = counts.get(urn, 0) + 1
        if one.undeclared:
            for path in one.undeclared:
                counts[(one.urn, path)] = counts.get((one.urn, path), 0) + 1


def _build(frames: Frames) -> DataFrame:
    frames["coverage"].createOrReplaceTempView("coverage_parts")
    frames["declared"].createOrReplaceTempView("declared_parts")
    registered = frames.session.createDataFrame(list(frames.registered), "urn string, path string")
    registered.createOrReplaceTempView("registered_paths")
    return frames.session.sql(
        """
        with seen as (
            select urn, path, sum(messages) as messages from coverage_parts group by urn, path
            union all
            select distinct urn, path, cast(null as bigint) from declared_parts
        )
        select coalesce(s.urn, r.urn) as urn, coalesce(s.path, r.path) as path,
               r.urn is not null as registered, s.urn is not null as seen, s.messages
        from seen s full outer join registered_paths r on s.urn = r.urn and s.path = r.path
        """
    )


TABLE: Final = Table(
    name="coverage",
    about="URNs and fields seen but not registered, and registered but never seen",
    schema=_SCHEMA,
    figures={
        "unregistered": "count_if(not registered)",
        "never_seen": "count_if(not seen)",
    },
    key=("urn", "path"),
    inputs=("coverage", "declared"),
    checks=("registered or seen",),
    partial=_PARTIAL,
    count=_count,
    build=_build,
)
