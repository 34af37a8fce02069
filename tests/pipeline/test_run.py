"""Whole runs on Spark: the tables are those of a plain loop, and the planted truth is in them."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from tallystick.core.errors import TallystickError
from tallystick.core.journal import Foot, Head, Record, count, write_foot, write_head, write_record
from tallystick.core.verdict import Outcome, Verdict
from tallystick.pipeline import build, ingest, run
from tallystick.pipeline.judge import build_rules, judge_record
from tallystick.pipeline.lake import open_lake, read_manifest, table_files
from tallystick.pipeline.parts import finish_part
from tallystick.pipeline.replay import replay
from tallystick.pipeline.show import read_rows
from tallystick.pipeline.sources import split
from tallystick.pipeline.table import is_one_of
from tallystick.pipeline.tables import TABLES
from tallystick.schemas.catalog import load_catalog
from tests.pipeline.captures import write_line, write_parquet
from tests.pipeline.exact import differences
from tests.pipeline.plain import make_tables
from tests.pipeline.planted import ERROR, WAYS, Truth, plant, way_of
from tests.pipeline.planted import Planted as PlantedRecord

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = 3000


@dataclass(frozen=True)
class World:
    """Planted traffic as files, the lake made from it, and the truth."""

    inputs: Path
    registry: Path
    lake: Path
    truth: Truth
    records: list[PlantedRecord]
    first: dict[str, Any]
    manifest: dict[str, Any]
    session: SparkSession

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Ask DuckDB, as any other tool would, over the plain files."""
        with duckdb.connect() as base:
            for name in TABLES:
                files = [str(one) for one in table_files(self.lake, name)]
                if files:
                    base.execute(f"create view {name} as select * from read_parquet({files!r})")
            return base.execute(sql).fetchall()

    def plan(self) -> run.Plan:
        return run.make_plan([str(self.inputs)], self.registry, self.lake)

    def again(self) -> dict[str, Any]:
        return run.run(self.plan(), session=self.session)


def journal(name: str, outcome: Outcome) -> str:
    records = [Record(Verdict("lab/a", outcome)), Record(Verdict("lab/b", Outcome.PASSED))]
    lines = [write_head(Head(name, "2026-11-16T00:00:00Z", "lab", "kafka")),
             *map(write_record, records), write_foot(Foot(count(records)))]  # fmt: skip
    return "".join(lines)


def write_files(folder: Path, records: list[PlantedRecord]) -> None:
    """Write each program's log in a form of its own."""
    logs = defaultdict(list)
    for one in records:
        logs[one.node].append(one.record)
    for node, held in logs.items():
        lines = b"".join(write_line(one) + b"\n" for one in held)
        if node == "shop":
            write_parquet(folder / "shop.parquet", held, row_group_size=500)
        elif node == "mailer":
            (folder / "mailer.jsonl.gz").write_bytes(gzip.compress(lines))
        else:
            (folder / f"{node}.jsonl").write_bytes(lines)
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "one.journal").write_text(journal("one", Outcome.FAILED))
    (folder / "two.journal").write_text(journal("two", Outcome.PASSED))


