"""Clocks that are far off, and captures that say little: tables all the same, as the loop's."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from tallystick.pipeline.capture import Record
from tallystick.pipeline.digest import digest_lake
from tallystick.pipeline.lake import table_files
from tallystick.pipeline.run import make_plan, run
from tallystick.report.traffic import build_traffic_page
from tests.pipeline.captures import write_line
from tests.pipeline.exact import differences
from tests.pipeline.plain import make_tables
from tests.pipeline.planted import plant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEAST, MOST = -(2**63), 2**63 - 1
TIMES = [
    ("year", 5, 1_763_000_000_123_456_789),
    ("back", 1_763_000_000_123_456_789, 5),
    ("days", 0, 2**53 + 1),
    ("wide", LEAST, MOST),
    ("wide", MOST, LEAST),
    ("edge", 0, LEAST),
    ("self", MOST, LEAST),
    ("near", 1000, 3000),
    ("none", None, 3000),
]
"""A queue, and when a message was sent and received by the clocks there."""
PLACES = [(900, None, None), (100, 1, 1), (200, 2, 2)]
"""The number of a message at its sender, and its number and time at its receiver."""


def captures() -> list[Record]:
    bodies = dict.fromkeys(
        one.record.body for one in plant(200, seed=3)[1] if one.record.direction == "sent"
    )
    fresh = iter(bodies)
    made: list[Record] = []

    def add(queue: str, body: bytes, sent: tuple[Any, ...], received: tuple[Any, ...]) -> None:
        bank = "shop" if queue == "self" else "bank"
        for direction, node, around in (("sent", "shop", sent), ("received", bank, received)):
            at, error, number = around
            made.append(Record("", 0, direction, None, queue, node, at, error, number, body, "{}"))

    numbers = count()
    for queue, sent_at, received_at in TIMES:
        number = next(numbers)
        add(queue, next(fresh), (sent_at, MOST, number), (received_at, number, number))
    for sent, received, at in PLACES:
        add("silent", next(fresh), (at, None, sent), (at, None, received))
    add("half", next(fresh), (1, 0, 1), (2, 0, 2))
    made[-1] = made[-1]._replace(broker="kafka", queue="whole")
    return made


@pytest.fixture(scope="module")
def lakes(
    spark: SparkSession, registry: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("extremes")
    (folder / "a.jsonl").write_bytes(b"".join(write_line(one) + b"\n" for one in captures()))
    plan = make_plan([str(folder / "a.jsonl")], registry, folder / "lake")
    left = folder / "lake" / "parts" / plan.rules / plan.fresh[0].key / "messages-00009.parquet"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"what a killed run had cut in another way")
    run(plan, session=spark)
    make_tables(plan, folder / "plain")
    return folder / "lake", folder / "plain"


def read(lake: Path, name: str) -> list[dict[str, Any]]:
    return [row for file in table_files(lake, name) for row in pq.read_table(file).to_pylist()]


def test_tables_of_clocks_that_are_far_off_are_those_of_the_loop(lakes: tuple[Path, Path]) -> None:
    found = differences(*lakes)
    assert {name: row for name, row in found.items() if row[1:] != (0, 0)} == {}


def test_a_percentile_keeps_every_digit_of_the_one_time_there_is(lakes: tuple[Path, Path]) -> None:
    found = {row["queue"]: row for row in read(lakes[0], "latency")}
    for queue, sent, received in (TIMES[0], TIMES[1], TIMES[2], TIMES[7]):
        assert sent is not None
        assert {found[queue][name] for name in ("minimum", "p50", "p99", "maximum")} == {
            received - sent
        }


def test_a_time_beyond_64_bits_is_the_longest_there_is(lakes: tuple[Path, Path]) -> None:
    found = {(row["queue"], row["p50"]) for row in read(lakes[0], "latency")}
    assert {("wide", MOST), ("wide", -MOST), ("edge", -MOST), ("self", -MOST)} <= found
    delays = [row["delay_p50"] for row in read(lakes[0], "flows") if row["cause"] is not None]
    assert delays == [MOST]


def test_errors_that_do_not_add_up_state_no_bound(lakes: tuple[Path, Path]) -> None:
    found = {row["queue"]: row["clock_error"] for row in read(lakes[0], "deliveries")}
    assert found["year"] == MOST
    assert found["days"] is None


def test_what_was_received_at_no_known_place_makes_nothing_reordered(
    lakes: tuple[Path, Path],
) -> None:
    found = [row["reordered"] for row in read(lakes[0], "deliveries") if row["queue"] == "silent"]
    assert found == [False] * len(PLACES)


def test_a_message_stands_under_the_way_it_was_sent_on(lakes: tuple[Path, Path]) -> None:
    found = [row for row in read(lakes[0], "deliveries") if "half" in row["queue"]]
    assert [(one["broker"], one["outcome"]) for one in found] == [(None, "delivered")]
    assert [one["broker"] for one in read(lakes[0], "latency") if one["queue"] == "half"] == [None]


def test_the_page_draws_clocks_that_are_far_off(lakes: tuple[Path, Path]) -> None:
    page = build_traffic_page(digest_lake(lakes[0]))
    assert f'data-value="{2**53 + 1}"' in page
    assert f'data-value="{-MOST}"' in page
