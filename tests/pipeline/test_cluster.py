"""The same command on a standalone cluster; a worker and the driver are killed -9 in their work."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from tallystick.pipeline import run
from tallystick.pipeline.lake import read_manifest
from tests.pipeline.cluster import CONF, kill_all, start_cluster, worker_of
from tests.pipeline.held import held_environment, read_run, read_tables, running, wait_held
from tests.pipeline.planted import plant
from tests.pipeline.test_run import write_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_killed_worker_and_a_killed_driver_change_nothing(
    spark: SparkSession, registry: Path, tmp_path: Path
) -> None:
    inputs, undisturbed, lake = (tmp_path / name for name in ("in", "undisturbed", "lake"))
    inputs.mkdir()
    write_files(inputs, list(plant(1000, seed=9)[1]))
    plan = run.make_plan([str(inputs)], registry, undisturbed)
    run.run(plan, session=spark)
    wanted = read_tables(undisturbed)
    before = {**read_manifest(undisturbed), "key": "an earlier run"}
    shutil.copytree(undisturbed / "runs", lake / "runs")
    (lake / "runs" / plan.key).rename(lake / "runs" / "earlier")
    before["folder"] = "runs/earlier"
    (lake / "manifest.json").write_text(json.dumps(before))

    at_part, at_end = tmp_path / "at-part", tmp_path / "at-end"
    workers = held_environment("os.rename", "*/messages-*.parquet", 1, at_part)
    driver = held_environment("os.rename", f"*/runs/.{plan.key}", 1, at_end)
    driver["SPARK_LOCAL_IP"] = "127.0.0.1"
    command = ["pipeline", "run", "--input", str(inputs), "--registry", str(registry),
               "--out", str(lake)]  # fmt: skip
    for name, value in CONF.items():
        command += ["--conf", f"{name}={value}"]
    with (
        start_cluster(tmp_path, workers) as cluster,
        running([*command, "--master", cluster.master], driver) as process,
    ):
        held = wait_held(process, at_part)
        kill_all(worker_of(cluster, held))
        assert wait_held(process, at_end) == process.pid
        assert read_run(lake / "runs" / f".{plan.key}") == wanted
        assert read_manifest(lake) == before
        assert read_tables(lake) == wanted
        os.kill(process.pid, 9)
    assert read_manifest(lake) == before
    again = run.run(run.make_plan([str(inputs)], registry, lake), session=spark)
    assert not any(one["read_now"] for one in again["inputs"])
    assert read_tables(lake) == wanted
    assert not list((lake / "runs").glob(".*"))
