"""Finish a capture file: turn `NAME.jsonl.part` into the requested format.

    jsonl      NAME.jsonl       renamed
    jsonl.gz   NAME.jsonl.gz    compressed
    parquet    NAME.parquet     converted, in batches of bounded size

If the writer was killed, the last line of a part may be incomplete; it is cut off. The part is
deleted after the new file is complete under its final name. So a crash at any time loses nothing,
and finishing again gives the same file. The writer of a part holds a lock on it.
"""

from __future__ import annotations

import fcntl
import gzip
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from tallystick.core.capture import read_row
from tallystick.core.capture_columns import CaptureRow, arrow_schema
from tallystick.core.errors import UsageError
from tallystick.core.extras import check_extra

__all__ = ["FORMS", "PART", "check_form", "finish", "lock_part", "recover"]

PART: Final = ".jsonl.part"
_ROWS: Final = 5_000
_BATCH_BYTES: Final = 16 << 20
_STEP: Final = 1 << 16


def check_form(form: str) -> None:
    """Refuse an unknown format, or one that cannot be written on this machine."""
    if form not in FORMS:
        hint = f"use one of {', '.join(FORMS)}"
        raise UsageError(f"there is no capture format {form!r}", code="capture_form", hint=hint)
    if form == "parquet":
        check_extra("capture")


def finish(part: Path, form: str) -> Path | None:
    """Finish a part that has no writer, and return its file; None if it was empty."""
    _cut(part)
    if not part.stat().st_size:
        part.unlink()
        return None
    target = part.with_name(part.name.removesuffix(PART) + f".{form}")
    if form == "jsonl":
        return part.rename(target)
    building = target.with_name(f"{target.name}.building")
    try:
        FORMS[form](part, building)
        building.rename(target)
    finally:
        building.unlink(missing_ok=True)
    part.unlink()
    return target


def recover(folder: Path) -> Iterator[Path]:
    """Return the parts in a folder whose writers have ended."""
    for part in sorted(folder.glob(f"*{PART}")):
        with suppress(FileNotFoundError), part.open("rb") as held:
            if lock_part(held.fileno()):
                yield part


def lock_part(number: int) -> bool:
    """Take the lock of an open part; say whether it was free."""
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _cut(part: Path) -> None:
    """Cut off the bytes after the last line end."""
    with part.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            start = max(end - _STEP, 0)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                file.truncate(start + found + 1)
                return
            end = start
        file.truncate(0)


def _compress(part: Path, building: Path) -> None:
    with part.open("rb") as lines, gzip.open(building, "wb", compresslevel=5) as packed:
        shutil.copyfileobj(lines, packed, 1 << 20)


def _convert(part: Path, building: Path) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    schema = arrow_schema(pa)
    with (
        part.open("rb") as lines,
        parquet.ParquetWriter(building, schema, compression="zstd") as table,
    ):
        for rows in _batches(lines):
            columns = zip(zip(*rows, strict=True), schema.types, strict=True)
            arrays = [pa.array(values, kind) for values, kind in columns]
            table.write_table(pa.table(arrays, schema=schema))


def _batches(lines: IO[bytes]) -> Iterator[list[CaptureRow]]:
    rows: list[CaptureRow] = []
    size = 0
    for line in lines:
        rows.append(read_row(line))
        size += len(line)
        if len(rows) == _ROWS or size > _BATCH_BYTES:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows


def _keep(part: Path, building: Path) -> None:
    part.rename(building)


FORMS: Final[dict[str, Callable[[Path, Path], None]]] = {
    "jsonl": _keep,
    "jsonl.gz": _compress,
    "parquet": _convert,
}
"""The forms of a finished capture, and how each is made from lines."""
