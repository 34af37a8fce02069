"""Read captures from files and folders, one at a time, in the order of the file names.

It reads lines (`.jsonl`, compressed `.jsonl.gz`, or a `.jsonl.part` that is still being written)
and Parquet. An incomplete line at the end of a part is skipped, because it is not written yet. Any
other line that is not a capture is an error with its file and line number.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Final, cast

from tallystick.core.capture import Capture, from_row, read
from tallystick.core.capture_columns import COLUMNS, CaptureRow
from tallystick.core.errors import Rejected, Unavailable, UsageError
from tallystick.runtime.capture_finish import PART, check_form

__all__ = ["capture_files_in", "read_captures"]

_ROWS: Final = 1_000


def capture_files_in(paths: Iterable[str | Path]) -> list[Path]:
    """Return the capture files: each named file, and the capture files of each named folder."""
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = sorted(one for one in path.iterdir() if _reader(one) is not None)
            if not inside:
                raise Unavailable(f"there are no captures in {path}", code="no_capture")
            found += inside
        elif not path.exists():
            raise Unavailable(
                f"there is no file or folder {path}", code="no_capture", hint="check the path"
            )
        elif _reader(path) is None:
            hint = f"names of capture files end in {', '.join(_READERS)}"
            raise UsageError(f"{path} is not a capture file", code="no_capture", hint=hint)
        else:
            found.append(path)
    return found


def read_captures(paths: Iterable[str | Path]) -> Iterator[Capture]:
    """Give every capture of these files and folders."""
    for path in capture_files_in(paths):
        reader = _reader(path)
        if reader is not None:
            yield from reader(path)


def _reader(path: Path) -> Callable[[Path], Iterator[Capture]] | None:
    return next((one for end, one in _READERS.items() if path.name.endswith(end)), None)


def _plain(path: Path) -> Iterator[Capture]:
    with path.open("rb") as lines:
        yield from _lines(path, lines)


def _packed(path: Path) -> Iterator[Capture]:
    try:
        with gzip.open(path, "rb") as lines:
            yield from _lines(path, cast("IO[bytes]", lines))
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Rejected(f"{path} is incomplete or not gzip", code="capture_file") from error


def _lines(path: Path, lines: IO[bytes]) -> Iterator[Capture]:
    for number, line in enumerate(lines, start=1):
        if not line.endswith(b"\n") and path.name.endswith(PART):
            return
        try:
            yield read(line)
        except Rejected as error:
            raise Rejected(f"{path}:{number}: {error}", code=error.code, hint=error.hint) from error


def _table(path: Path) -> Iterator[Capture]:
    check_form("parquet")
    import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    try:
        with parquet.ParquetFile(path) as table:
            for batch in table.iter_batches(_ROWS, columns=list(COLUMNS)):
                columns = (batch.column(name).to_pylist() for name in COLUMNS)
                yield from map(from_row, map(CaptureRow._make, zip(*columns, strict=True)))
    except Rejected as error:
        raise Rejected(f"{path}: {error}", code=error.code, hint=error.hint) from error
    except (pa.ArrowException, KeyError) as error:
        text = str(error).partition("\n")[0]
        raise Rejected(f"{path} is not a capture file: {text}", code="capture_file") from error


_READERS: Final[dict[str, Callable[[Path], Iterator[Capture]]]] = {
    ".jsonl": _plain,
    PART: _plain,
    ".jsonl.gz": _packed,
    ".parquet": _table,
}
