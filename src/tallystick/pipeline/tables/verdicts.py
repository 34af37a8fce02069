"""`verdicts`: every verdict of the journals among the inputs."""

from __future__ import annotations

from typing import Final

from tallystick.pipeline.arrow import pa
from tallystick.pipeline.table import Table

__all__ = ["TABLE"]

_SCHEMA: Final = pa.schema(
    [
        ("source", pa.string()),
        ("run", pa.string()),
        ("time", pa.string()),
        ("suite", pa.string()),
        ("subject", pa.string()),
        ("case", pa.string()),
        ("outcome", pa.string()),
        ("counts_as", pa.string()),
        ("milliseconds", pa.float64()),
        ("reason", pa.string()),
        ("complete", pa.bool_()),
    ]
)

TABLE: Final = Table(
    name="verdicts",
    about="every verdict of the journals among the inputs",
    schema=_SCHEMA,
    figures={"verdicts": "count(*)"},
    key=("source", "run", "subject", "case"),
    checks=("outcome in ('passed', 'failed', 'errored', 'unsupported')",),
    unique=False,
)
