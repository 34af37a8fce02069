"""Copy tables of a lake to a store as Delta tables, so that others can read them.

`masked` is the table to share: personal data is masked in it. The other tables hold bodies or names
in clear. The same tables of the same run are not copied twice. Versions of older exports stay
readable until `keep` later ones have been published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tallystick.core.errors import UsageError
from tallystick.pipeline.arrow import pa, pq
from tallystick.pipeline.delta import Published, Store, publish, read_published, vacuum
from tallystick.pipeline.lake import read_manifest, table_files
from tallystick.pipeline.tables import find_table

__all__ = ["SHARED", "Exported", "export_tables"]

SHARED: Final = "masked"
"""The table that is safe to share."""
_BATCH: Final = 10_000


@dataclass(frozen=True, slots=True)
class Exported:
    """One export: the published run, the rows of each table, and whether it was there before."""

    run: Published
    rows: dict[str, int]
    skipped: bool


def export_tables(
    lake: Path, store: Store, names: Sequence[str], *, now: str, keep: int
) -> Exported:
    """Copy tables of the last good run to a store and publish them together."""
    if len(set(names)) != len(names):
        raise UsageError("a table is named twice", code="table", hint="name each table once")
    if lake.resolve() in (Path(store.root).resolve(), *Path(store.root).resolve().parents):
        raise UsageError(f"{store.root} is inside the lake", code="store",
                         hint="name a folder outside the lake")  # fmt: skip
    manifest = read_manifest(lake)
    schemas = {name: find_table(name).schema for name in names}
    rows = {name: manifest["tables"][name]["rows"] for name in names}
    key = f"{manifest['key']}/{manifest['started']}"
    published = read_published(store)
    if published and published[0].key == key and set(names) <= set(published[0].versions):
        return Exported(published[0], rows, skipped=True)
    readers = {name: _read(table_files(lake, name), schema) for name, schema in schemas.items()}
    run = publish(store, readers, key=key, now=now)
    vacuum(store, [run, *published][:keep])
    return Exported(run, rows, skipped=False)


def _read(files: Sequence[Path], schema: pa.Schema) -> pa.RecordBatchReader:
    """Read Parquet files batch by batch, so that memory does not grow with the table."""
    batches = (
        batch.cast(schema) for file in files for batch in pq.ParquetFile(file).iter_batches(_BATCH)
    )
    return pa.RecordBatchReader.from_batches(schema, batches)
