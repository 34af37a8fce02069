"""`masked`: a copy that may be shared. What cannot be proven harmless is masked (`schemas.mask`).

Only what could be decoded is here: of a body that nobody can read, nothing can be proven.
"""

from __future__ import annotations

from typing import Final

from tallystick.pipeline.arrow import pa, pc
from tallystick.pipeline.table import Batch, Table, are_there

__all__ = ["TABLE"]

_SCHEMA: Final = pa.schema(
    [
        ("source", pa.string()),
        ("position", pa.int64()),
        ("urn", pa.string()),
        ("verdict", pa.string()),
        ("masked", pa.binary()),
    ]
)


def _rows(batch: Batch) -> pa.Table:
    wide = batch.wide.select(_SCHEMA.names)
    return wide.filter(pc.is_valid(wide["masked"]))


TABLE: Final = Table(
    name="masked",
    about="a copy safe to share: every decoded message, personal data masked",
    schema=_SCHEMA,
    key=("source", "position"),
    row_checks={"there is something to share": are_there("masked", "urn")},
    unique=False,
    rows=_rows,
)
