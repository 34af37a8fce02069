"""`violations`: every schema violation: message, pointer, keyword, value found."""

from __future__ import annotations

from typing import Final

from tallystick.pipeline.arrow import pa
from tallystick.pipeline.table import Batch, Table, are_there

__all__ = ["TABLE"]

_SCHEMA: Final = pa.schema(
    [
        ("source", pa.string()),
        ("position", pa.int64()),
        ("urn", pa.string()),
        ("node", pa.string()),
        ("lang", pa.string()),
        ("at", pa.int64()),
        ("pointer", pa.string()),
        ("keyword", pa.string()),
        ("expected", pa.string()),
        ("found", pa.string()),
        ("message", pa.string()),
    ]
)


def _rows(batch: Batch) -> pa.Table:
    broken = [at for at, one in enumerate(batch.judged) if one.violations]
    if not broken:
        return _SCHEMA.empty_table()
    around = batch.wide.select(_SCHEMA.names[:6]).take(broken).to_pylist()
    rows = [
        {**place, **dict(zip(_SCHEMA.names[6:], violation, strict=True))}
        for place, at in zip(around, broken, strict=True)
        for violation in batch.judged[at].violations
    ]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


TABLE: Final = Table(
    name="violations",
    about="every schema violation: message, URN, pointer, keyword, value found",
    schema=_SCHEMA,
    row_figures={"violations": are_there("source")},
    key=("source", "position", "pointer", "keyword", "message"),
    row_checks={"the rule has a name": are_there("urn", "keyword")},
    unique=False,
    rows=_rows,
)
