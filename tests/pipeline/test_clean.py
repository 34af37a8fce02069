"""Old runs go, and what only they were made from; nothing that is in use does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tallystick.cli import main
from tallystick.pipeline import clean as clean_module
from tallystick.pipeline.clean import clean
from tallystick.pipeline.lake import open_lake, read_manifest, write_json
from tallystick.pipeline.ranges import read_parts
from tallystick.pipeline.sources import Source
from tests.pipeline.held import HOLD


def add_part(root: Path, rules: str, key: str, *, log: int = -1, whole: bool = True) -> None:
    folder = root / "parts" / rules / key
    folder.mkdir(parents=True)
    (folder / "messages-00000.parquet").write_bytes(b"x")
    if whole:
        source = Source(key, "lines", 1, 1) if log < 0 else Source("log", "lines", 10, None, log)
        write_json(folder / "part.json", {**source.as_json(), "rows": {}})


def add_run(root: Path, name: str, rules: str, keys: list[str]) -> None:
    with open_lake(root) as lake:
        folder = lake.begin(name)
        (folder / "messages").mkdir()
        manifest = {
            "key": name, "registry": {"rules": rules}, "inputs": [{"key": one} for one in keys]
        }  # fmt: skip
        place = lake.publish(folder, manifest)
    order = sum(1 for _ in root.glob("runs/[!.]*"))
    os.utime(place / "manifest.json", ns=(order, order))  # clocks may be coarse


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Make four runs: one by older rules, three of a file that grew beside a log."""
    for key in ("a0", "a1", "a2", "a3"):
        add_part(tmp_path, "old" if key == "a0" else "new", key)
    for start in (0, 10):
        add_part(tmp_path, "old", f"log{start}", log=start)
        add_part(tmp_path, "new", f"log{start}", log=start)
    add_part(tmp_path, "new", "begun", whole=False)
    first = tmp_path / "parts" / "first" / "x"
    first.mkdir(parents=True)
    write_json(first / "part.json", {"source": "x", "rows": {}})  # as the first version wrote it
    (tmp_path / "streams" / "old" / "x").mkdir(parents=True)
    (tmp_path / "streams" / "new" / "x").mkdir(parents=True)
    add_run(tmp_path, "r0", "old", ["a0", "log0"])
    for number in (1, 2, 3):
        add_run(tmp_path, f"r{number}", "new", [f"a{number}", "log0"])
    return tmp_path


def names(root: Path, pattern: str) -> set[str]:
    return {str(one.relative_to(root)) for one in root.glob(pattern)}


def test_the_last_runs_stay_and_what_they_are_made_from(lake: Path) -> None:
    with open_lake(lake) as there:
        clean(there, 2)
    assert names(lake, "runs/*") == {"runs/r2", "runs/r3"}
    assert names(lake, "parts/*/*") == {
        f"parts/new/{one}" for one in ("a2", "a3", "log0", "log10", "begun")
    }
    assert names(lake, "streams/*") == {"streams/new"}


@pytest.mark.parametrize("path", ["log", "another"])
def test_a_range_that_a_stream_reads_meanwhile_stays(
    path: str, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finish a part after the parts were listed and before they are judged."""
    listed = read_parts

    def list_and_read(folder: Path) -> dict[str, list[Source]]:
        found = listed(folder)
        read = Source(path, "lines", 10, None, 20)
        (folder / "read").mkdir()
        write_json(folder / "read" / "part.json", {**read.as_json(), "rows": {}})
        return found

    monkeypatch.setattr(clean_module, "read_parts", list_and_read)
    with open_lake(lake) as there:
        clean(there, 1)
    assert (lake / "parts" / "new" / "read" / "part.json").exists()


@pytest.mark.parametrize("keep", ["0", "-1", "x"])
def test_a_lake_keeps_one_run_at_least(
    keep: str, lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", "clean", "--lake", str(lake), f"--keep={keep}"]) == 2
    assert "is not a whole number above 0" in capsys.readouterr().err


def test_the_only_copy_of_a_log_stays(lake: Path) -> None:
    shutil.rmtree(lake / "parts" / "new" / "log10")
    with open_lake(lake) as there:
        clean(there, 1)
    assert names(lake, "parts/old/*") == {"parts/old/log10"}
    assert names(lake, "streams/*") == {"streams/new"}


def test_rules_stay_with_their_logs_as_long_as_one_run_has_them(lake: Path) -> None:
    with open_lake(lake) as there:
        clean(there, 4)
    assert {"parts/old/log10", "parts/old/a0"} <= names(lake, "parts/*/*")
    assert names(lake, "streams/*") == {"streams/new", "streams/old"}


def test_the_current_run_stays_even_if_it_is_the_oldest(lake: Path) -> None:
    write_json(lake / "manifest.json", json.loads((lake / "runs/r1/manifest.json").read_bytes()))
    with open_lake(lake) as there:
        clean(there, 1)
    assert names(lake, "runs/*") == {"runs/r1"}
    assert "parts/new/a1" in names(lake, "parts/*/*")


def test_unfinished_parts_go_where_nobody_reads(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", "clean", "--lake", str(lake), "--keep", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"runs": 2, "parts": 6}
    assert "parts/new/begun" not in names(lake, "parts/*/*")
    assert main(["pipeline", "clean", "--lake", str(lake / "nobody")]) == 2
    assert not (lake / "nobody").exists()


STEPS = ("*/runs/.next", "*/lake/manifest.json", "*/lake/current")


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_of_publishing_the_tables_are_whole(step: str, tmp_path: Path) -> None:
    """The process is stopped for ever before a rename; it dies, and the lake is looked at."""
    lake = tmp_path / "lake"
    add_run(lake, "first", "new", [])
    code = (
        "import os, sys, threading; from pathlib import Path\n"
        "threading.Event.wait = lambda *_: os.kill(os.getpid(), 9)\n"
        "from tests.pipeline.test_clean import add_run\n"
        "add_run(Path(sys.argv[1]), 'next', 'new', [])\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HOLD), str(Path(__file__).parents[2])]),
        "TALLY_HOLD": f"os.rename|{step}|1|{tmp_path / 'flag'}",
    }
    done = subprocess.run(
        [sys.executable, "-c", code, str(lake)], env=environment, check=False, timeout=120
    )
    assert done.returncode == -9
    told = read_manifest(lake)
    assert told["key"] == ("next" if step == STEPS[2] else "first")
    assert (lake / told["folder"] / "messages").is_dir()
    add_run(lake, "next", "new", [])
    assert read_manifest(lake)["key"] == "next"
    assert not names(lake, "runs/.*")
    with open_lake(lake) as there:
        clean(there, 1)
    assert len(names(lake, "runs/*")) == 1
