"""`envelopes`: the messages that were accepted, decoded, their attempts reconciled by broker."""

from __future__ import annotations

from typing import Final

from tallystick.pipeline.arrow import pa, pc
from tallystick.pipeline.table import ORIGIN, Batch, Table

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
    checks=(
        "urn is not null and trace_id is not null and schema_version = 1",
        "verdict in ('valid', 'unknown')",
        "attempts is not null",
    ),
    unique=False,
    rows=_rows,
)
