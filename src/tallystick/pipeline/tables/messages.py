"""`messages`: every record that entered, with its bytes and where it stood. Nothing is left out."""

from __future__ import annotations

from typing import Final

from tallystick.pipeline.arrow import pa
from tallystick.pipeline.table import ORIGIN, Batch, Table

__all__ = ["TABLE"]

_SCHEMA: Final = pa.schema(
    [
        *ORIGIN,
        ("clock_error", pa.int64()),
        ("sequence", pa.int64()),
        ("verdict", pa.string()),
        ("urn", pa.string()),
        ("attempts", pa.int64()),
        ("hash", pa.binary(32)),
        ("key_high", pa.int64()),
        ("key_low", pa.int64()),
        ("content", pa.int64()),
        ("sections", pa.string()),
        ("body", pa.binary()),
    ]
)


def _rows(batch: Batch) -> pa.Table:
    return batch.wide.select(_SCHEMA.names)


TABLE: Final = Table(
    name="messages",
    about="every record that entered: raw bytes, native sections, where it stood, its hash",
    schema=_SCHEMA,
    figures={
        "messages": "count(*)",
        "valid": "count_if(verdict = 'valid')",
        "unknown": "count_if(verdict = 'unknown')",
        "refused": "count_if(verdict = 'refused')",
    },
    key=("source", "position"),
    checks=(
        "source is not null and position >= 0",
        "verdict in ('valid', 'unknown', 'refused')",
        "direction is null or direction in ('sent', 'received', 'tapped')",
    ),
    unique=False,  # a position in a file is unique by reading; proving it costs a shuffle
    rows=_rows,
)
