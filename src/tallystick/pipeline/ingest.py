"""One task: read a split, judge it, and write its part of every table as Parquet.

Spark only schedules this function; it also runs without Spark. Files are written beside their final
place and renamed at the end, so a task that is killed, or run twice, leaves the same files. The
task returns a small receipt; the run adds the receipts up and checks them.
"""

from __future__ import annotations

import gc
import os
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.errors import Rejected
from tallystick.core.journal import read as read_journals
from tallystick.pipeline.arrow import pa, pq
from tallystick.pipeline.capture import Record, faulty
from tallystick.pipeline.events import EVENTS, WAYS, Ways
from tallystick.pipeline.judge import Judged, Rules, build_rules
from tallystick.pipeline.judge_many import judge_records
from tallystick.pipeline.read import read_records
from tallystick.pipeline.table import (
    CAPTURE,
    PLACE,
    Batch,
    Counts,
    Table,
    count_rows,
    counted,
)
from tallystick.pipeline.tables import TABLES, verdicts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tallystick.pipeline.sources import Split
    from tallystick.schemas.catalog import Catalog

__all__ = ["DECLARED", "WIDE", "Job", "Receipt", "ingest", "part_tables", "widen"]

DECLARED: Final = pa.schema([("urn", pa.string()), ("path", pa.string()), ("messages", pa.int64())])
"""Which registered paths were seen: part of `coverage`, gathered beside the tables."""

_ROWS: Final = 16_384
_BYTES: Final = 32 << 20
_MOST_COUNTS: Final = 50_000
_RECORD: Final = pa.schema([*PLACE, *CAPTURE])
_JUDGED_TYPES: Final = {
    "verdict": pa.string(), "stage": pa.string(), "code": pa.string(), "pointer": pa.string(),
    "reason": pa.string(), "hash": pa.binary(32), "key_high": pa.int64(), "key_low": pa.int64(),
    "content": pa.int64(), "urn": pa.string(), "id": pa.string(), "trace_id": pa.string(),
    "lang": pa.string(), "meta_queue": pa.string(), "schema_version": pa.int64(),
    "created_at": pa.int64(), "body_attempts": pa.int64(), "attempts": pa.int64(),
    "dead_reason": pa.string(), "data": pa.string(), "canonical": pa.bool_(),
    "masked": pa.binary(),
}  # fmt: skip
WIDE: Final = pa.schema([*_RECORD, *(pa.field(*each) for each in _JUDGED_TYPES.items())])


