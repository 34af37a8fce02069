"""Show rows of a table to a person: bytes as text if they are text, else as base64."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

from tallystick.pipeline.arrow import pq
from tallystick.pipeline.lake import table_files
from tallystick.pipeline.tables import find_table

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_rows"]


def read_rows(lake: Path, name: str, limit: int) -> list[dict[str, Any]]:
    """Give the first rows of a table in the last good run."""
    find_table(name)
    rows: list[dict[str, Any]] = []
    for file in table_files(lake, name):
        if len(rows) >= limit:
            break
        for batch in pq.ParquetFile(file).iter_batches(batch_size=max(1, limit - len(rows))):
            rows.extend(batch.to_pylist())
            if len(rows) >= limit:
                break
    return [{key: _plain(value) for key, value in row.items()} for row in rows[:limit]]


def _plain(value: Any) -> Any:
    if not isinstance(value, bytes):
        return value
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return b64encode(value).decode()
    return text if text.isprintable() else b64encode(value).decode()
