"""The tables of Spark against those of a plain loop, row for row.

    python -m tests.pipeline.exact --messages 2000000
    python -m tests.pipeline.exact --hostile 100000 --seed 2

The loop judges every record by the rule itself (`judge_record`, no quick way) and builds the tables
with dictionaries. DuckDB reads both sides from their files and takes the rows that only one has;
the first of them are shown. A replayed candidate is held to the loop likewise.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

import duckdb
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from tallystick.pipeline import ingest
from tallystick.pipeline.capture import Record
from tallystick.pipeline.judge import build_rules
from tallystick.pipeline.lake import table_files
from tallystick.pipeline.replay import replay
from tallystick.pipeline.run import make_plan, run
from tallystick.pipeline.session import open_session
from tallystick.pipeline.tables import TABLES
from tests.pipeline.captures import write_parquet
from tests.pipeline.hostile import records as hostile_records
from tests.pipeline.plain import make_tables
from tests.pipeline.planted import WAYS, plant, write_registry

LEAST = 450
SHOWN = 4


def write_captures(folder: Path, records: Iterable[Record], each: int = 250_000) -> None:
    """Write records as captures in Parquet, so many in a file."""
    folder.mkdir()
    left: Iterator[Record] = iter(records)
    number = 0
    while held := list(islice(left, each)):
        write_parquet(folder / f"{number:04}.parquet", held)
        number += 1


def differences(lake: Path, plain: Path) -> dict[str, tuple[int, int, int]]:
    """Give, for each table, its rows, and how many rows only Spark or only the loop has.

    Some of these are shown on stderr, in the order of the table's key, so that they stand in pairs.
    """
    found = {}
    for name, table in TABLES.items():
        pattern = f"parts/*/{name}-*.parquet" if table.build is None else f"{name}.parquet"
        with duckdb.connect() as base:
            base.register("nothing", table.schema.empty_table())
            ours = _relation(table_files(lake, name), table.schema.names)
            loops = _relation(plain.glob(pattern), table.schema.names)
            only = [
                f"(from {ours} except all from {loops})",
                f"(from {loops} except all from {ours})",
            ]
            found[name] = (_count(base, ours), _count(base, only[0]), _count(base, only[1]))
            if any(found[name][1:]):
                _show(base, name, only)
    return found


def _show(base: duckdb.DuckDBPyConnection, name: str, only: list[str]) -> None:
    order = ", ".join(f'"{one}"' for one in TABLES[name].key)
    for side, relation in zip(("Spark", "the loop"), only, strict=True):
        rows = base.sql(f"from {relation} order by {order} limit {SHOWN}")
        for row in rows.fetchall():
            told = dict(zip(rows.columns, row, strict=True))
            print(f"{name}: only {side} has {told}", file=sys.stderr)


def _relation(files: Iterable[Path], names: list[str]) -> str:
    held = [str(one) for one in files]
    columns = ", ".join(f'"{one}"' for one in names)
    return f"(select {columns} from {f'read_parquet({held!r})' if held else 'nothing'})"


def _count(base: duckdb.DuckDBPyConnection, relation: str) -> int:
    return int(base.sql(f"select count(*) from {relation}").fetchall()[0][0])


def compare(
    place: Path, records: Iterable[Record], session: Any
) -> dict[str, tuple[int, int, int]]:
    """Make the tables both ways below a folder, and give the differences."""
    registry = write_registry(place / "registry")
    write_captures(place / "captures", records)
    plan = make_plan([str(place / "captures")], registry, place / "lake")
    begun = perf_counter()
    run(plan, session=session)
    print(f"Spark {perf_counter() - begun:.1f} s", file=sys.stderr, flush=True)
    ingest._RULES[plan.rules] = build_rules(plan.catalog, quick=False)
    try:
        make_tables(plan, place / "plain")
    finally:
        ingest._RULES.clear()
    print(f"and the loop {perf_counter() - begun:.1f} s", file=sys.stderr, flush=True)
    return differences(place / "lake", place / "plain")


def compare_replay(place: Path, session: Any) -> tuple[dict[str, int], dict[str, int]]:
    """Replay a candidate that refuses small orders; give the breaks by program, both ways."""
    schema = json.loads((place / "registry" / "schemas" / "orders-created.json").read_bytes())
    schema["properties"]["amount"]["minimum"] = LEAST
    told = replay(place / "lake", WAYS[0].urn, schema, session=session)
    found: Counter[str] = Counter()
    for one in told.producers:
        found[str(one.node)] += one.broken
    expected: Counter[str] = Counter()
    for file in (place / "plain" / "parts").glob("*/envelopes-*.parquet"):
        for row in pq.read_table(file, columns=["urn", "node", "data"]).to_pylist():
            if row["urn"] == WAYS[0].urn and json.loads(row["data"])["amount"] < LEAST:
                expected[row["node"]] += 1
    return dict(found), dict(expected)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=0)
    parser.add_argument("--hostile", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.hostile:
        records: Iterable[Record] = hostile_records(arguments.hostile, arguments.seed)
    else:
        records = (one.record for one in plant((arguments.messages or 2_000_000) // 2)[1])
    with tempfile.TemporaryDirectory() as folder, open_session() as session:
        found = compare(Path(folder), records, session)
        replayed, expected = compare_replay(Path(folder), session)
    for name, (rows, ours, theirs) in found.items():
        print(f"{name:16} {rows:9} rows   only Spark {ours}   only the loop {theirs}")
    print(f"replay           {replayed} would break, the loop says {expected}")
    return (
        1
        if replayed != expected or any(ours or theirs for _, ours, theirs in found.values())
        else 0
    )


if __name__ == "__main__":
    sys.exit(main())
