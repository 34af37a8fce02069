"""`drift`: bytes that are not canonical and native fields that contradict the body, by program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tallystick.pipeline.arrow import pa
from tallystick.pipeline.table import Batch, Counts, Frames, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TABLE"]

_SCHEMA: Final = pa.schema(
    [
        ("lang", pa.string()),
        ("node", pa.string()),
        ("broker", pa.string()),
        ("urn", pa.string()),
        ("kind", pa.string()),
        ("place", pa.string()),
        ("messages", pa.int64()),
    ]
)


def _count(batch: Batch, counts: Counts) -> None:
    drifting = [at for at, one in enumerate(batch.judged) if one.drifts]
    if not drifting:
        return
    around = batch.wide.select(["node", "broker"]).take(drifting).to_pylist()
    for place, at in zip(around, drifting, strict=True):
        one = batch.judged[at]
        for kind, pointer in one.drifts:
            key = (one.lang, place["node"], place["broker"], one.urn, kind, pointer)
            counts[key] = counts.get(key, 0) + 1


def _build(frames: Frames) -> DataFrame:
    names = _SCHEMA.names[:-1]
    grouped = frames["drift"].groupBy(*names).agg({"messages": "sum"})
    return grouped.withColumnRenamed("sum(messages)", "messages").select(*_SCHEMA.names)


TABLE: Final = Table(
    name="drift",
    about="bytes that are not canonical, and native fields that differ from the body, by language "
    "and program",
    schema=_SCHEMA,
    figures={"drifting": "sum(messages)"},
    key=("lang", "node", "broker", "urn", "kind", "place"),
    inputs=("drift",),
    checks=("messages > 0", "kind is not null"),
    partial=_SCHEMA,
    count=_count,
    build=_build,
)
