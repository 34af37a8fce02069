"""A command that is killed leaves no process and no file: not its broker, not its programs."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from tallystick.brokers.guardian import OWNER, PROC, find_owned

PATIENCE = 600.0
LIAR = Path(__file__).parents[1] / "suites" / "liar.py"
ROOT = Path(__file__).parents[2]
COMMANDS = {
    "faults": ("faults run redis --messages 100000", "tallystick.suites.faults.worker"),
    "lab": ("lab run --broker vm --clients python", "client.py"),
    "suite": (f"suite run --subject '{sys.executable} {LIAR} says-pid-and-hangs'", "liar.py"),
    "tier": ("lab run-tier full --broker rabbitmq", "beam.smp"),
    "pipeline": (
        "pipeline run --input README.md --registry examples/registry/registry.json --out $lake",
        "org.apache.spark.deploy.SparkSubmit",
    ),
    "clock": ("lab clock udp --rounds 1000000", "clock-reference"),
}


def wait_until(is_so: Callable[[], bool], about: str) -> None:
    until = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < until, about
        time.sleep(0.02)


def command_of(pid: int) -> bytes:
    try:
        return (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize(("words", "sign"), COMMANDS.values(), ids=COMMANDS)
def test_a_killed_command_leaves_nothing(words: str, sign: str, tmp_path: Path) -> None:
    arguments = shlex.split(words.replace("$lake", str(tmp_path / "lake")))
    token, temporary = uuid4().hex, tmp_path / "temporary"
    temporary.mkdir()
    environment = {
        **os.environ,
        "TMPDIR": str(temporary),
        OWNER: f"{os.environ[OWNER]}/{token}",
    }
    with subprocess.Popen(
        [sys.executable, "-m", "tallystick", *arguments],
        env=environment,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as tally:

        def works() -> bool:
            assert tally.poll() is None, tally.communicate()
            started = set(find_owned(token)) - {tally.pid}
            return any(sign.encode() in command_of(pid) for pid in started)

        try:
            wait_until(works, f"{sign} runs")
        finally:
            tally.kill()
    wait_until(lambda: not find_owned(token), "its processes are gone")
    wait_until(lambda: not list(temporary.iterdir()), "its files are gone")
