"""Summarise a lake in one small value for its page, from the tables of the last successful run.

Tables are read in batches, and only the columns that are counted, so a lake of any size needs
little memory. Time is divided into at most 60 buckets. Of each list the most important rows are
kept, with the number of the others. Long texts from outside are cut.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

from tallystick.pipeline.arrow import pa, pc, pq
from tallystick.pipeline.lake import read_manifest
from tallystick.pipeline.tables import TABLES

__all__ = ["FAULTS", "SERIES", "digest_lake"]

SERIES: Final = ("valid", "unknown", "violating", "refused")
"""Every record is one of these: `violating` broke its schema, `refused` any stage before."""
_SERIES: Final = {"valid": "valid", "unknown": "unknown", "schema": "violating"}
"""What a verdict or the stage of a refusal counts as; every other stage is `refused`."""
FAULTS: Final = ("lost", "duplicated", "unexpected", "altered", "reordered")

_BUCKETS: Final = 60
_ROWS: Final = 15
_LONGEST: Final = 200
_BATCH: Final = 1 << 17
_MS: Final = 1_000_000
_SECOND: Final = 1000 * _MS
_DAY: Final = 86_400 * _SECOND
_STEPS: Final = (
    *(step * _MS for step in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(step * _SECOND for step in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800)),
    *(step * 3600 * _SECOND for step in (1, 2, 3, 6, 12)),
    *(step * _DAY for step in (1, 2, 7, 14, 28)),
)


@dataclass(frozen=True, slots=True)
class _Tables:
    """The files of one run: another run may be published meanwhile."""

    root: Path
    manifest: Mapping[str, Any]

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Read columns of a table, some rows at a time."""
        for one in self.manifest["tables"][name]["files"]:
            file = pq.ParquetFile(self.root / self.manifest["folder"] / one)
            for batch in file.iter_batches(batch_size=_BATCH, columns=list(columns)):
                yield pa.Table.from_batches([batch])

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Give all rows of a table of counts."""
        return [
            row for one in self.batches(name, TABLES[name].schema.names) for row in one.to_pylist()
        ]

    def count(
        self,
        name: str,
        columns: Sequence[str],
        derive: Callable[[pa.Table], pa.Table] = lambda table: table,
    ) -> Counter[tuple[Any, ...]]:
        """Count the rows of a table by the values of columns, or by derived values."""
        counts: Counter[tuple[Any, ...]] = Counter()
        for one in self.batches(name, columns):
            table = derive(one)
            for row in (
                table.group_by(table.column_names).aggregate([([], "count_all")]).to_pylist()
            ):
                times = row.pop("count_all")
                counts[tuple(row.values())] += times
        return counts


def digest_lake(root: Path) -> dict[str, Any]:
    """Give all that the page of a lake shows, as plain values."""
    manifest = read_manifest(root)
    tables = _Tables(root, manifest)
    shown: dict[str, Any] = _cut(
        {
            "run": _run(manifest),
            "acceptance": _acceptance(tables),
            "refusals": _counted(tables, "quarantine", ("stage", "code")),
            "violations": _counted(tables, "violations", ("urn", "keyword")),
            "deliveries": _deliveries(tables),
            "latency": _top(tables.rows("latency"), lambda row: (-row["messages"],)),
            "flows": _top(tables.rows("flows"), lambda row: (-row["messages"],), 4 * _ROWS),
            "drift": _top(tables.rows("drift"), lambda row: (-row["messages"],)),
            "exposure": _top(
                tables.rows("exposure"), lambda row: (row["basis"] == "mark", -row["messages"])
            ),
            "coverage": _coverage(tables),
            "verdicts": _counted(tables, "verdicts", ("suite", "subject", "counts_as")),
            "flaky": _top(tables.rows("flaky_circuits"), lambda row: (-row["failed"],)),
        }
    )
    return {**shown, "command": _command(root, manifest)}


def _run(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of the run, without the file lists of each table."""
    return {
        **{name: manifest[name] for name in ("key", "started", "versions", "figures", "seconds")},
        "registry": manifest["registry"]["manifest"],
        "tables": {name: held["rows"] for name, held in manifest["tables"].items()},
        "inputs": _top(manifest["inputs"], lambda one: (-one["size"],)),
    }


def _command(root: Path, manifest: Mapping[str, Any]) -> str:
    """Give the command that makes these tables again."""
    given = manifest.get("given") or [one["path"] for one in manifest["inputs"]]
    inputs = [word for one in given for word in ("--input", one)]
    registry = str(Path(manifest["registry"]["manifest"]).absolute())
    out = str(root.absolute())
    return shlex.join(
        ["tally", "pipeline", "run", *inputs, "--registry", registry, "--out", out, "--force"]
    )