@dataclass(frozen=True, slots=True)
class Job:
    """The input of a task beside its split: the registry, and the folder for parts."""

    catalog: Catalog
    registry: str
    folder: str
    ticks: str = ""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The result of a task: part, source, rows per table, figures, failed checks."""

    source: str
    number: int
    rows: dict[str, int] = field(default_factory=dict)
    figures: dict[str, int] = field(default_factory=dict)
    broken: dict[str, int] = field(default_factory=dict)


_RULES: dict[str, Rules] = {}


def rules_of(job: Job) -> Rules:
    """Give the compiled rules of a job; a worker compiles a registry once."""
    if job.registry not in _RULES:
        _RULES.clear()
        _RULES[job.registry] = build_rules(job.catalog)
    return _RULES[job.registry]


def part_tables() -> dict[str, pa.Schema]:
    """Give the schema of every file that a part may have, by name."""
    rows = {name: one.schema for name, one in TABLES.items() if one.build is None}
    partial = {name: one.partial for name, one in TABLES.items() if one.partial is not None}
    return {**rows, **partial, "declared": DECLARED, "events": EVENTS, "ways": WAYS}


def widen(records: list[Record], judged: list[Judged]) -> pa.Table:
    """Put records and verdicts side by side as Arrow columns."""
    left = list(zip(*records, strict=True))
    right = list(zip(*judged, strict=True))
    arrays = [pa.array(column, kind) for column, kind in zip(left, _RECORD.types)]  # noqa: B905
    for column, (name, kind) in zip(right, _JUDGED_TYPES.items()):  # noqa: B905
        if name == "data":  # JSON text, checked by the decoder: bytes are taken as they are
            arrays.append(pa.array(column, pa.binary()).cast(kind))
        else:
            arrays.append(pa.array(column, kind))
    return pa.table(arrays, schema=WIDE)


class _Part:
    """The files of one split while they are being written."""

    def __init__(self, folder: Path, number: int) -> None:
        self._folder: Final = folder
        self._number: Final = number
        self._mark: Final = uuid.uuid4().hex
        self._writers: dict[str, pq.ParquetWriter] = {}
        self.rows: Counter[str] = Counter()
        self.figures: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()

    def add(self, name: str, table: pa.Table) -> None:
        """Check and write rows of one table."""
        self.rows[name] += table.num_rows
        if not table.num_rows:
            return
        if name in TABLES:  # not all that a part has is a table
            self._check(TABLES[name], table)
        if name not in self._writers:
            self._writers[name] = pq.ParquetWriter(
                self._name(name, writing=True), table.schema,
                compression="zstd", compression_level=1, write_statistics=False,
                use_dictionary=[one.name for one in table.schema if one.type == pa.string()
                                and one.name not in _DISTINCT],
            )  # fmt: skip
        self._writers[name].write_table(table)

    def _check(self, declared: Table, table: pa.Table) -> None:
        for figure, mask in declared.row_figures.items():
            self.figures[figure] += count_rows(table, mask)
        for check, mask in declared.row_checks.items():
            if broken := table.num_rows - count_rows(table, mask):
                self.broken[f"{declared.name}: {check}"] += broken

    def finish(self) -> None:
        """Close every file and give it its name."""
        for name, writer in self._writers.items():
            writer.close()
            os.replace(self._name(name, writing=True), self._name(name, writing=False))  # noqa: PTH105

    def abandon(self) -> None:
        """Delete the unfinished files."""
        for name, writer in self._writers.items():
            writer.close()
            Path(self._name(name, writing=True)).unlink(missing_ok=True)

    def _name(self, table: str, *, writing: bool) -> str:
        mark = f".{self._mark}" if writing else ""
        return str(self._folder / f"{table}-{self._number:05}.parquet{mark}")


_DISTINCT: Final = frozenset({"id", "trace_id", "data", "sections", "found", "message"})


def ingest(job: Job, split: Split) -> Receipt:
    """Do the work of one task."""
    folder = Path(job.folder) / split.source.key
    folder.mkdir(parents=True, exist_ok=True)
    part = _Part(folder, split.number)
    collecting = gc.isenabled()
    gc.disable()  # rows hold no cycles, so there is nothing to look for
    try:
        if split.source.form == "journal":
            records: Iterable[Record] = _ingest_journal(part, split)
        else:
            records = read_records(split)
        _ingest_records(rules_of(job), part, records, _tick(job, split))
        part.finish()
    except BaseException:
        part.abandon()
        raise
    finally:
        if collecting:
            gc.enable()
    return Receipt(
        split.source.key, split.number, dict(part.rows), dict(part.figures), dict(part.broken)
    )


def _ingest_journal(part: _Part, split: Split) -> list[Record]:
    """Write the verdicts of a journal; an unreadable journal is a refused record."""
    path = split.source.path
    raw = Path(path).read_bytes()[: split.source.size]
    try:
        journals = read_journals(raw.decode().splitlines(keepends=True))
    except (Rejected, UnicodeDecodeError) as error:
        return [faulty(path, 0, raw[: 1 << 16], "journal.broken", str(error))]
    rows = [
        {
            "source": path, "run": one.head.run, "time": one.head.time, "suite": one.head.suite,
            "subject": one.head.subject, "case": record.verdict.case,
            "outcome": str(record.verdict.outcome.value), "counts_as": str(record.counts_as),
            "milliseconds": record.verdict.milliseconds, "reason": record.verdict.reason,
            "complete": one.complete,
        }
        for one in journals
        for record in one.records
    ]  # fmt: skip
    part.add("verdicts", pa.Table.from_pylist(rows, schema=verdicts.TABLE.schema))
    return []


def _batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    held: list[Record] = []
    size = 0
    for record in records:
        held.append(record)
        size += len(record.body)
        if len(held) >= _ROWS or size >= _BYTES:
            yield held
            held, size = [], 0
    if held:
        yield held


def _ingest_records(
    rules: Rules, part: _Part, records: Iterable[Record], tick: Callable[[int], None]
) -> None:
    counts: dict[str, Counts] = {name: {} for name, one in TABLES.items() if one.count}
    seen, ways = _Seen(rules), Ways()
    total = 0
    for held in _batches(records):
        judged = judge_records(rules, held)
        batch = Batch(widen(held, judged), judged)
        for name, table in TABLES.items():
            if table.rows is not None:
                part.add(name, table.rows(batch))
            if table.count is not None:
                table.count(batch, counts[name])
                _flush(part, name, counts[name], _MOST_COUNTS)
        part.add("events", ways.log(batch, held))
        seen.look(held, judged)
        total += len(held)
        tick(total)
    for name, found in counts.items():
        _flush(part, name, found, 0)
    part.add("declared", counted(DECLARED, dict.fromkeys(seen.paths, 1)))
    part.add("ways", counted(WAYS, ways.counts))


def _flush(part: _Part, name: str, counts: Counts, most: int) -> None:
    schema = TABLES[name].partial
    if len(counts) > most and schema is not None:
        part.add(name, counted(schema, counts))
        counts.clear()


class _Seen:
    """Which declared paths have come by. A path is looked for until it was seen once."""

    def __init__(self, rules: Rules) -> None:
        self.paths: set[tuple[str, str]] = set()
        self._unseen: dict[str, dict[str, bytes]] = {
            shape.urn: {path: b'"%s":' % path.split(".")[-1].encode() for path in shape.paths}
            for shape in rules.quick.shapes.values()
        }

    def look(self, records: list[Record], judged: list[Judged]) -> None:
        """Take note of the paths in some messages."""
        for record, one in zip(records, judged, strict=True):
            if one.urn is None:
                continue
            if one.declared is not None:
                self.paths.update((one.urn, path) for path in one.declared)
            elif unseen := self._unseen.get(one.urn):
                for path in [path for path, name in unseen.items() if name in record.body]:
                    if _is_there(one.data or b"null", path):
                        self.paths.add((one.urn, path))
                        del unseen[path]


def _is_there(data: bytes, path: str) -> bool:
    import msgspec  # noqa: PLC0415 - only for paths that were not seen yet

    values: list[Any] = [msgspec.json.decode(data)]
    for step in path.split("."):
        name, _, items = step.partition("[")
        values = [one[name] for one in values if isinstance(one, dict) and name in one]
        for _ in range(items.count("]")):
            values = [item for one in values if isinstance(one, list) for item in one]
    return bool(values)


def _tick(job: Job, split: Split) -> Callable[[int], None]:
    """Give the function that leaves word of the rows done, once a second at most."""
    if not job.ticks:
        return lambda _: None
    place = Path(job.ticks) / f"{split.source.key}-{split.number:05}"
    last = monotonic()

    def tell(rows: int) -> None:
        nonlocal last
        now = monotonic()
        if now - last >= 1:
            last = now
            place.write_text(str(rows))

    return tell
