"""The pipeline against plain Python and DuckDB, in one run on two cores.

    decode_vs_loop            Parquet to exact verdicts: Spark / a loop of orjson and jsonschema-rs
    decode_vs_two_processes   the same: Spark / two plain processes of our own quickest exact way
    run_vs_process            every table from captures: Spark / one plain Python process
    deliveries_vs_duckdb      sent against received: Spark in a 1-GB heap / DuckDB, the same query
    growth_10x                deliveries of ten times the ids: how many times the time

Session start-up is printed apart. Each is the best of a few rounds, the contenders taking turns
(Java compiles what is hot during the first).
`--quick` leaves `run_vs_process` out: of so small a run it would be the fixed price of Spark.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import jsonschema_rs
import orjson
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from tallystick import standard
from tallystick.pipeline.ingest import Job, rules_of
from tallystick.pipeline.judge_many import judge_body
from tallystick.pipeline.run import make_plan, registry_hash, run
from tallystick.pipeline.session import open_session
from tallystick.pipeline.tables.deliveries import pair_events
from tallystick.schemas.catalog import load_catalog, self_contained

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.pipeline.captures import write_parquet
from tests.pipeline.plain import make_tables
from tests.pipeline.planted import plant, write_registry

FILES = 8


def write_captures(folder: Path, count: int) -> None:
    """Write planted traffic as a few Parquet files; `count` is of records."""
    folder.mkdir()
    records = (one.record for one in plant(count // 2)[1])
    number = 0
    while held := list(islice(records, count // FILES + 1)):
        write_parquet(folder / f"{number}.parquet", held)
        number += 1


def bodies(file: str) -> Iterator[bytes]:
    for batch in pq.ParquetFile(file).iter_batches(16384, columns=["body"]):
        yield from batch.column(0).to_pylist()


def verdicts(job: Job, file: str) -> dict[str, int]:
    """Count the exact verdicts of a file: what a task of Spark and a plain process both do."""
    rules = rules_of(job)
    told = {"valid": 0, "unknown": 0, "refused": 0}
    for body in bodies(file):
        told[judge_body(rules, body)] += 1
    return told


def add(parts: list[dict[str, int]]) -> dict[str, int]:
    return {name: sum(one[name] for one in parts) for name in parts[0]}


def loop(job: Job, files: list[str]) -> dict[str, int]:
    """The loop one would write: orjson, the envelope's schema, the schema of the data."""
    envelope = jsonschema_rs.Draft7Validator(
        json.loads(standard.read("schema/message-envelope.schema.json"))
    ).is_valid
    schemas = {
        urn: jsonschema_rs.Draft7Validator(self_contained(job.catalog, urn)).is_valid
        for urn in job.catalog.entries
    }
    told = {"valid": 0, "unknown": 0, "refused": 0}
    for file in files:
        for body in bodies(file):
            try:
                message = orjson.loads(body)
            except ValueError:
                told["refused"] += 1
                continue
            if not envelope(message):
                told["refused"] += 1
                continue
            valid = schemas.get(message["job"])
            if valid is None:
                told["unknown"] += 1
            else:
                told["valid" if valid(message["data"]) else "refused"] += 1
    return told


