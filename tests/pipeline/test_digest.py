"""The digest of a lake and its page, on small lakes that are written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from tallystick.cli import main
from tallystick.pipeline.digest import digest_lake
from tallystick.pipeline.tables import FIGURES, TABLES
from tallystick.report.traffic import build_traffic_page

SECOND = 1_000_000_000


def write_lake(root: Path, **given: list[dict[str, Any]]) -> Path:
    """Write a lake with these rows; columns that are not given are null."""
    tables: dict[str, dict[str, Any]] = {}
    for name, table in TABLES.items():
        rows = given.get(name, [])
        files = []
        if rows:
            (root / "runs" / "k" / name).mkdir(parents=True)
            files = [f"{name}/0.parquet"]
            full = [{column: row.get(column) for column in table.schema.names} for row in rows]
            held = pa.Table.from_pylist(full, schema=table.schema)
            pq.write_table(held, root / "runs" / "k" / files[0])
        tables[name] = {"rows": len(rows), "files": files}
    figures = dict.fromkeys(FIGURES, 0)
    figures["messages"] = tables["messages"]["rows"]
    counts = {"messages": figures["messages"], "envelopes": 0, "quarantine": 0, "verdicts": 0}
    manifest = {
        "key": "k", "started": "2026-11-16", "given": ["/in put"], "folder": "runs/k",
        "registry": {"manifest": "/registry.json"}, "versions": {"tallystick": "0"},
        "inputs": [{"path": "/in put/a", "form": "lines", "size": 0, "rows": counts}],
        "tables": tables, "figures": figures, "seconds": {"read": 0.1},
    }  # fmt: skip
    root.mkdir(exist_ok=True)
    (root / "manifest.json").write_text(json.dumps(manifest))
    return root


def test_a_lake_of_nothing_says_so(tmp_path: Path) -> None:
    lake = write_lake(tmp_path / "lake")
    assert main(["pipeline", "page", "--lake", str(lake), "-o", str(tmp_path / "p")]) == 0
    page = (tmp_path / "p").read_text()
    assert "No message was captured" in page
    for why in (
        "nothing to accept",
        "No record was refused",
        "no messages can be paired",
        "no latency is known",
        "no flow is known",
        "is canonical",
        "looks like personal data",
        "everything registered was seen",
        "no journal",
    ):
        assert why in page


def test_no_lake_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "page", "--lake", str(tmp_path)]) == 2
    assert "no tables here" in capsys.readouterr().err


def timed(*moments: int | None) -> dict[str, list[dict[str, Any]]]:
    return {
        "messages": [{"at": at} for at in moments],
        "envelopes": [{"at": at, "verdict": "valid"} for at in moments],
    }


def test_time_is_cut_at_whole_steps_also_before_the_epoch(tmp_path: Path) -> None:
    lake = write_lake(tmp_path, **timed(-1, 0, -30 * SECOND, 30 * SECOND - 1, None))
    held = digest_lake(lake)["acceptance"]
    assert held["width"] == SECOND
    assert held["start"] == -30 * SECOND
    filled = {at: one["valid"] for at, one in enumerate(held["buckets"]) if one["valid"]}
    assert filled == {0: 1, 29: 1, 30: 1, 59: 1}
    assert held["untimed"]["valid"] == 1


@pytest.mark.parametrize("moments", [(0, 2**63 - 1), (-(2**63), 2**63 - 1), (5,), (None,)])
def test_any_span_has_few_buckets_and_every_record(
    tmp_path: Path, moments: tuple[int | None, ...]
) -> None:
    digest = digest_lake(write_lake(tmp_path, **timed(*moments)))
    held = digest["acceptance"]
    assert len(held["buckets"]) <= 60
    counted = sum(one["valid"] for one in [*held["buckets"], held["untimed"]])
    assert counted == len(moments)
    build_traffic_page(digest)


def test_a_page_stays_small_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    many = range(3000)
    long = "x" * 5000
    lake = write_lake(
        tmp_path,
        quarantine=[{"stage": "decode", "code": f"c{n}{long}"} for n in many],
        violations=[{"urn": f"u{n}{long}", "keyword": "type"} for n in many],
        deliveries=[{"queue": f"q{n}", "broker": long, "sender": f"s{n}", "outcome": "lost",
                     "copies": 0, "altered": False, "reordered": False} for n in many],
        flows=[{"cause": f"{n}:{long}", "effect": f"{n + 1}:{long}", "node": "n", "messages": 1,
                "delay_p50": 1, "first_at": 0, "last_at": 1} for n in many],
        latency=[{"urn": f"u{n}", "sender": long, "receiver": "r", "messages": 1, "p50": 1,
                  "p90": 2, "p99": 3, "maximum": 4, "clock_error": None} for n in many],
    )  # fmt: skip
    digest = digest_lake(lake)
    page = build_traffic_page(digest)
    assert len(page.encode()) < 1_000_000
    assert page.count("and 2,985 more") == 4
    assert "and 2,940 more" in page
    assert long not in page


def test_lost_messages_stand_with_those_delivered_on_their_queue(tmp_path: Path) -> None:
    row = {"queue": "q", "broker": "kafka", "sender": "s", "receiver": "r", "outcome": "delivered",
           "copies": 0, "altered": False, "reordered": False}  # fmt: skip
    rows = [row, row, {**row, "copies": 2}, {**row, "altered": True, "reordered": True},
            {**row, "outcome": "lost", "receiver": None},
            {**row, "outcome": "unexpected", "sender": None}]  # fmt: skip
    (way,) = digest_lake(write_lake(tmp_path, deliveries=rows))["deliveries"]["rows"]
    assert way == {
        "queue": "q", "broker": "kafka", "senders": ["s"], "receivers": ["r"], "delivered": 4,
        "lost": 1, "duplicated": 1, "unexpected": 1, "altered": 1, "reordered": 1, "unobserved": 0,
    }  # fmt: skip


def test_the_command_is_whole_and_quoted(tmp_path: Path) -> None:
    lake = write_lake(tmp_path)
    command = digest_lake(lake)["command"]
    assert command == (
        f"tally pipeline run --input '/in put' --registry /registry.json --out {lake} --force"
    )
