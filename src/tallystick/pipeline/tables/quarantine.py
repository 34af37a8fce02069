"""`quarantine`: every refused record, with stage, reason, pointer and bytes."""

from __future__ import annotations

from typing import Final

from tallystick.pipeline.arrow import pa, pc
from tallystick.pipeline.table import ORIGIN, Batch, Table, are_there, capture_fields, is_one_of

__all__ = ["STAGES", "TABLE"]

STAGES: Final = ("read", "sections", "gate", "decode", "accept", "schema")

_SCHEMA: Final = pa.schema(
    [
        *ORIGIN,
        ("stage", pa.string()),
        ("code", pa.string()),
        ("pointer", pa.string()),
        ("reason", pa.string()),
        ("urn", pa.string()),
        ("id", pa.string()),
        ("trace_id", pa.string()),
        ("lang", pa.string()),
        *capture_fields("sections", "body"),
    ]
)


def _rows(batch: Batch) -> pa.Table:
    wide = batch.wide.select(_SCHEMA.names)
    return wide.filter(pc.equal(batch.wide["verdict"], "refused"))


TABLE: Final = Table(
    name="quarantine",
    about="every refused record: stage, code, pointer, reason, and its bytes",
    schema=_SCHEMA,
    row_figures={f"refused.{one}": is_one_of("stage", one) for one in STAGES},
    key=("source", "position"),
    row_checks={
        "the stage is known": is_one_of("stage", *STAGES),
        "there is a reason": are_there("code", "reason"),
    },
    unique=False,
    rows=_rows,
)
