"""`envelopes`: the accepted messages, decoded, with attempts reconciled by broker."""

from __future__ import annotations

from typing import Final

from tallystick.pipeline.arrow import pa, pc
from tallystick.pipeline.table import ORIGIN, Batch, Table, are_there, is_one_of

__all__ = ["TABLE"]

_SCHEMA: Final = pa.schema(
    [
        *ORIGIN,
        ("urn", pa.string()),
        ("id", pa.string()),
        ("trace_id", pa.string()),
        ("lang", pa.string()),
        ("meta_queue", pa.string()),
        ("schema_version", pa.int64()),
        ("created_at", pa.int64()),
        ("body_attempts", pa.int64()),
        ("attempts", pa.int64()),
        ("dead_reason", pa.string()),
        ("canonical", pa.bool_()),
        ("verdict", pa.string()),
        ("data", pa.string()),
    ]
)


def _rows(batch: Batch) -> pa.Table:
    wide = batch.wide.select(_SCHEMA.names)
    return wide.filter(pc.not_equal(batch.wide["verdict"], "refused"))


TABLE: Final = Table(
    name="envelopes",
    about="accepted messages, decoded; attempts reconciled by broker; `unknown`: no schema",
    schema=_SCHEMA,
    key=("source", "position"),
    row_checks={
        "the required fields of an envelope are present": are_there("urn", "trace_id", "attempts"),
        "the version is 1": lambda table: pc.equal(table["schema_version"], 1),
        "it was not refused": is_one_of("verdict", "valid", "unknown"),
    },
    unique=False,
    rows=_rows,
)
