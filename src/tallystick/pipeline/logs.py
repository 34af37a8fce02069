"""Inputs as logs, for streams: each grows at its end, and the part already read never changes.

A line of a file counts when its end is written; the rest waits. Other files are read once, as a
whole: Parquet when its footer is written, a journal when its last line is written, archives when
they are found (so move them into place). A `.part` file is a capture that gets another name when it
is finished.

As a source of Spark's Structured Streaming (`Logs`), an offset is the end of every log, and a row
is a range to read. A batch has few rows: tasks read the records of the ranges. A batch has about
the requested number of records: growing logs share it by their new records, and whole files are
added up to the same number again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from tallystick.pipeline.kafka import find_partitions
from tallystick.pipeline.ranges import check_grown
from tallystick.pipeline.sources import GROWING, RECORD, Source, list_files, look

__all__ = ["BATCH", "Logs", "find_logs"]

BATCH: Final = 1_000_000
"""About how many records a batch has, unless told otherwise: half a gigabyte."""

_BLOCK: Final = 1 << 16
_TAIL: Final = 4096
_MAGIC: Final = b"PAR1"
_IS_WHOLE: Final[Mapping[str, Callable[[bytes], bool]]] = {
    "parquet": lambda tail: len(tail) > len(_MAGIC) and tail.endswith(_MAGIC),
    "journal": lambda tail: b'"kind":"foot"' in tail.replace(b" ", b""),
}
"""Tells by its end whether a file is whole; Parquet begins with its magic, too."""


def find_logs(inputs: Sequence[str]) -> list[Source]:
    """Give every log as far as it goes now; those with nothing in them are left out."""
    found: dict[str, Source] = {}
    for name in inputs:
        if "://" in name:
            found |= {one.path: one for one in find_partitions(name)}
        else:
            found |= {str(one): _look(one) for one in list_files(name) if one.suffix != ".part"}
    return [found[path] for path in sorted(found) if found[path].size]


def _look(path: Path) -> Source:
    source = replace(look(path), changed=None)
    with path.open("rb") as file:
        if source.form == "lines":
            return replace(source, size=_find_end(file, source.size))
        file.seek(max(0, source.size - _TAIL))
        tail = file.read(min(_TAIL, source.size))
    is_whole = source.form not in _IS_WHOLE or _IS_WHOLE[source.form](tail)
    return source if is_whole else replace(source, size=0)


def _find_end(file: Any, size: int) -> int:
    """Give the place behind the last newline."""
    while size > 0:
        start = max(0, size - _BLOCK)
        file.seek(start)
        at = file.read(size - start).rfind(b"\n")
        if at >= 0:
            return int(start + at + 1)
        size = start
    return 0


Offset = Mapping[str, Mapping[str, Any]]
"""The form, the first position, the end and the identity of every log, by path."""


def _source(path: str, log: Mapping[str, Any], start: int | None = None) -> Source:
    at = log["start"] if start is None else start
    size, identity = log["stop"] - at, log.get("identity", "")
    return Source(path, log["form"], size, None, at, identity=identity)


def _find_new(start: Offset, end: Offset) -> list[Source]:
    """Return the ranges between two offsets."""
    known = {path: log["stop"] for path, log in start.items()}
    found = [_source(path, log, known.get(path)) for path, log in end.items()]
    return [one for one in found if one.size]


def _limit(start: Offset, end: Offset, most: int) -> Offset:
    """Return an offset between two that adds about this many records, and at least one."""
    new = _find_new(start, end)
    room = left = most * RECORD
    total = sum(one.weight for one in new if one.form in GROWING)
    taken = dict(start)
    for one in new:
        if one.form in GROWING:
            stop = min(one.stop, _cut(one, max(1, one.size * room // total)))
            taken[one.path] = {**end[one.path], "stop": stop}
        elif left > 0:
            taken[one.path] = end[one.path]
            left -= one.weight
    return taken


def _cut(log: Source, size: int) -> int:
    """Give the position behind so much of a log, and behind the line that it falls into."""
    at = log.start + size
    if log.form != "lines" or at >= log.stop:
        return at
    with open(log.path, "rb") as file:  # noqa: PTH123 - one call fewer a log
        file.seek(at - 1)
        while piece := file.readline(_BLOCK):
            at = file.tell()
            if piece.endswith(b"\n"):
                break
    return at


class Logs(DataSource):
    """The inputs in the option `url` (Spark shows no option of that name), as JSON."""

    @classmethod
    def name(cls) -> str:
        """Give the name of the format."""
        return "tally_logs"

    def schema(self) -> str:
        """Give the columns: one row is a range of one log."""
        return "path string, form string, start long, stop long, identity string"

    def streamReader(self, schema: Any) -> _Reader:  # noqa: ARG002, N802 - called by keyword
        """Give the reader of a query."""
        return _Reader(json.loads(self.options["url"]), int(self.options["batch"]))


class _Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, inputs: list[str], batch: int) -> None:
        self._inputs, self._batch = inputs, batch
        self._last: Offset | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._last = self._find()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._batch)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        found = dict(self._find() if self._last is None else self._last)
        for path, log in start.items():
            if path in found:
                check_grown([_source(path, log)], _source(path, found[path]))
                found[path] = {**found[path], "start": log["start"]}
        latest = dict(sorted({**start, **found}.items()))
        if isinstance(limit, ReadMaxRows):
            return dict(_limit(start, latest, limit.max_rows))
        return latest

    def _find(self) -> Offset:
        return {
            one.path: {"form": one.form, "start": one.start, "stop": one.stop,
                       "identity": one.identity}
            for one in find_logs(self._inputs)
        }  # fmt: skip

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        rows = [(one.path, one.form, one.start, one.stop, one.identity)
                for one in _find_new(start, end)]  # fmt: skip
        return [InputPartition(rows)] if rows else []

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        yield from partition.value