def best(contenders: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    times = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, function in contenders.items():
            begun = time.perf_counter()
            function()
            times[name] = min(times[name], time.perf_counter() - begun)
    for name, seconds in times.items():
        print(f"{name:40} {seconds:8.2f} s", flush=True)
    return times


def decode(
    session: Any, folder: Path, job: Job, rows: int, least: int, rounds: int
) -> dict[str, float]:
    files = sorted(str(one) for one in folder.glob("*.parquet"))
    files *= max(1, least // rows)  # the same bodies again: a small set would measure the start
    context = session.sparkContext
    shared = context.broadcast(job)

    def on_spark() -> dict[str, int]:
        hands = [files[at::FILES] for at in range(FILES)]
        tasks = context.parallelize(hands, FILES)
        return add(
            tasks.map(lambda hand: add([verdicts(shared.value, one) for one in hand])).collect()
        )

    fork = multiprocessing.get_context("fork")
    rules_of(job)

    def two() -> dict[str, int]:
        with fork.Pool(2) as pool:
            return add(pool.map(partial(verdicts, job), files, chunksize=1))

    exact, other = on_spark(), two()
    assert exact == other, (exact, other)
    print("exact verdicts", exact, "the loop says", loop(job, files))
    times = best(
        {"decode, Spark": on_spark, "decode, two processes": two,
         "decode, loop": lambda: loop(job, files)},
        rounds,
    )  # fmt: skip
    return {
        "decode_vs_loop": times["decode, loop"] / times["decode, Spark"],
        "decode_vs_two_processes": times["decode, two processes"] / times["decode, Spark"],
    }


def whole(session: Any, folder: Path, registry: Path, place: Path, rounds: int) -> dict[str, float]:
    told: dict[str, Any] = {}

    def on_spark() -> None:
        shutil.rmtree(place / "lake", ignore_errors=True)
        plan = make_plan([str(folder)], registry, place / "lake")
        manifest = run(plan, session=session)
        told["spark"] = manifest["figures"]
        print("seconds", manifest["seconds"], flush=True)

    def in_process() -> None:
        shutil.rmtree(place / "plain", ignore_errors=True)
        plan = make_plan([str(folder)], registry, place / "plain")
        told["plain"] = make_tables(plan, place / "plain")

    times = best({"all tables, Spark": on_spark, "all tables, one process": in_process}, rounds)
    assert told["spark"] == told["plain"], told
    return {"run_vs_process": times["all tables, one process"] / times["all tables, Spark"]}


EVENTS = """
    select hash(n) as key_high, hash(n + 1000000000) as key_low, hash(n * 7) as content,
        1749132727000000000 + n * 1000
            + if(s, 0, 500000) as moment, 1000 as clock_error, n as place,
        cast(0 as bigint) as attempts, s as sends, hash(n % 36) + if(s, 1, 0) as flow
    from (select range as n, true as s from range({count}) where range % 1000 <> 7
          union all
          select range as n, false as s from range({count}) where range % 1000 <> 13
          union all
          select range as n, false as s from range({count}) where range % 200 = 3)
"""


def write_events(folder: Path, count: int) -> None:
    """Write a log of sent and received ids: 0.1 % lost, 0.1 % unexpected, 0.5 % doubled."""
    folder.mkdir()
    numbers = EVENTS.format(count=count)
    casts = ", ".join(
        f"cast({name} % 9223372036854775807 as bigint) as {name}"
        for name in ("key_high", "key_low", "content", "flow")
    )
    with duckdb.connect() as base:
        base.execute(
            f"copy (select * replace ({casts}) from ({numbers})) to '{folder}/events.parquet'"
            " (format parquet, compression zstd, row_group_size 250000)"
        )


TOTALS = """
    select count(*) as ids, count_if(received = 0) as lost, count_if(sent = 0) as unexpected,
        count_if(received > sent and sent > 0) as doubled,
        count_if(sent > 0 and received > 0 and received_low <> sent_low) as altered,
        sum(received_at - sent_at) as taken, max(sent_error + received_error) as error,
        count_if(rounds > 1) as retried from ({pairs})
"""


def deliveries(session: Any, place: Path, count: int, rounds: int) -> dict[str, float]:
    queries = {}
    for name, many in (("small", count // 10), ("large", count)):
        write_events(place / name, many)
        queries[name] = TOTALS.format(pairs=pair_events(2 * many))
    duck = queries["large"]
    duck = duck.replace("shiftleft(1L, cast(round as int))", "(1::bigint << round::int)")
    duck = duck.replace("0L", "0::bigint").replace("-1L", "-1").replace("62L", "62")

    def on_spark(name: str) -> tuple[Any, ...]:
        session.read.parquet(str(place / name)).createOrReplaceTempView("events")
        (row,) = session.sql(queries[name]).collect()
        return tuple(row)

    def on_duckdb(name: str) -> tuple[Any, ...]:
        with duckdb.connect() as base:
            base.execute("set threads = 2")
            base.execute(f"create view events as select * from '{place / name}/events.parquet'")
            return tuple(int(one) for one in base.execute(duck).fetchall()[0])

    first, second = on_spark("small"), on_duckdb("small")
    assert first == second, (first, second)
    times = best(
        {"deliveries, Spark": lambda: on_spark("large"),
         "deliveries, DuckDB": lambda: on_duckdb("large"),
         "deliveries of a tenth, Spark": lambda: on_spark("small")},
        rounds,
    )  # fmt: skip
    return {
        "deliveries_vs_duckdb": times["deliveries, DuckDB"] / times["deliveries, Spark"],
        "growth_10x": times["deliveries, Spark"] / times["deliveries of a tenth, Spark"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="under 45 seconds")
    parser.add_argument("--json", action="store_true", help="one flat object as the last line")
    parser.add_argument("--only", choices=("deliveries", "decode", "run"), help="one part of it")
    parser.add_argument("--messages", type=int, default=0)
    parser.add_argument("--ids", type=int, default=0)
    arguments = parser.parse_args()
    messages = arguments.messages or (40_000 if arguments.quick else 2_000_000)
    ids = arguments.ids or (500_000 if arguments.quick else 10_000_000)
    rounds = 2 if arguments.quick else 5
    only = arguments.only
    place = Path(tempfile.mkdtemp(prefix="tallystick-bench-"))
    ratios: dict[str, float] = {}
    try:
        registry = write_registry(place / "registry")
        if only != "deliveries":
            write_captures(place / "captures", messages)
        catalog = load_catalog(registry)
        job = Job(catalog, registry_hash(catalog), str(place / "parts"))
        begun = time.perf_counter()
        with open_session("local[2]", {"spark.driver.memory": "1g"}) as session:
            print(f"session start-up {time.perf_counter() - begun:.1f} s (1-GB heap)")
            if only in (None, "deliveries"):
                ratios |= deliveries(session, place, ids, rounds)
            if only in (None, "decode"):
                least = 400_000 if arguments.quick else 2_000_000
                ratios |= decode(session, place / "captures", job, messages, least, rounds)
            if only == "run" or (only is None and not arguments.quick):
                ratios |= whole(session, place / "captures", registry, place, 1)
    finally:
        shutil.rmtree(place)
    for name, value in ratios.items():
        print(f"{name:28} {value:6.2f}")
    if arguments.json:
        print(json.dumps({name: round(value, 3) for name, value in ratios.items()}))


if __name__ == "__main__":
    main()
