"""Inputs as logs, for streams: each grows at its end, and what was read of it stays as it is.

Lines of a file count when their end is written; the rest waits. Files of other forms are read once,
as a whole: Parquet when its footer is there, a journal when its foot is, archives as they are found
(so move them into place). A `.part` is a capture that gets another name when it is finished.

As a source of Spark's Structured Streaming (`Logs`), an offset is the end of every log, and a row
is a range to be read. The rows of a batch are few: what stands in the ranges is read by tasks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from tallystick.pipeline.kafka import find_partitions
from tallystick.pipeline.ranges import check_grown
from tallystick.pipeline.sources import Source, list_files, look

__all__ = ["Logs", "find_logs"]

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
"""The form, the first position and the end of every log, by path."""


def _source(path: str, log: Mapping[str, Any]) -> Source:
    return Source(path, log["form"], log["stop"] - log["start"], None, log["start"])


class Logs(DataSource):
    """The inputs in the option `url` (Spark shows no option of that name), as JSON."""

    @classmethod
    def name(cls) -> str:
        """Give the name of the format."""
        return "tally_logs"

    def schema(self) -> str:
        """Give the columns: one row is a range of one log."""
        return "path string, form string, start long, stop long"

    def streamReader(self, schema: Any) -> _Reader:  # noqa: ARG002, N802 - called by keyword
        """Give the reader of a query."""
        return _Reader(json.loads(self.options["url"]))


class _Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, inputs: list[str]) -> None:
        self._inputs = inputs
        self._last: Offset | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._last = self._find()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002, N802
        found = dict(self._find() if self._last is None else self._last)
        for path, log in start.items():
            if path in found:
                check_grown([_source(path, log)], _source(path, found[path]))
                found[path] = {**found[path], "start": log["start"]}
        return dict(sorted({**start, **found}.items()))

    def _find(self) -> Offset:
        return {
            one.path: {"form": one.form, "start": one.start, "stop": one.stop}
            for one in find_logs(self._inputs)
        }

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        rows = []
        for path, log in end.items():
            at = start[path]["stop"] if path in start else log["start"]
            if at != log["stop"]:
                rows.append((path, log["form"], at, log["stop"]))
        return [InputPartition(rows)] if rows else []

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        yield from partition.value
