"""Commands that stop at an exact place, and how tables are compared."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from tallystick.pipeline.lake import read_manifest
from tallystick.pipeline.tables import TABLES

HOLD = Path(__file__).parent / "hold"
LIMIT = 600.0


def wait_for(ready: Callable[[], bool], about: str) -> None:
    """Wait until something is so; a test that gets nowhere fails at last."""
    deadline = time.monotonic() + LIMIT
    while not ready():
        assert time.monotonic() < deadline, about
        time.sleep(0.05)


def held_environment(event: str, pattern: str, nth: int, flag: Path) -> dict[str, str]:
    """Give the environment of a process that stops at a place; what it leaves, it leaves there."""
    return {
        **os.environ,
        "PYTHONPATH": str(HOLD),
        "TALLY_HOLD": f"{event}|{pattern}|{nth}|{flag}",
        "TMPDIR": str(flag.parent),
        "JDK_JAVA_OPTIONS": f"-Djava.io.tmpdir={flag.parent}",
    }


@contextmanager
def running(arguments: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run `tally` in a session of its own; nothing of it is left at the end."""
    command = [sys.executable, "-m", "tallystick", *arguments]
    with subprocess.Popen(
        command, env=environment, start_new_session=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(60)


def wait_held(process: subprocess.Popen[bytes], flag: Path) -> int:
    """Wait until a process stands at its place, and give its id."""

    def is_there() -> bool:
        if process.poll() is not None:
            assert process.stderr is not None
            raise AssertionError(f"it ended before: {process.stderr.read().decode()}")
        return flag.exists() and bool(flag.read_text())

    wait_for(is_there, f"nobody came to {flag}")
    return int(flag.read_text())


def read_run(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Give the rows of every table in the folder of a run, in an order of their own."""
    found = {}
    for name, table in TABLES.items():
        files = sorted((folder / name).glob("*.parquet"))
        rows = pa.concat_tables([pq.read_table(one) for one in files]).to_pylist() if files else []
        columns = table.schema.names
        found[name] = sorted((tuple(row[one] for one in columns) for row in rows), key=repr)
    return found


def read_tables(lake: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Give the rows of every table of the last good run."""
    return read_run(lake / read_manifest(lake)["folder"])
