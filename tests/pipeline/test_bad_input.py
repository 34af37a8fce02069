"""Bad input completes: each of these is a clear line or a row in quarantine, never a crash."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING

from tallystick.pipeline import run
from tallystick.pipeline.show import read_rows
from tests.pipeline.held import LIMIT, held_environment, running, wait_held
from tests.pipeline.test_reading import lines_of, read_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write_long(path: Path, first: bytes, second: bytes) -> None:
    """Write two lines with one of 100 MB between them."""
    with path.open("wb") as file:
        file.write(first + b"\n")
        for _ in range(100):
            file.write(b"x" * 1_000_000)
        file.write(b"\n" + second + b"\n")


def test_a_line_of_100_mb_is_one_record_with_its_beginning(tmp_path: Path) -> None:
    first, second = lines_of()[:2]
    path = tmp_path / "a.jsonl"
    write_long(path, first, second)
    records = read_all(path)
    assert [one.fault for one in records] == [None, "line.too_long", None]
    assert "100000001 bytes" in records[1].reason
    assert len(records[1].body) <= 1 << 16


def test_a_run_over_everything_bad_puts_it_in_quarantine(
    spark: SparkSession, registry: Path, tmp_path: Path
) -> None:
    inputs, lines = tmp_path / "in", lines_of()
    inputs.mkdir()
    (inputs / "cut.gz").write_bytes(gzip.compress(b"\n".join(lines) + b"\n")[:-2000])
    (inputs / "garbage").write_bytes(bytes(range(256)) * 8)
    (inputs / "empty").write_bytes(b"")
    (inputs / "torn.parquet").write_bytes(b"PAR1 and no more")
    (inputs / "torn.journal").write_bytes(b'{"kind":"head"}\n{"kind":')
    write_long(inputs / "long", *lines[:2])
    copy = copytree(registry.parent, tmp_path / "registry") / registry.name
    plan = run.make_plan([str(inputs)], copy, tmp_path / "lake")
    copy.write_text("changed in the middle of a run")
    manifest = run.run(plan, session=spark)
    assert manifest["registry"]["rules"] == plan.rules
    rows = {Path(one["path"]).name: one["rows"] for one in manifest["inputs"]}
    assert rows["empty"]["messages"] == 0
    assert rows["long"] == {"messages": 3, "envelopes": 2, "quarantine": 1, "verdicts": 0}
    assert rows["cut.gz"]["envelopes"] > 0
    codes = {
        (Path(row["source"]).name, row["code"])
        for row in read_rows(tmp_path / "lake", "quarantine", 10_000)
        if row["stage"] == "read"
    }
    assert codes == {
        ("cut.gz", "file.broken"),
        ("long", "line.too_long"),
        ("torn.parquet", "file.broken"),
        ("torn.journal", "journal.broken"),
        ("garbage", "line.cut"),
    }
    assert rows["garbage"]["quarantine"] == rows["garbage"]["messages"] > 0


def test_too_little_memory_is_told(registry: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(lines_of()[0] + b"\n")
    done = subprocess.run(
        [sys.executable, "-m", "tallystick", "pipeline", "run", "--input", str(tmp_path / "a"),
         "--registry", str(registry), "--out", str(tmp_path / "lake"),
         "--conf", "spark.driver.memory=200m"],
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert done.returncode == 2
    assert "too little memory" in done.stderr
    assert "spark.driver.memory=1g" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_java_that_dies_in_the_middle_is_told(registry: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\n".join(lines_of()) + b"\n")
    flag = tmp_path / "held"
    command = ["pipeline", "run", "--input", str(tmp_path / "a"), "--registry", str(registry),
               "--out", str(tmp_path / "lake")]  # fmt: skip
    held = held_environment("os.rename", "*/messages-*.parquet", 1, flag)
    with running(command, held) as process:
        wait_held(process, flag)
        (java,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(java), signal.SIGKILL)
        _, told = process.communicate(timeout=LIMIT)
    assert process.returncode == 2
    assert told.decode().startswith("tally: the Java process of Spark died")
    assert "Traceback" not in told.decode()
