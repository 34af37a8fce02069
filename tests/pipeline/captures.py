"""Write records as captures: lines by the package's own writer, and Parquet files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from tallystick.core.capture import Capture, read_sections, write
from tallystick.core.capture_columns import AROUND, COLUMNS
from tallystick.core.frame import Frame
from tallystick.pipeline.capture import Record


def write_line(record: Record) -> bytes:
    """Write a record as its line, without the line break; what it does not say is left out."""
    around: dict[str, Any] = {name: getattr(record, name) for name in AROUND}
    return write(
        Capture(frame=Frame(record.body, read_sections(record.sections or "{}")), **around)
    )


def write_parquet(place: Path, records: Iterable[Record], **options: Any) -> None:
    """Write records as one Parquet capture; the options are those of Arrow's writer."""
    rows = [{name: getattr(record, name) for name in COLUMNS} for record in records]
    pq.write_table(pa.Table.from_pylist(rows), place, **options)
