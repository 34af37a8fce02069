"""The page of a lake in a real browser: its plots are right for the planted truth."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from tallystick.cli import main
from tallystick.pipeline import run
from tallystick.pipeline.digest import FAULTS, SERIES, digest_lake
from tallystick.pipeline.tables import TABLES
from tests.browser import browse
from tests.pipeline.captures import write_line
from tests.pipeline.planted import ERROR, SKEW, WAYS, Planted, Truth, plant, way_of
from tests.pipeline.test_digest import write_lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent / "page"
COUNT = 3000
HOSTILE = "\"'></script><script>alert(1)</script><img src=x onerror=alert(1)><!--data-->"


@dataclass(frozen=True)
class World:
    """Planted traffic, the truth about it, its lake, and what a browser saw of its page."""

    truth: Truth
    records: list[Planted]
    lake: Path
    seen: dict[str, Any]


def write_lines(path: Path, records: list[Planted]) -> None:
    path.write_bytes(b"".join(write_line(one.record) + b"\n" for one in records))


@pytest.fixture(scope="module")
def world(spark: SparkSession, registry: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("planted")
    inputs, lake = folder / "in", folder / "lake"
    inputs.mkdir()
    truth, planted = plant(COUNT, seed=7)
    records = list(planted)
    logs = defaultdict(list)
    for one in records:
        logs[one.node].append(one)
    for node, held in logs.items():
        write_lines(inputs / f"{node}.jsonl", held)
    run.run(run.make_plan([str(inputs)], registry, lake), session=spark)
    assert main(["pipeline", "page", "--lake", str(lake)]) == 0
    return World(truth, records, lake, browse(lake / "page.html", HERE / "check.mjs", folder))


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Give what a browser sees of a lake in which every text is hostile."""
    folder = tmp_path_factory.mktemp("odd")
    given = {
        "at": 1, "messages": 1, "of_form": 1, "copies": 0, "p50": 1, "p90": 2, "p99": 3,
        "maximum": 4, "delay_p50": 5, "first_at": 0, "last_at": 9, "basis": "form",
        "outcome": "lost", "altered": False, "reordered": False, "registered": False, "seen": True,
        "passed": 1, "failed": 1,
    }  # fmt: skip
    rows = {}
    for name, table in TABLES.items():
        texts = {one.name: HOSTILE for one in table.schema if one.type == pa.string()}
        rows[name] = [{**texts, **{key: given[key] for key in table.schema.names if key in given}}]
    (flow,) = rows["flows"]
    rows["flows"] = [{**flow, "cause": f"{HOSTILE}1", "effect": f"{HOSTILE}2"},
                     {**flow, "cause": f"{HOSTILE}2", "effect": f"{HOSTILE}1"}]  # fmt: skip
    lake = write_lake(folder / "lake", **rows)
    assert main(["pipeline", "page", "--lake", str(lake), "-o", str(folder / "page.html")]) == 0
    return browse(folder / "page.html", HERE / "check.mjs", folder)


def fate(truth: Truth, number: int) -> str:
    """Say what must become of the records of a message."""
    if number in truth.broken:
        return "violating" if truth.broken[number].stage == "schema" else "refused"
    return "unknown" if number in truth.foreign else "valid"


def test_the_page_opens_from_disk_alone_and_without_errors(world: World) -> None:
    assert world.seen["errors"] == []
    assert world.seen["elsewhere"] == []
    assert (world.lake / "page.html").stat().st_size < 1_000_000


