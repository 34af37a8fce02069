"""Reading: every record of every kind of file comes out once, and what is broken says so."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.capture import check_row
from tallystick.core.capture_columns import COLUMNS, CaptureRow, arrow_schema
from tallystick.core.errors import Rejected, TallystickError
from tallystick.pipeline import read
from tallystick.pipeline.capture import Record, faulty
from tallystick.pipeline.read import _read_batch, read_records
from tallystick.pipeline.sources import find_sources, split
from tests.pipeline.captures import write_line
from tests.pipeline.planted import plant


def lines_of(count: int = 300) -> list[bytes]:
    return [write_line(one.record) for one in plant(count)[1]]


def read_all(path: Path, share: int = 1 << 30) -> list[Any]:
    (source,) = find_sources([str(path)])
    return [record for part in split(source, share) for record in read_records(part)]


def test_a_file_cut_anywhere_gives_every_line_once(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = lines_of()
    path.write_bytes(b"\n".join(lines) + b"\n\n  \n")
    whole = read_all(path)
    assert len(whole) == len(lines)
    for share in (1, 37, 1000, 5000, 1 << 20):
        assert read_all(path, share) == whole


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, "zstd"])
def test_compressed_lines_are_the_same_records(tmp_path: Path, pack: Any) -> None:
    raw = b"\n".join(lines_of()) + b"\n"
    plain, packed = tmp_path / "a.jsonl", tmp_path / "b.packed"
    plain.write_bytes(raw)
    packed.write_bytes(
        pa.compress(raw, codec="zstd", asbytes=True) if pack == "zstd" else pack(raw)
    )
    same = [one._replace(source="") for one in read_all(plain)]
    assert [one._replace(source="") for one in read_all(packed)] == same


def test_a_truncated_archive_keeps_what_can_be_read_and_says_where_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    lines = lines_of()
    path.write_bytes(gzip.compress(b"\n".join(lines) + b"\n")[:-2000])
    *good, last = read_all(path)
    assert last.fault == "file.broken"
    assert 0 < len(good) < len(lines)
    assert all(one.fault is None for one in good)


def test_a_line_still_being_written_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    first, second = lines_of()[:2]
    path.write_bytes(first + b"\n" + second[:-20])
    assert [one.fault for one in read_all(path)] == [None, "line.cut"]
    path.write_bytes(first + b"\n" + second)
    assert [one.fault for one in read_all(path)] == [None, None]


def test_what_is_written_after_the_look_waits_for_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = lines_of()[:3]
    path.write_bytes(lines[0] + b"\n")
    (source,) = find_sources([str(path)])
    with path.open("ab") as file:
        file.write(lines[1] + b"\n")
    assert len(list(read_records(split(source)[0]))) == 1
    assert len(read_all(path)) == 2


@pytest.mark.parametrize("packed", [False, True])
def test_a_line_too_long_keeps_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    monkeypatch.setattr(read, "LONGEST", 10_000)
    first, second = lines_of()[:2]
    raw = b"\n".join([first, b"x" * 3_000_000, second]) + b"\n"
    path = tmp_path / "a.jsonl"
    path.write_bytes(gzip.compress(raw) if packed else raw)
    one, two, three = read_all(path)
    assert (one.fault, two.fault, three.fault) == (None, "line.too_long", None)
    assert "3000000" in two.reason or "3000001" in two.reason
    assert len(two.body) <= 1 << 16


def test_garbage_is_a_record_and_nothing_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(range(256)) * 3)
    assert b"\n".join(one.body for one in read_all(path)) == bytes(range(256)) * 3
    path.write_bytes(b"")
    assert read_all(path) == []


def rows_of(count: int) -> list[dict[str, Any]]:
    return [{name: getattr(one.record, name) for name in COLUMNS} for one in plant(count)[1]]


def test_parquet_rows_are_the_same_records_however_they_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = rows_of(300)
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=70)
    whole = read_all(path)
    assert [one.body for one in whole] == [row["body"] for row in rows]
    assert [one.position for one in whole] == list(range(len(rows)))
    assert read_all(path, 1) == whole


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [("clock_error", -1, "from 0"), ("direction", "up", "'up'")],
)
def test_a_row_that_says_what_cannot_be_is_a_record_with_a_fault(
    name: str, value: Any, told: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"body": ["{}", "[]"], name: [None, value]}), path)
    good, bad = read_all(path)
    assert (good.fault, good.body) == (None, b"{}")
    assert (bad.fault, bad.body) == ("capture.malformed", b"[]")
    assert told in bad.reason


ROWS = st.builds(
    CaptureRow,
    st.sampled_from(["sent", "received", "tapped", None, "up", ""]),
    st.none(), st.none(), st.none(),
    st.sampled_from([None, 0, -1, 2**63 - 1, -(2**63)]),
    st.sampled_from([None, 0, 1, -1, -(2**63)]),
    st.sampled_from([None, 0, -1]),
    st.just(b"{}"),
    st.none(),
)  # fmt: skip


@given(st.lists(ROWS, max_size=4))
def test_a_batch_gives_every_row_the_verdict_of_its_own_check(rows: list[CaptureRow]) -> None:
    columns = [[row[place] for row in rows] for place in range(len(COLUMNS))]
    records = _read_batch(pa.record_batch(columns, schema=arrow_schema(pa)), "file", 0)
    assert list(records) == [judge_row(row, place) for place, row in enumerate(rows)]


def judge_row(row: CaptureRow, place: int) -> Record:
    try:
        return Record("file", place, *check_row(row))
    except Rejected as error:
        return faulty("file", place, row.body, "capture.malformed", error.message)


def test_a_torn_parquet_file_is_a_record(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist(rows_of(50)), path)
    path.write_bytes(path.read_bytes()[:-100])
    assert [one.fault for one in read_all(path)] == ["file.broken"]


def test_a_parquet_file_without_bodies_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [1]}), path)
    with pytest.raises(TallystickError) as told:
        read_all(path)
    assert told.value.code == "input.columns"


@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [
        ("at", pa.timestamp("ns"), 1),
        ("at", pa.uint64(), 2**64 - 1),
        ("sequence", pa.float64(), 1.5),
        ("node", pa.int64(), 1),
        ("broker", pa.list_(pa.string()), ["kafka"]),
        ("sections", pa.binary(), b"{}"),
        ("body", pa.int64(), 1),
    ],
)
def test_a_column_of_another_kind_is_told(
    name: str, kind: pa.DataType, value: Any, tmp_path: Path
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"body": [b"{}"], name: pa.array([value], kind)}), path)
    with pytest.raises(TallystickError) as told:
        read_all(path)
    assert told.value.code == "input.columns"


def test_a_parquet_file_whose_texts_are_none_is_a_record(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    no_text = pa.array([b"\xff"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"body": [b"{}"], "node": no_text}), path)
    assert [one.fault for one in read_all(path)] == ["file.broken"]


def test_inputs_that_lead_nowhere_are_told(tmp_path: Path) -> None:
    (tmp_path / "_hidden").write_bytes(b"x")
    for name, code in (
        (str(tmp_path), "input.empty"),
        (str(tmp_path / "*.jsonl"), "input.empty"),
        (str(tmp_path / "nobody"), "input.missing"),
    ):
        with pytest.raises(TallystickError) as told:
            find_sources([name])
        assert told.value.code == code


def test_a_changed_file_has_another_key(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"{}\n")
    (first,) = find_sources([str(path)])
    path.write_bytes(b"{}\n{}\n")
    (second,) = find_sources([str(path)])
    assert first.key != second.key
