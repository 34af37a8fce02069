"""Small parts joined into one: the same rows, and none twice whenever it is killed."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from tallystick.pipeline.clean import clean
from tallystick.pipeline.ingest import Job, ingest, part_tables
from tallystick.pipeline.lake import Lake
from tallystick.pipeline.merge import FEW, MOST, find_merges, join_parts
from tallystick.pipeline.parts import finish_part
from tallystick.pipeline.ranges import read_parts
from tallystick.pipeline.sources import Source, find_sources, split
from tallystick.schemas.catalog import load_catalog
from tests.pipeline.test_clean import add_run
from tests.pipeline.test_reading import lines_of


def logs(*sizes: int, form: str = "lines") -> list[Source]:
    found, at = [], 0
    for size in sizes:
        found.append(Source("log", form, size, None, at))
        at += size
    return found


@pytest.mark.parametrize(
    ("parts", "joined"),
    [
        (logs(*[5] * (FEW - 1)), []),
        (logs(*[5] * (FEW + 1)), [FEW + 1]),
        (logs(*[5] * FEW, MOST, *[5] * FEW), [FEW, FEW]),
        (logs(*[MOST // FEW] * (2 * FEW)), [FEW, FEW]),
        (logs(*[MOST] * FEW), []),
        (logs(*[5] * FEW, form="gzip"), []),
        ([one for one in logs(*[5] * (FEW + 3)) if one.start != 10], [FEW]),
    ],
)
def test_small_neighbours_are_joined(parts: list[Source], joined: list[int]) -> None:
    found = find_merges(parts)
    assert [len(group) for group in found] == joined
    for group in found:
        assert all(one.stop == two.start for one, two in pairwise(group))


def test_a_joined_part_has_the_rows_of_its_parts_once(tmp_path: Path, registry: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(lines_of(100)) + b"\n")
    (source,) = find_sources([str(path)])
    folder = tmp_path / "parts" / "new"
    job = Job(load_catalog(registry), "new", str(folder))
    ends, lines = [0], path.read_bytes().splitlines(keepends=True)
    for at in range(0, len(lines), 20):
        ends.append(ends[-1] + sum(len(one) for one in lines[at : at + 20]))
    parts = [
        replace(source, changed=None, start=start, size=stop - start)
        for start, stop in pairwise(ends)
    ]
    for one in parts:
        finish_part(folder / one.key, one, [ingest(job, split(one)[0])])
    before = {
        name: pa.concat_tables([
            pq.read_table(file) for one in parts
            for file in sorted((folder / one.key).glob(f"{name}-*"))
        ] or [schema.empty_table()])
        for name, schema in part_tables().items()
    }  # fmt: skip
    assert before["messages"].num_rows == len(lines)
    written = folder / parts[0].key / "messages-00000.parquet"
    for name, left in (("whole", written.read_bytes()), ("torn", b"PAR1")):
        written.with_name(f"{written.name}.{name}").write_bytes(left)  # by a task that was killed
    whole, receipt = join_parts(folder, parts)
    assert read_parts(folder)[str(path)] == parts  # it is not finished
    finish_part(folder / whole.key, whole, [receipt])
    assert read_parts(folder)[str(path)] == [whole]  # the others are still there
    for name, table in before.items():
        files = sorted((folder / whole.key).glob(f"{name}-*"))
        assert (pq.read_table(files[0]) if files else table.schema.empty_table()).equals(table)
    add_run(tmp_path, "run", "new", [whole.key])
    assert clean(Lake(tmp_path), 1).parts == len(parts)
    assert [one.name for one in folder.iterdir()] == [whole.key]
