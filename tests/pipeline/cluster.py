"""A standalone Spark cluster on loopback: one master and two workers of one core each."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.pipeline.held import wait_for

HOME = Path(pyspark.__file__).parent
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": QUICK,
    "spark.executor.extraJavaOptions": QUICK,
    "spark.executor.memory": "600m",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
}


@dataclass(frozen=True)
class Cluster:
    """The address of the master, and the processes of the workers."""

    master: str
    workers: tuple[int, ...]


@contextmanager
def start_cluster(folder: Path, environment: dict[str, str]) -> Iterator[Cluster]:
    """Start a cluster whose workers have an environment; nothing of it is left at the end."""
    environment = {
        **environment,
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        "PYSPARK_PYTHON": sys.executable,
    }
    address = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    with ExitStack() as stack:

        def start(number: int, *arguments: str) -> int:
            command = [str(HOME / "bin/spark-class"), *arguments]
            log = (folder / f"spark-{number}.log").open("wb")
            process = stack.enter_context(
                subprocess.Popen(
                    command,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )
            stack.callback(log.close)
            stack.callback(kill_all, process.pid)
            return process.pid

        start(0, "org.apache.spark.deploy.master.Master", *address)
        master = wait_said(folder / "spark-0.log", r"(spark://127\.0\.0\.1:\d+)")
        workers = [
            start(number, "org.apache.spark.deploy.worker.Worker", *address, "--cores", "1",
                  "--memory", "700m", "--work-dir", str(folder / f"work-{number}"), master)
            for number in (1, 2)
        ]  # fmt: skip
        for number in (1, 2):
            wait_said(folder / f"spark-{number}.log", "(Successfully registered)")
        yield Cluster(master, tuple(workers))


def wait_said(log: Path, pattern: str) -> str:
    """Wait until a log says something, and give it."""
    wait_for(lambda: re.search(pattern, log.read_text()) is not None, f"{log}: {pattern}")
    found = re.search(pattern, log.read_text())
    assert found is not None
    return found[1]


def kill_all(process: int) -> None:
    """Kill a process and all below it, -9, the highest first."""
    below: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(place.read_text().rpartition(")")[2].split()[1])
            below.setdefault(parent, []).append(int(place.parent.name))
    waiting = [process]
    for one in waiting:
        waiting += below.get(one, [])
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


def worker_of(cluster: Cluster, process: int) -> int:
    """Give the worker under which a process runs."""
    while process not in cluster.workers:
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        assert process > 1
    return process