def _top(
    rows: Iterable[dict[str, Any]], order: Callable[[dict[str, Any]], Any], most: int = _ROWS
) -> dict[str, Any]:
    """Keep the first rows in an order, and say how many more there are."""
    ready = sorted(rows, key=order)
    return {"rows": ready[:most], "more": max(len(ready) - most, 0)}


def _counted(tables: _Tables, name: str, columns: Sequence[str]) -> dict[str, Any]:
    counts = tables.count(name, columns)
    rows = [{**dict(zip(columns, key, strict=True)), "count": n} for key, n in counts.items()]
    return _top(rows, lambda row: (-row["count"], *map(str, row.values())))


def _acceptance(tables: _Tables) -> dict[str, Any]:
    """Count the records by time and verdict."""
    low = high = None
    for one in tables.batches("messages", ["at"]):
        ends = pc.min_max(one["at"]).as_py()
        if ends["min"] is not None:
            low = ends["min"] if low is None else min(low, ends["min"])
            high = ends["max"] if high is None else max(high, ends["max"])
    width = _width(low or 0, high or 0)
    first = (low or 0) // width
    buckets = [dict.fromkeys(SERIES, 0) for _ in range((high or 0) // width - first + 1)]
    untimed = dict.fromkeys(SERIES, 0)
    for table, column in (("envelopes", "verdict"), ("quarantine", "stage")):
        for (at, value), n in _by_time(tables, table, column, width):
            series = _SERIES.get(value, "refused")
            (untimed if at is None else buckets[at - first])[series] += n
    return {
        "start": first * width,
        "width": width,
        "buckets": buckets if low is not None else [],
        "untimed": untimed,
    }


def _width(low: int, high: int) -> int:
    """Give the least step of people's clocks that cuts a span into few buckets."""
    more = (365 * _DAY * 10**power for power in count())
    return next(
        step for steps in (_STEPS, more) for step in steps if high // step - low // step < _BUCKETS
    )


def _by_time(
    tables: _Tables, name: str, column: str, width: int
) -> Iterable[tuple[tuple[int | None, str], int]]:
    def derive(table: pa.Table) -> pa.Table:
        near = pc.divide(table["at"], width)  # towards zero
        early = pc.cast(pc.greater(pc.multiply(near, width), table["at"]), pa.int64())
        return pa.table({"bucket": pc.subtract(near, early), column: table[column]})

    return tables.count(name, ("at", column), derive).items()


def _deliveries(tables: _Tables) -> dict[str, Any]:
    """Count the outcomes of messages, by broker and queue: a lost one has no receiver."""
    columns = (
        "broker", "queue", "sender", "receiver", "outcome", "copies", "altered", "reordered",
    )  # fmt: skip

    def derive(table: pa.Table) -> pa.Table:
        at = table.column_names.index("copies")
        return table.set_column(at, "duplicated", pc.greater(table["copies"], 0))

    ways: dict[tuple[Any, Any], dict[str, Any]] = {}
    for key, n in tables.count("deliveries", columns, derive).items():
        broker, queue, sender, receiver, outcome, *flags = key
        way = ways.setdefault(
            (broker, queue),
            {
                "broker": broker, "queue": queue, "senders": {}, "receivers": {}, "delivered": 0,
                **dict.fromkeys(FAULTS, 0), "unobserved": 0,
            },
        )  # fmt: skip
        for side, name in (("senders", sender), ("receivers", receiver)):
            if name is not None:
                way[side][name] = way[side].get(name, 0) + n
        way[outcome] += n
        for name, flag in zip(("duplicated", "altered", "reordered"), flags, strict=True):
            way[name] += n if flag else 0
    for way in ways.values():
        for side in ("senders", "receivers"):
            way[side] = sorted(way[side], key=lambda name: (-way[side][name], name))
    return _top(
        ways.values(),
        lambda way: (-sum(way[name] for name in FAULTS), -way["delivered"], str(way["queue"])),
    )


def _coverage(tables: _Tables) -> dict[str, Any]:
    rows = [row for row in tables.rows("coverage") if not (row["registered"] and row["seen"])]
    return _top(rows, lambda row: (row["registered"], -(row["messages"] or 0)))


def _cut(value: Any) -> Any:
    """Cut long texts at any place."""
    if isinstance(value, str):
        return value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…"
    if isinstance(value, dict):
        return {key: _cut(one) for key, one in value.items()}
    return [_cut(one) for one in value] if isinstance(value, list) else value
