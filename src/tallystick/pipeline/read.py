"""Read one split as records, in bounded memory; unreadable data becomes a record that says so.

Memory is bounded by the longest line that is read whole; of a longer line only the beginning is
kept. Blank lines are ignored. A last line without a line end counts if it is complete; otherwise
the file is still being written, the record is refused as cut, and the next run reads the file
again.
"""

from __future__ import annotations

import bz2
import gzip
import zlib
from contextlib import closing
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from tallystick.core.capture import check_row
from tallystick.core.capture_columns import COLUMNS, LEAST, CaptureRow, Column
from tallystick.core.errors import Rejected
from tallystick.core.scan import MAX_BYTES
from tallystick.pipeline.arrow import pa, pq
from tallystick.pipeline.capture import Record, faulty, read_line, rejected

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tallystick.pipeline.sources import Split

__all__ = ["LONGEST", "read_records"]

LONGEST: Final = 2 * MAX_BYTES
_KEPT: Final = 1 << 16
_BATCH: Final = 8192
_BROKEN: Final = (OSError, EOFError, zlib.error, pa.ArrowException)


def read_records(split: Split) -> Iterator[Record]:
    """Give the records of a split in order."""
    if split.source.copy:
        from tallystick.pipeline.copies import read_copy  # noqa: PLC0415 - when used

        yield from read_copy(split)
    elif split.source.form == "parquet":
        yield from _read_parquet(split)
    elif split.source.form == "kafka":
        from tallystick.pipeline.kafka import read_partition  # noqa: PLC0415 - when used

        yield from read_partition(split)
    elif split.source.form == "lines":
        with open(split.source.path, "rb") as file:  # noqa: PTH123 - one call fewer a split
            yield from _read_lines(file, split)
    else:
        yield from _read_packed(split)


def _read_lines(file: BinaryIO, split: Split) -> Iterator[Record]:
    path, at = split.source.path, split.start
    if at:
        file.seek(at - 1)
        at += len(_skip_line(file)) - 1
    end = split.source.stop
    while at < split.stop:
        line = file.readline(min(LONGEST, end - at))
        if not line:
            return
        record, length = _take(file, line, path, at, end)
        if record is not None:
            yield record
        at += length


def _skip_line(file: BinaryIO) -> Any:
    """Read to the end of a line without holding it; give something of its length."""
    total = 0
    while piece := file.readline(1 << 20):
        total += len(piece)
        if piece.endswith(b"\n"):
            break
    return range(total)


def _take(
    file: BinaryIO, line: bytes, path: str, at: int, end: int | None
) -> tuple[Record | None, int]:
    """Give the record of a line, or None for a blank one, and how many bytes it took."""
    length = len(line)
    if line.endswith(b"\n"):
        line = line[:-1]
        return (read_line(line, path, at) if line.strip() else None), length
    if length >= LONGEST:
        length += len(_skip_line(file))
        reason = f"a line of {length} bytes, of which {_KEPT} are kept; the maximum is {LONGEST}"
        return faulty(path, at, line[:_KEPT], "line.too_long", reason), length
    if not line.strip():
        return None, length
    if end is not None and not line.rstrip().endswith(b"}"):
        return faulty(path, at, line, "line.cut", "the file ends in the middle of a line"), length
    return read_line(line, path, at), length


def _open_packed(split: Split) -> Any:
    path = split.source.path
    if split.source.form == "gzip":
        return gzip.open(path, "rb")
    if split.source.form == "bzip2":
        return bz2.open(path, "rb")
    return pa.input_stream(path, compression="zstd")


def _read_packed(split: Split) -> Iterator[Record]:
    """Read a compressed file; if it is damaged, one record holds the rest and the reason."""
    path, at, rest = split.source.path, 0, b""
    with closing(_open_packed(split)) as file:
        take = getattr(file, "read1", file.read)  # what was unpacked before the break is kept
        while True:
            try:
                piece = take(1 << 16)
            except _BROKEN as error:
                reason = f"the file is damaged after this position: {error}"
                yield faulty(path, at, rest[:_KEPT], "file.broken", reason)
                return
            if not piece:
                break
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                if line.strip():
                    yield read_line(line, path, at)
                at += len(line) + 1
            if len(rest) >= LONGEST:
                taken, rest = _drain(file, rest)
                reason = f"a line of {taken} bytes, of which {_KEPT} are kept"
                yield faulty(path, at, rest[0], "line.too_long", reason)
                at, rest = at + taken + 1, rest[1]
    if rest.strip():
        if rest.rstrip().endswith(b"}"):
            yield read_line(rest, path, at)
        else:
            yield faulty(path, at, rest, "line.cut", "the file ends in the middle of a line")


def _drain(file: BinaryIO, begun: bytes) -> tuple[int, Any]:
    """Skip the rest of a line that is too long; return its length, beginning, and the next data."""
    total = len(begun)
    while piece := file.read(1 << 20):
        end = piece.find(b"\n")
        if end >= 0:
            return total + end, (begun[:_KEPT], piece[end + 1 :])
        total += len(piece)
    return total, (begun[:_KEPT], b"")


def _read_parquet(split: Split) -> Iterator[Record]:
    path, at = split.source.path, 0
    try:
        file = pq.ParquetFile(path)
        at = sum(file.metadata.row_group(one).num_rows for one in range(split.start))
        there = [name for name in COLUMNS if name in file.schema_arrow.names]
        groups = list(range(split.start, split.stop))
        for batch in file.iter_batches(_BATCH, row_groups=groups, columns=there):
            yield from _read_batch(batch, path, at)
            at += batch.num_rows
    except (*_BROKEN, UnicodeDecodeError) as error:
        reason = f"no row from here on can be read: {error}"
        yield faulty(path, at, b"", "file.broken", reason[:500])


def _read_batch(batch: pa.RecordBatch, path: str, at: int) -> Iterator[Record]:
    size = batch.num_rows
    columns = {
        name: batch.column(name).to_pylist() if name in batch.schema.names else [None] * size
        for name in COLUMNS
    }
    doubtful = any(_is_doubtful(COLUMNS[name], values) for name, values in columns.items())
    for place, (*around, body, sections) in enumerate(
        zip(*columns.values(), strict=True), start=at
    ):
        if body is None:
            yield faulty(path, place, b"", "capture.body", "the body is null")
            continue
        raw = body.encode() if isinstance(body, str) else body
        if doubtful:  # the check of every row costs as much as reading it
            try:
                check_row(CaptureRow._make((*around, raw, sections)))
            except Rejected as error:
                yield rejected(path, place, raw, error)
                continue
        yield Record._make((path, place, *around, raw, sections, None, None))


def _is_doubtful(column: Column, values: list[Any]) -> bool:
    """Tell whether `check_row` would reject one of the values of a column."""
    if column.values:
        return not frozenset((*column.values, None)).issuperset(values)
    return column.least > LEAST and any(
        number < column.least for number in values if number is not None
    )
