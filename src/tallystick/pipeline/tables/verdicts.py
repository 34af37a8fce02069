"""`verdicts`: every verdict of the journals among the inputs."""

from __future__ import annotations

from typing import Final

from tallystick.pipeline.arrow import pa
from tallystick.pipeline.table import Table, are_there, is_one_of

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
    row_figures={"verdicts": are_there("source")},
    key=("source", "run", "subject", "case"),
    row_checks={
        "the outcome is known": is_one_of("outcome", "passed", "failed", "errored", "unsupported")
    },
    unique=False,
)
