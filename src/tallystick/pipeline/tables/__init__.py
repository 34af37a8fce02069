"""Every table of the pipeline, in the order of creation: one file and one row each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tallystick.core.errors import UsageError
from tallystick.pipeline.tables import (
    coverage,
    deliveries,
    drift,
    envelopes,
    exposure,
    flaky_circuits,
    flows,
    latency,
    masked,
    messages,
    quarantine,
    summary,
    verdicts,
    violations,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tallystick.pipeline.table import Table

__all__ = ["FIGURES", "TABLES", "find_table"]

TABLES: Final[Mapping[str, Table]] = {
    module.TABLE.name: module.TABLE
    for module in (
        messages, envelopes, quarantine, violations, masked, verdicts,
        coverage, drift, exposure, deliveries, latency, flows, flaky_circuits, summary,
    )
}  # fmt: skip

FIGURES: Final = tuple(
    name for table in TABLES.values() for name in (*table.figures, *table.row_figures)
)
"""The names of all figures of a run."""


def find_table(name: str) -> Table:
    """Give a table by name, or say which there are."""
    if name not in TABLES:
        raise UsageError(
            f"unknown table {name!r}", code="table", hint=f"use one of {', '.join(TABLES)}"
        )
    return TABLES[name]