def test_acceptance_over_time_is_that_of_the_planted_records(world: World) -> None:
    held = digest_lake(world.lake)["acceptance"]
    planted = Counter(
        ((one.record.at or 0) // held["width"], fate(world.truth, one.number))
        for one in world.records
    )
    first = held["start"] // held["width"]
    for panel, series in (("all", SERIES), ("rest", SERIES[1:])):
        drawn = {
            (first + int(one["at"]), one["series"]): int(one["value"])
            for one in world.seen["acceptance"] if one["panel"] == panel
        }  # fmt: skip
        assert drawn == {key: n for key, n in planted.items() if key[1] in series}
    assert {one["series"] for one in world.seen["acceptance"]} == set(SERIES)
    told = world.seen["tables"]["Records over time"]
    assert sum(int(cell.replace(",", "")) for row in told for cell in row[1:]) == len(world.records)


def test_columns_are_as_high_as_their_counts_and_stand_on_each_other(world: World) -> None:
    for panel in ("all", "rest"):
        marks = [one for one in world.seen["acceptance"] if one["panel"] == panel]
        scales = {round(one["height"] / int(one["value"]), 2) for one in marks}
        assert max(scales) - min(scales) <= 0.02
        columns = defaultdict(list)
        for one in marks:
            columns[int(one["at"])].append(one)
        ground = max(one["top"] + one["height"] for one in marks)
        for held in columns.values():
            bottom = ground
            for one in held:
                assert one["top"] + one["height"] == pytest.approx(bottom, abs=0.1)
                bottom = one["top"]
        (first, *_), (last, *_) = columns[min(columns)], columns[max(columns)]
        step = (last["left"] - first["left"]) / (max(columns) - min(columns))
        for at, (one, *_) in columns.items():
            place = first["left"] + step * (at - min(columns))
            assert one["left"] == pytest.approx(place, abs=0.5)


def test_refusals_and_broken_rules_are_those_that_were_planted(world: World) -> None:
    planted = Counter(
        (world.truth.broken[one.number].stage, world.truth.broken[one.number].code)
        for one in world.records if one.number in world.truth.broken
    )  # fmt: skip
    told = world.seen["tables"]["Refused records by stage and reason"]
    assert {(stage, code): int(times) for stage, code, times, _ in told} == dict(planted)
    assert [int(one["value"]) for one in world.seen["stages"]] == [int(row[2]) for row in told]
    most = max(int(one["value"]) for one in world.seen["stages"])
    wide = max(one["width"] for one in world.seen["stages"])
    for one in world.seen["stages"]:
        assert one["width"] == pytest.approx(wide * int(one["value"]) / most, abs=1)
    broken = {WAYS[way_of(number)[1]].urn for number, one in world.truth.broken.items()
              if one.stage == "schema"}  # fmt: skip
    rules = world.seen["tables"]["Schema violations by URN and keyword"]
    assert {row[0] for row in rules} == broken
    assert {row[1] for row in rules} == {"required", "type"}


def test_loss_and_duplication_stand_at_their_queues(world: World) -> None:
    truth = world.truth
    numbers = {"lost": truth.lost, "duplicated": truth.doubled, "unexpected": truth.unexpected,
               "altered": truth.altered, "reordered": truth.delayed}  # fmt: skip
    planted: dict[str, dict[str, int]] = {way.queue: {} for way in WAYS}
    for name, held in numbers.items():
        for number in held:
            faults = planted[WAYS[way_of(number)[1]].queue]
            faults[name] = faults.get(name, 0) + 1
    drawn = {
        queue: {one["series"]: one["value"] for one in marks}
        for queue, marks in world.seen["faults"]
    }
    assert drawn == planted
    for name, held in numbers.items():
        assert sum(one.get(name, 0) for one in drawn.values()) == len(held), name
    every = [one for _, marks in world.seen["faults"] for one in marks]
    scales = {round((one["right"] - one["left"]) / one["value"], 1) for one in every}
    assert max(scales) - min(scales) <= 0.2
    for _, marks in world.seen["faults"]:
        for one, after in pairwise(marks):
            assert after["left"] == pytest.approx(one["right"], abs=0.1)
    for row in world.seen["tables"]["Deliveries by queue"]:
        way = next(one for one in WAYS if row[0].startswith(one.queue))
        assert f"{way.sender} → {way.receiver}, kafka" in row[0]


def test_latency_is_drawn_where_it_is_with_the_clocks_around_it(world: World) -> None:
    ways = {way.urn: way for way in WAYS}
    rows = [(urn, marks) for urn, marks in world.seen["latency"] if urn in ways]
    assert {urn for urn, _ in rows} == set(ways)
    points = []
    for urn, marks in rows:
        way = ways[urn]
        true = way.milliseconds * 1_000_000
        for one in marks:
            value, error = int(one["value"]), int(one["error"])
            assert error == 2 * ERROR
            assert value == true + SKEW[way.receiver] - SKEW[way.sender], one["percentile"]
            assert abs(value - true) <= error
            assert one["point"] - one["from"] == pytest.approx(one["to"] - one["point"], abs=1)
            points.append((value, one["point"], (one["to"] - one["from"]) / (2 * error)))
    (low, left, scale), (high, right, _) = min(points), max(points)
    for value, place, own in points:
        assert own == pytest.approx(scale, rel=0.02)
        assert place == pytest.approx(left + (value - low) * (right - left) / (high - low), abs=1)


def test_the_flow_map_is_the_planted_chain(world: World) -> None:
    chain = [way.urn for way in WAYS[:3]]
    arrows = {(one["cause"], one["effect"]): one for one in world.seen["arrows"]}
    assert set(arrows) == {(chain[0], chain[1]), (chain[1], chain[2])}
    assert {one["urn"] for one in world.seen["boxes"]} == set(chain)
    lines = {(row[1], row[0]): row for row in world.seen["tables"]["Flows"]}
    for pair, one in arrows.items():
        assert int(lines[pair][3].replace(",", "")) == int(one["value"])
        assert lines[pair][5] == "3 ms"
        assert int(one["delay"]) == 3_000_000


def test_drift_exposure_and_coverage_are_named(world: World) -> None:
    tables = world.seen["tables"]
    assert {row[0] for row in tables["Drift"]} == set(world.truth.drifted.values())
    leaks = Counter(WAYS[way_of(number)[1]].urn for number in world.truth.leaked)
    found: Counter[str] = Counter()
    for field, urn, _, basis, messages in tables["Exposure"]:
        if "not marked" in basis:
            assert field == "data.name"
            found[urn] += int(messages)
    assert found == {urn: 2 * n for urn, n in leaks.items()}
    assert ["zz_extra" in row[0] for row in tables["Coverage"]].count(True) > 0
    assert any(row[1] == "urn:babel:nobody:knows" for row in tables["Coverage"])


def test_the_run_can_be_repeated_from_the_page(world: World) -> None:
    figures = {one["figure"]: int(one["value"]) for one in world.seen["tiles"]}
    assert figures["messages"] == len(world.records)
    assert figures["lost"] == len(world.truth.lost)
    rows = dict(world.seen["tables"]["Rows"])
    assert rows["messages"] == f"{len(world.records):,}"
    assert len(world.seen["tables"]["Inputs"]) == 4
    command = world.seen["command"].split()
    assert command[:3] == ["tally", "pipeline", "run"]
    assert command[command.index("--input") + 1] == str(world.lake.parent / "in")
    assert main([*command[1:], "--dry-run"]) == 0


def test_the_page_is_usable_by_keys_in_light_dark_and_on_a_telephone(world: World) -> None:
    assert world.seen["tip"].endswith("valid")
    assert world.seen["tipHidden"] is True
    assert world.seen["faultsLight"] == []
    assert world.seen["faultsDark"] == []
    assert world.seen["overflow"] is False


def test_names_of_strangers_are_text_everywhere(odd: dict[str, Any]) -> None:
    assert odd["dialogs"] == 0
    assert odd["errors"] == []
    assert odd["elsewhere"] == []
    assert {one["urn"] for one in odd["boxes"]} == {f"{HOSTILE}1", f"{HOSTILE}2"}
    assert {(one["cause"][-1], one["effect"][-1]) for one in odd["arrows"]} == {
        ("1", "2"), ("2", "1"),
    }  # fmt: skip
    for name, rows in odd["tables"].items():
        text = "".join(cell for row in rows for cell in row)
        assert name in {"Records over time", "Inputs", "Rows"} or HOSTILE in text, name


def test_a_fault_that_the_page_names_is_a_figure_of_the_run(world: World) -> None:
    assert set(FAULTS) <= set(digest_lake(world.lake)["run"]["figures"])