@pytest.fixture(scope="module")
def world(spark: SparkSession, registry: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    """Make the tables in two runs: the second finds one file more, and knows the others."""
    folder = tmp_path_factory.mktemp("world")
    inputs, lake = folder / "in", folder / "lake"
    inputs.mkdir()
    truth, planted = plant(COUNT, seed=5)
    records = list(planted)
    write_files(inputs, records)
    late = (inputs / "archive.jsonl").rename(folder / "archive.jsonl")
    first = run.run(run.make_plan([str(inputs)], registry, lake), session=spark)
    late.rename(inputs / "archive.jsonl")
    manifest = run.run(run.make_plan([str(inputs)], registry, lake), session=spark)
    return World(inputs, registry, lake, truth, records, first, manifest, spark)


def keys_of(numbers: set[int], world: World) -> set[tuple[int, int]]:
    rules = build_rules(load_catalog(world.registry))
    found = {}
    for one in world.records:
        if one.number in numbers and one.number not in found:
            row = judge_record(rules, one.record)
            found[one.number] = (row.key_high, row.key_low)
    return set(found.values())


def test_every_table_is_that_of_a_plain_loop_row_for_row(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = world.plan()
    exact = build_rules(plan.catalog, quick=False)
    monkeypatch.setattr(ingest, "_RULES", {plan.rules: exact})
    make_tables(plan, tmp_path)
    found = differences(world.lake, tmp_path)
    assert all(rows > 0 for rows, _, _ in found.values())
    assert {name: row for name, row in found.items() if row[1:] != (0, 0)} == {}


def test_nothing_is_lost_by_file_and_in_all(world: World) -> None:
    rows = [one["rows"] for one in world.manifest["inputs"]]
    assert all(one["messages"] == one["envelopes"] + one["quarantine"] for one in rows)
    assert sum(one["messages"] for one in rows) == len(world.records)
    assert world.manifest["figures"]["messages"] == len(world.records)


def test_deliveries_find_exactly_the_planted_faults(world: World) -> None:
    truth = world.truth
    told = {
        (high, low): (outcome, copies, altered, reordered)
        for high, low, outcome, copies, altered, reordered in world.rows(
            "select key_high, key_low, outcome, copies, altered, reordered from deliveries"
        )
    }
    unreadable = {number for number, broken in truth.broken.items() if broken.stage == "decode"}
    by = {
        "lost": {key for key, one in told.items() if one[0] == "lost"},
        "unexpected": {key for key, one in told.items() if one[0] == "unexpected"},
        "doubled": {key for key, one in told.items() if one[1] > 0},
        "altered": {key for key, one in told.items() if one[2]},
        "delayed": {key for key, one in told.items() if one[3]},
    }
    for name, found in by.items():
        assert found - keys_of(unreadable, world) == keys_of(getattr(truth, name), world), name


def test_latency_is_within_its_stated_bound(world: World) -> None:
    rows = world.rows("select urn, p50, clock_error, messages from latency where urn is not null")
    told = {urn: (p50, error) for urn, p50, error, messages in rows if messages > 20}
    assert len(told) == len(WAYS)
    for way in WAYS:
        p50, error = told[way.urn]
        assert error == 2 * ERROR
        assert abs(p50 - way.milliseconds * 1_000_000) <= error + p50 / 1024  # and the bucket


def test_drift_names_kind_language_and_program(world: World) -> None:
    rules = build_rules(load_catalog(world.registry))
    expected: Counter[tuple[str | None, str, str, str]] = Counter()
    for one in world.records:
        row = judge_record(rules, one.record)
        for kind, place in row.drifts:
            expected[(row.lang, one.node, kind, place)] += 1
    rows = world.rows("select lang, node, kind, place, sum(messages) from drift group by all")
    assert {(*key, int(times)) for *key, times in rows} == {
        (*key, times) for key, times in expected.items()
    }
    assert {kind for _, _, kind, _ in expected} == set(world.truth.drifted.values())


def test_exposure_finds_the_leaks_and_the_marks(world: World) -> None:
    leaks = Counter(
        WAYS[way_of(one.number)[1]].urn for one in world.records if one.number in world.truth.leaked
    )
    rows = world.rows("select urn, sum(messages) from exposure where basis <> 'mark' group by urn")
    assert {urn: int(times) for urn, times in rows} == dict(leaks)
    assert world.rows("select distinct path from exposure where basis = 'mark'") == [
        ("data.email",)
    ]


def test_coverage_tells_both_sides(world: World) -> None:
    unseen = world.rows("select path from coverage where registered and not seen")
    assert set(unseen) == {("spare",)}
    foreign = world.rows("select urn, path from coverage where not registered")
    assert {(urn, path) for urn, path in foreign if path == ""} == {("urn:babel:nobody:knows", "")}
    assert {path for _, path in foreign} == {"", "zz_extra"}


def test_violations_point_at_the_broken_rule(world: World) -> None:
    rows = world.rows(
        "select keyword, count(distinct (source, position)) from violations group by 1"
    )
    found = dict(rows)
    for keyword in ("required", "type"):
        planted = [one for one in world.records if (broken := world.truth.broken.get(one.number))
                   and broken.stage == "schema" and broken.code == keyword]  # fmt: skip
        assert found[keyword] >= len(planted) > 0


def test_a_case_that_changes_its_mind_is_flaky(world: World) -> None:
    assert world.rows('select "case", passed, failed from flaky_circuits') == [("lab/a", 1, 1)]
    assert world.manifest["figures"]["verdicts"] == 4


def test_the_same_run_is_not_done_twice(world: World) -> None:
    again = world.again()
    assert again["skipped"]
    assert again["key"] == world.manifest["key"]


def test_a_failed_check_leaves_the_last_good_tables(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_manifest(world.lake)
    strict = replace(TABLES["coverage"], checks=("false",))
    monkeypatch.setattr(build, "TABLES", {**TABLES, "coverage": strict})
    with pytest.raises(TallystickError) as told:
        run.run(world.plan(), session=world.session, force=True)
    assert told.value.code == "check.rows"
    assert read_manifest(world.lake) == before
    assert not list((world.lake / "runs").glob(".*"))


def test_a_row_that_breaks_a_check_is_counted_where_it_is_written_and_fails_the_run(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {"nothing is valid": is_one_of("verdict", "refused")}
    monkeypatch.setattr(
        ingest, "TABLES", {**TABLES, "messages": replace(TABLES["messages"], row_checks=wrong)}
    )
    plan = world.plan()
    job = ingest.Job(plan.catalog, plan.rules, str(tmp_path))
    source = next(one for one in plan.sources if one.form == "lines")
    receipts = [ingest.ingest(job, part) for part in split(source)]
    assert sum(one.broken["messages: nothing is valid"] for one in receipts) > 0
    with pytest.raises(TallystickError, match="nothing is valid"):
        finish_part(tmp_path / source.key, source, receipts)
    assert not (tmp_path / source.key / "part.json").exists()


def test_new_files_are_read_and_known_ones_are_not(world: World) -> None:
    read = {Path(one["path"]).name for one in world.manifest["inputs"] if one["read_now"]}
    assert read == {"archive.jsonl"}
    assert (world.lake / "current").resolve() == (world.lake / world.manifest["folder"]).resolve()
    before, after = (
        {Path(name).name for name in one["tables"]["messages"]["files"]}
        for one in (world.first, world.manifest)
    )
    assert before < after
    for name in before:
        old, new = (
            world.lake / one["folder"] / "messages" / name for one in (world.first, world.manifest)
        )
        assert old.samefile(new)


def test_one_run_at_a_time(world: World, tmp_path: Path) -> None:
    with open_lake(tmp_path), pytest.raises(TallystickError) as told, open_lake(tmp_path):
        pass
    assert told.value.code == "lake.busy"


def test_the_manifest_says_what_went_in_and_what_came_out(world: World) -> None:
    manifest = json.loads((world.lake / "manifest.json").read_bytes())
    assert set(manifest["tables"]) == set(TABLES)
    for name, held in manifest["tables"].items():
        rows = sum(pq.read_metadata(one).num_rows for one in table_files(world.lake, name))
        assert rows == held["rows"], name
        for file in table_files(world.lake, name):
            assert pq.read_schema(file).names == TABLES[name].schema.names
    assert manifest["registry"]["rules"]
    assert {one["form"] for one in manifest["inputs"]} == {"lines", "gzip", "parquet", "journal"}


def test_a_replayed_candidate_names_exactly_what_would_break(world: World) -> None:
    candidate = json.loads((world.registry.parent / "schemas/orders-created.json").read_bytes())
    assert replay(world.lake, WAYS[0].urn, candidate).broken == 0
    candidate["properties"]["amount"]["minimum"] = 450
    told = replay(world.lake, WAYS[0].urn, candidate)
    rules = build_rules(load_catalog(world.registry), quick=False)
    expected: Counter[str] = Counter()
    times = []
    for one in world.records:
        row = judge_record(rules, one.record)
        if row.verdict != "valid" or row.urn != WAYS[0].urn:
            continue
        if json.loads(row.data or b"")["amount"] < 450:
            expected[one.node] += 1
            times.append(row.created_at or 0)
    assert {one.node: one.broken for one in told.producers} == dict(expected)
    assert told.rules == [("/data/amount", "minimum", sum(expected.values()))]
    assert min(one.first or 0 for one in told.producers) == min(times)
    assert all('"amount"' in one["masked"] for one in told.samples)


def test_a_replayed_sample_is_masked(world: World) -> None:
    told = replay(world.lake, WAYS[2].urn, False)
    assert told.broken == told.messages > 0
    assert len(told.samples) == 5
    assert all("@example.com" not in one["masked"] for one in told.samples)


def test_show_gives_rows_that_a_person_can_read(world: World) -> None:
    assert len(read_rows(world.lake, "messages", 7)) == 7
    assert {row["figure"] for row in read_rows(world.lake, "summary", 99)} >= {"lost", "messages"}
    for row in read_rows(world.lake, "quarantine", 99):
        assert isinstance(row["body"], str)
