"""`masked`: a copy that may be shared; values not proven harmless are masked (`schemas.mask`).

Only decoded messages are included: nothing can be proven about a body that cannot be decoded.
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
    about="every decoded message with personal data masked: safe to share",
    schema=_SCHEMA,
    key=("source", "position"),
    row_checks={"there is a masked body": are_there("masked", "urn")},
    unique=False,
    rows=_rows,
)
