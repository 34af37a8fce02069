"""`messages`: every record read, with its bytes, source and position. No record is left out."""

from __future__ import annotations

from typing import Final

from tallystick.core.capture_columns import DIRECTIONS
from tallystick.pipeline.arrow import pa
from tallystick.pipeline.table import ORIGIN, Batch, Table, are_there, capture_fields, is_one_of

__all__ = ["TABLE"]

VERDICTS: Final = ("valid", "unknown", "refused")

_SCHEMA: Final = pa.schema(
    [
        *ORIGIN,
        *capture_fields("clock_error", "sequence"),
        ("verdict", pa.string()),
        ("urn", pa.string()),
        ("attempts", pa.int64()),
        ("hash", pa.binary(32)),
        ("key_high", pa.int64()),
        ("key_low", pa.int64()),
        ("content", pa.int64()),
        *capture_fields("sections", "body"),
    ]
)


def _rows(batch: Batch) -> pa.Table:
    return batch.wide.select(_SCHEMA.names)


TABLE: Final = Table(
    name="messages",
    about="every record read: raw bytes, native sections, source and position, hash",
    schema=_SCHEMA,
    row_figures={"messages": are_there("verdict")}
    | {one: is_one_of("verdict", one) for one in VERDICTS},
    key=("source", "position"),
    row_checks={
        "source and position are present": are_there("source", "position"),
        "the verdict is known": is_one_of("verdict", *VERDICTS),
        "the direction is known": is_one_of("direction", *DIRECTIONS, None),
    },
    unique=False,  # a position in a file is unique by reading; proving it costs a shuffle
    rows=_rows,
)
