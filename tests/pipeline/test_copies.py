"""A part gives back the records it was made from, so that other rules can judge them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tallystick.core.errors import TallystickError
from tallystick.pipeline import read
from tallystick.pipeline.copies import find_copies, join_copies
from tallystick.pipeline.ingest import Job, ingest
from tallystick.pipeline.lake import Lake, write_json
from tallystick.pipeline.ranges import check_unread
from tallystick.pipeline.read import read_records
from tallystick.pipeline.sources import Source, find_sources, split
from tallystick.schemas.catalog import load_catalog
from tests.pipeline.test_reading import lines_of


def test_a_copy_gives_the_records_that_were_read(
    tmp_path: Path, registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "LONGEST", 10_000)
    path = tmp_path / "a.jsonl"
    lines = [*lines_of(), b"x" * 30_000, b'{"kind":"capture","format":9}', b"\xff", b"{}"]
    path.write_bytes(b"\n".join(lines) + b"\n")
    (source,) = find_sources([str(path)])
    log = replace(source, changed=None)
    job = Job(load_catalog(registry), "old", str(tmp_path / "parts" / "old"))
    parts = split(log, 40_000)
    assert len(parts) > 2
    for part in parts:
        ingest(job, part)
    wanted = [record for part in parts for record in read_records(part)]
    assert {one.fault for one in wanted} == {None, "line.too_long", "capture.format"}
    write_json(tmp_path / "parts" / "old" / log.key / "part.json", {**log.as_json(), "rows": {}})
    ((copy,),) = find_copies(Lake(tmp_path), "new").values()
    path.unlink()
    assert copy.key == log.key
    assert [record for part in split(copy) for record in read_records(part)] == wanted
    assert find_copies(Lake(tmp_path), "old") == {}


def log(start: int, stop: int, *, copy: str = "") -> Source:
    return Source("log", "lines", stop - start, None, start, copy=copy)


def test_the_older_rules_that_went_furthest_count(tmp_path: Path) -> None:
    for rules, ends in (("a", (0, 5)), ("b", (0, 5, 9)), ("c", (0, 7))):
        for start, stop in pairwise(ends):
            folder = tmp_path / "parts" / rules / log(start, stop).key
            folder.mkdir(parents=True)
            write_json(folder / "part.json", {**log(start, stop).as_json(), "rows": {}})
    found = find_copies(Lake(tmp_path), "new")["log"]
    assert [(one.start, one.stop) for one in found] == [(0, 5), (5, 9)]
    assert all(Path(one.copy).parent.name == "b" for one in found)
    shutil.rmtree(tmp_path / "parts" / "b")
    assert [one.stop for one in find_copies(Lake(tmp_path), "new")["log"]] == [7]


def test_a_copy_that_was_taken_away_since_it_was_planned_is_told(tmp_path: Path) -> None:
    copy = log(0, 5, copy=str(tmp_path / "older"))
    with pytest.raises(TallystickError) as told:
        check_unread(tmp_path / "parts", [copy])
    assert told.value.code == "lake.changed"
    (tmp_path / "older").mkdir()
    write_json(tmp_path / "older" / "part.json", {**copy.as_json(), "rows": {}})
    check_unread(tmp_path / "parts", [copy])


def test_a_copy_never_doubles_what_is_known() -> None:
    copies = [log(0, 5, copy="x"), log(5, 9, copy="x"), log(9, 12, copy="x")]
    found = join_copies([log(0, 5), log(9, 10)], copies)
    assert [(one.start, one.stop, one.copy) for one in found] == [
        (0, 5, ""), (5, 9, "x"), (9, 10, ""),
    ]  # fmt: skip
