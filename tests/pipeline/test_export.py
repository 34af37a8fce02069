"""Exported tables: what others read is one published run, whole, whoever else writes meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.request import Request, urlopen
from uuid import uuid4

import duckdb
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from tallystick.cli import main
from tallystick.core.errors import Unavailable, UsageError
from tallystick.pipeline.delta import (
    Published,
    Store,
    open_store,
    open_version,
    publish,
    read_published,
    vacuum,
)
from tallystick.pipeline.export import export_tables
from tallystick.pipeline.tables import TABLES

NOW = "2026-11-17T00:00:00+00:00"


S3_SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
server.stop()
"""


@pytest.fixture(scope="session")
def s3_options() -> Iterator[Mapping[str, str]]:
    """Run an S3 server on loopback until its input ends; give the options that reach it."""
    with subprocess.Popen(
        [sys.executable, "-c", S3_SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{int(server.stdout.readline())}",
            "AWS_ACCESS_KEY_ID": "tests",
            "AWS_SECRET_ACCESS_KEY": "tests",
            "AWS_REGION": "us-east-1",
        }
        assert server.stdin is not None
        server.stdin.close()


@pytest.fixture(params=["disk", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "disk":
        return open_store(str(tmp_path / "shared"))
    options: Mapping[str, str] = request.getfixturevalue("s3_options")
    bucket = f"tally-{uuid4().hex}"
    create = Request(f"{options['AWS_ENDPOINT_URL']}/{bucket}", method="PUT")
    with urlopen(create, timeout=60) as answer:
        assert answer.status == 200
    return open_store(f"s3a://{bucket}/shared", options)


def write_lake(root: Path, key: str = "k1", rows: int = 3) -> Path:
    """Write the tables `masked` and `summary` of one run as the pipeline leaves them."""
    folder = root / "runs" / key
    tables = {
        "masked": [
            {"source": "file", "position": at, "urn": "urn:a", "verdict": "valid",
             "masked": f'{{"n":"{key}-{at}"}}'.encode()}
            for at in range(rows)
        ],
        "summary": [{"figure": "messages", "value": rows}],
    }  # fmt: skip
    about = {}
    for name, lines in tables.items():
        (folder / name).mkdir(parents=True)
        table = pa.Table.from_pylist(lines, schema=TABLES[name].schema)
        half = rows // 2
        for number, part in enumerate((table.slice(0, half), table.slice(half))):
            pq.write_table(part, folder / name / f"{number}.parquet")
        files = [f"{name}/{number}.parquet" for number in range(2)]
        about[name] = {"rows": len(lines), "files": files}
    manifest = {
        "key": key, "folder": f"runs/{key}", "registry": {}, "inputs": [], "started": NOW,
        "tables": about,
    }  # fmt: skip
    (root / "manifest.json").write_text(json.dumps(manifest))
    return root


def rows_of(marks: str) -> pa.RecordBatchReader:
    return pa.table({"mark": list(marks)}).to_reader()


def marks_in(store: Store, run: Published, name: str) -> str:
    column = open_version(store, name, run.versions[name]).to_pyarrow_table()["mark"]
    return "".join(column.to_pylist())


def test_every_reader_sees_the_rows_of_the_lake(store: Store, tmp_path: Path) -> None:
    lake = write_lake(tmp_path / "lake")
    done = export_tables(lake, store, ["masked"], now=NOW, keep=3)
    (run,) = read_published(store)
    assert (done.run, done.rows, done.skipped) == (run, {"masked": 3}, False)
    table = open_version(store, "masked", run.versions["masked"])
    expected = [f'{{"n":"k1-{at}"}}'.encode() for at in range(3)]
    assert sorted(table.to_pyarrow_table()["masked"].to_pylist()) == expected
    frame = pl.read_delta(
        store.table("masked"), version=run.versions["masked"], storage_options=dict(store.options)
    )
    assert sorted(frame["masked"].to_list()) == expected
    if not store.options:
        query = duckdb.execute("select masked from read_parquet(?)", [table.file_uris()])
        assert sorted(row[0] for row in query.fetchall()) == expected


def test_the_same_run_is_copied_once_and_a_new_run_replaces_it(
    store: Store, tmp_path: Path
) -> None:
    lake = write_lake(tmp_path / "lake")
    first = export_tables(lake, store, ["masked"], now=NOW, keep=3)
    again = export_tables(lake, store, ["masked"], now=NOW, keep=3)
    assert (again.run, again.skipped) == (first.run, True)
    both = export_tables(lake, store, ["summary"], now=NOW, keep=3)
    assert set(both.run.versions) == {"masked", "summary"}
    write_lake(lake, "k2", rows=5)
    later = export_tables(lake, store, ["summary"], now=NOW, keep=3)
    assert set(later.run.versions) == {"summary"}, "`masked` of the new run was not exported"
    last = export_tables(lake, store, ["masked"], now=NOW, keep=3)
    assert (last.skipped, last.rows) == (False, {"masked": 5})
    version = last.run.versions["masked"]
    assert open_version(store, "masked", version).to_pyarrow_table().num_rows == 5


def test_reading_the_runs_gives_arrow_no_file_system_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread of Arrow that drops one when the interpreter ends aborts the process."""
    store = open_store(str(tmp_path / "shared"))
    run = publish(store, {"a": rows_of("xy")}, key="k1", now=NOW)

    def refuse(*_: object) -> None:
        raise AssertionError("Arrow was given a file system in Python")

    monkeypatch.setattr("deltalake.fs.DeltaStorageHandler.from_table", refuse)
    assert read_published(store) == [run]


def test_a_damaged_file_of_the_runs_is_an_error_of_the_store(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "shared"))
    publish(store, {"a": rows_of("xy")}, key="k1", now=NOW)
    for file in (tmp_path / "shared" / "runs").glob("*.parquet"):
        file.write_bytes(b"no Parquet")
    with pytest.raises(Unavailable, match="the store failed"):
        read_published(store)


RIVAL = """
import json, sys
import pyarrow as pa
from tallystick.pipeline.delta import Store, publish
rows = {name: pa.table({"mark": ["c"]}).to_reader() for name in sys.argv[2:]}
publish(Store(*json.loads(sys.argv[1])), rows, key="c", now="")
"""


def interrupted(store: Store, marks: str, *rival_tables: str) -> pa.RecordBatchReader:
    """Give rows; before the first one is read, another process publishes tables as `c`."""

    def batches() -> Iterator[pa.RecordBatch]:
        place = json.dumps([store.root, dict(store.options)])
        subprocess.run([sys.executable, "-c", RIVAL, place, *rival_tables], check=True, timeout=300)
        yield from rows_of(marks)

    return pa.RecordBatchReader.from_batches(rows_of(marks).schema, batches())


@pytest.mark.parametrize("at", ["first", "second"])
def test_a_writer_that_was_overtaken_publishes_nothing(store: Store, at: str) -> None:
    publish(store, {"first": rows_of("a"), "second": rows_of("a")}, key="a", now=NOW)
    tables = {name: rows_of("b") for name in ("first", "second")}
    tables[at] = interrupted(store, "b", "first", "second")
    with pytest.raises(Unavailable) as refused:
        publish(store, tables, key="b", now=NOW)
    assert refused.value.code == "store.conflict"
    runs = read_published(store)
    assert [run.key for run in runs] == ["c", "a"]
    for run in runs:
        assert {marks_in(store, run, name) for name in ("first", "second")} == {run.key}


def test_a_writer_that_stops_between_its_commits_is_refused_when_it_goes_on(store: Store) -> None:
    """`first` of b is committed, c takes over and publishes, then b goes on."""
    publish(store, {"first": rows_of("a"), "second": rows_of("a")}, key="a", now=NOW)
    takeover = interrupted(store, "b", "first")
    with pytest.raises(Unavailable, match="another writer"):
        publish(store, {"first": rows_of("b"), "second": takeover}, key="b", now=NOW)
    assert [run.key for run in read_published(store)] == ["c", "a"]
    newest = read_published(store)[0]
    assert marks_in(store, newest, "first") == "c"


def test_only_kept_runs_can_be_read_later(store: Store) -> None:
    runs = [publish(store, {"t": rows_of(mark)}, key=mark, now=NOW) for mark in "abcd"]
    vacuum(store, runs[:1:-1])
    assert [marks_in(store, run, "t") for run in runs[2:]] == ["c", "d"]
    with pytest.raises((Unavailable, OSError)):
        marks_in(store, runs[0], "t")


WRITER = """
import json, sys
import pyarrow as pa
from tallystick.core.errors import Unavailable
from tallystick.pipeline.delta import Store, publish
store = Store(*json.loads(sys.argv[1]))
sys.stdin.readline()
for number in range(4):
    mark = f"{sys.argv[2]}{number}"
    rows = {name: pa.table({"mark": [mark]}).to_reader() for name in ("first", "second")}
    try:
        publish(store, rows, key=mark, now="")
    except Unavailable as error:
        assert error.code == "store.conflict", error
    else:
        print(mark, flush=True)
"""


def test_of_writers_at_the_same_time_no_published_run_is_lost_or_mixed(store: Store) -> None:
    place = json.dumps([store.root, dict(store.options)])
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, place, name], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
        )
        for name in "xyz"
    ]  # fmt: skip
    told: list[str] = []
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        out, _ = writer.communicate(timeout=300)
        assert writer.returncode == 0
        told += out.split()
    runs = read_published(store)
    assert sorted(run.key for run in runs) == sorted(told)
    assert told, "at least one writer publishes"
    for run in runs:
        assert {marks_in(store, run, name) for name in ("first", "second")} == {run.key}


def test_the_command_says_what_it_copied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake, place = write_lake(tmp_path / "lake"), tmp_path / "shared"
    words = ["pipeline", "export", "--lake", str(lake), "--to", place.as_uri()]
    assert main(words) == 0
    assert (
        capsys.readouterr().out == f"masked                   3 rows  version 1  {place}/masked\n"
    )
    assert main([*words, "--table", "masked", "--table", "summary", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["run"] == 2
    assert "summary: not masked" in said.err
    assert main(words) == 0
    assert "exported before" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--to", "ftp://host/x"], "unknown store ftp://"),
        (["--to", "s3:///x"], "names no bucket"),
        (["--to", ""], "the name of the store is empty"),
        (["--to", "out", "--table", "nothing"], "unknown table 'nothing'"),
        (["--to", "out", "--table", "masked", "--table", "masked"], "named twice"),
        (["--to", "out", "--option", "nothing"], "--option 'nothing' is not KEY=VALUE"),
        (["--to", "hdfs://127.0.0.1:9/x"], "the store failed: "),
        (["--to", "file://host/x"], "names no folder of this machine"),
        (["--to", "lake"], "is inside the lake"),
        (["--to", "lake/current"], "is inside the lake"),
        (["--to", "lake/manifest.json/x"], "is inside the lake"),
        (["--to", "file"], "the store failed: "),
        (["--to", "/proc/nothing"], "the store failed: "),
        (["--to", "s3://b/x", "--option", "AWS_ENDPOINT_URL=zork"], "is not a URL: zork"),
    ],
)
def test_a_wrong_request_is_one_line(
    words: list[str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    lake = write_lake(tmp_path / "lake")
    (tmp_path / "file").touch()
    assert main(["pipeline", "export", "--lake", str(lake), *words]) == 2
    first, *hints = capsys.readouterr().err.splitlines()
    assert reason in first
    assert len(hints) == 1
    assert hints[0].startswith("  hint: ")


def test_the_schemes_of_hadoop_are_read() -> None:
    assert open_store("s3a://bucket/x").table("t") == "s3://bucket/x/t"
    assert open_store("file:///a%20b").table("t") == "/a b/t"
    with pytest.raises(UsageError):
        open_store("kafka://host/topic")
