"""Streams of topics and folders: killed anywhere, nothing is lost and nothing is doubled."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from tallystick.cli import main
from tallystick.core.errors import TallystickError
from tallystick.pipeline import stream as module
from tallystick.pipeline.capture import read_line
from tallystick.pipeline.lake import read_manifest
from tallystick.pipeline.logs import Logs, find_logs
from tallystick.pipeline.merge import FEW
from tallystick.pipeline.sources import RECORD
from tallystick.pipeline.stream import make_stream, stream
from tests.pipeline.held import held_environment, read_tables, running, wait_held
from tests.pipeline.test_kafka import bodies, kafka, produce, topic
from tests.pipeline.test_reading import lines_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["kafka", "topic"]


def reader(*inputs: Path, batch: int = 1000) -> Any:
    options = {"url": json.dumps([str(one) for one in inputs]), "batch": str(batch)}
    return Logs(options).streamReader(schema=None)


def batches(look: Any) -> list[list[tuple[Any, ...]]]:
    """Give the rows of each batch until nothing is new."""
    found, start = [], look.initialOffset()
    while (end := look.latestOffset(start, look.getDefaultReadLimit())) != start:
        found.append([row for part in look.partitions(start, end) for row in look.read(part)])
        start = end
    return found


def test_a_line_counts_when_its_end_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    first, second = lines_of()[:2]
    for written, size in (
        (b"", None),
        (first[:40], None),
        (first, None),
        (first + b"\n", len(first) + 1),
        (first + b"\n" + second, len(first) + 1),
        (first + b"\n" + second + b"\n", len(first) + len(second) + 2),
    ):
        path.write_bytes(written)
        assert [one.size for one in find_logs([str(tmp_path)])] == ([size] if size else [])
    path.write_bytes(first + b"\n" + b"x" * 300_000)
    assert [one.size for one in find_logs([str(tmp_path)])] == [len(first) + 1]


def test_a_file_of_another_form_is_read_once_it_is_whole(tmp_path: Path) -> None:
    head = b'{"kind":"head","format":1,"run":"r"}\n'
    (tmp_path / "a.jsonl.part").write_bytes(lines_of()[0] + b"\n")
    for name, begun, whole in (
        ("b.parquet", b"PAR1", b"PAR1....PAR1"),
        ("a.parquet", b"PAR1....", b"PAR1....PAR1"),
        ("a.journal", head, head + b'{"kind": "foot"}\n'),
    ):
        path = tmp_path / name
        path.write_bytes(begun)
        assert not find_logs([str(tmp_path)])
        path.write_bytes(whole)
        assert [one.stop for one in find_logs([str(tmp_path)])] == [len(whole)]
        path.unlink()


def test_offsets_are_the_ends_of_logs(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"{}\n")
    look = reader(tmp_path)
    first = look.latestOffset(look.initialOffset(), None)
    assert look.latestOffset(first, None) == first
    (tmp_path / "a").write_bytes(b"{}\n{}\n{")
    (tmp_path / "b").write_bytes(b"{}\n")
    second = look.latestOffset(first, None)
    (partition,) = look.partitions(first, second)
    assert list(look.read(partition)) == [
        (str(tmp_path / "a"), "lines", 3, 6, ""),
        (str(tmp_path / "b"), "lines", 0, 3, ""),
    ]
    assert look.partitions(second, second) == []
    (tmp_path / "b").unlink()
    assert look.latestOffset(second, None) == second
    (tmp_path / "a").write_bytes(b"{}\n")
    with pytest.raises(TallystickError) as told:
        look.latestOffset(second, None)
    assert told.value.code == "input.rewound"


def test_a_batch_has_about_so_many_records_and_whole_lines(tmp_path: Path) -> None:
    line = b"x" * (RECORD - 1) + b"\n"
    for name, count in (("a", 30), ("b", 10), ("c", 1)):
        (tmp_path / name).write_bytes(line * (count - 1) + line[:100] + line)
    ends: dict[str, int] = {}
    found = batches(reader(tmp_path, batch=8))
    for rows in found:
        for path, _, start, stop, _ in rows:
            assert start == ends.get(path, 0)
            assert Path(path).read_bytes()[start:stop].endswith(b"\n")
            ends[path] = stop
        assert sum(row[3] - row[2] for row in rows) <= (8 + len(rows)) * RECORD
    assert ends == {str(one): one.stat().st_size for one in tmp_path.iterdir()}
    assert {row[0] for row in found[0]} == set(ends), "no log waits for another"


def test_a_batch_takes_whole_files_one_by_one(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(b"\x1f\x8b" + bytes(5 * RECORD))
    rows = batches(reader(tmp_path, batch=2))
    assert [[Path(row[0]).name for row in one] for one in rows] == [["a"], ["b"]]
    assert len(batches(reader(tmp_path, batch=1000))) == 1


def test_what_comes_after_the_start_is_for_the_next_time(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"{}\n")
    look = reader(tmp_path)
    look.prepareForTriggerAvailableNow()
    (tmp_path / "a").write_bytes(b"{}\n{}\n")
    assert look.latestOffset({}, None)[str(tmp_path / "a")]["stop"] == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--trigger", "soon"], "is not a time"),
        (["--input", "nobody"], "no such file"),
        (["--conf", "x"], "not KEY=VALUE"),
        (["--batch", "0"], "not a whole number above 0"),
    ],
)
def test_what_is_wrong_with_a_stream_is_one_clear_line(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    registry: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = ["--registry", str(registry), "--out", str(tmp_path / "lake"), "--input", str(tmp_path)]
    assert main(["pipeline", "stream", *out, *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_killed_stream_goes_on_as_if_nothing_had_been(
    spark: SparkSession, registry: Path, kafka: str, topic: str, tmp_path: Path
) -> None:
    """Kill it between two parts of its first batch; let it end, and compare with one that goes on
    and on until it is stopped.
    """
    records, lines = bodies(200), lines_of(100)
    folder, lake = tmp_path / "in", tmp_path / "lake"
    folder.mkdir()
    log = folder / "a.jsonl"
    log.write_bytes(b"\n".join(lines[:50]) + b"\n" + lines[50][:30])
    produce(kafka, topic, records[:150])
    inputs = [f"{kafka}/{topic}", str(folder)]
    flag = tmp_path / "held"
    command = ["pipeline", "stream", "--registry", str(registry), "--out", str(lake),
               "--available-now", "--input", inputs[0], "--input", inputs[1]]  # fmt: skip
    with running(command, held_environment("os.rename", "*/part.json", 3, flag)) as process:
        wait_held(process, flag)
    parts = list(lake.glob("parts/*/*/part.json"))
    assert len(parts) == 2
    assert not (lake / "manifest.json").exists()
    log.write_bytes(b"\n".join(lines) + b"\n")
    produce(kafka, topic, records[150:], 150)
    stream(make_stream(inputs, registry, lake), spark)
    assert set(parts) < set(lake.glob("parts/*/*/part.json"))
    undisturbed = tmp_path / "undisturbed"
    stopping = Event()
    task = make_stream(inputs, registry, undisturbed)
    stream(task, spark, every="1 second", stopping=stopping, tell=lambda _: stopping.set())
    wanted, found = read_tables(undisturbed), read_tables(lake)
    assert len(wanted["messages"]) == len(records) + len(lines)
    for name in wanted:
        assert found[name] == wanted[name], name
    before = read_manifest(lake)
    assert before["given"] == inputs
    shutil.rmtree(lake / "streams")
    stream(make_stream(inputs, registry, lake), spark)
    assert read_manifest(lake) == before


def test_a_stream_starts_again_when_python_was_too_slow_to_start(
    spark: SparkSession, registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    start, starts, lines = module._start, [], lines_of(20)

    def start_late(*args: Any) -> Any:
        starts.append(args)
        if len(starts) < 3:
            raise RuntimeError("[STREAM_FAILED] Python worker failed to connect back. SQLSTATE: X")
        return start(*args)

    monkeypatch.setattr(module, "_start", start_late)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    manifest = stream(make_stream([str(tmp_path / "in")], registry, tmp_path / "lake"), spark)
    assert manifest is not None
    assert manifest["figures"]["messages"] == len(lines)
    assert [record.levelname for record in caplog.records].count("WARNING") == 2


def test_a_stream_that_never_starts_ends_with_the_reason(
    spark: SparkSession, registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = []

    def start_never(*args: Any) -> Any:
        starts.append(args)
        raise RuntimeError("Python worker failed to connect back.")

    monkeypatch.setattr(module, "_start", start_never)
    (tmp_path / "in").mkdir()
    task = make_stream([str(tmp_path / "in")], registry, tmp_path / "lake")
    with pytest.raises(TallystickError, match="connect back"):
        stream(task, spark)
    assert len(starts) == module._STARTS


def test_a_stream_of_many_small_batches_joins_their_parts(
    spark: SparkSession, registry: Path, tmp_path: Path
) -> None:
    lines = lines_of(FEW)[: FEW + 2]
    log = tmp_path / "a.jsonl"
    log.write_bytes(b"\n".join(lines) + b"\n")
    task = make_stream([str(log)], registry, tmp_path / "lake")
    manifest = stream(task, spark, batch=1)
    assert len(list(task.checkpoint.glob("offsets/[0-9]*"))) == len(lines)
    (part,) = task.lake.glob("parts/*/*/part.json")
    assert manifest is not None
    assert manifest["figures"]["messages"] == len(lines)
    held = pq.read_table(part.parent / "messages-00000.parquet").sort_by("position")
    assert held["body"].to_pylist() == [read_line(one, "", 0).body for one in lines]
