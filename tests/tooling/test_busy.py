"""`tools/busy` runs a command beside busy loops, and the loops end with it whatever happens."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from uuid import uuid4

from tallystick.brokers.guardian import OWNER, find_owned

BUSY = str(Path(__file__).parents[2] / "tools" / "busy")
PATIENCE = 120.0


def marked() -> tuple[str, dict[str, str]]:
    """Give a mark and the environment that carries it."""
    mark = uuid4().hex
    return mark, {**os.environ, OWNER: f"{os.environ[OWNER]}/{mark}"}


def wait_for_count(mark: str, count: int) -> None:
    until = time.monotonic() + PATIENCE
    while len(find_owned(mark)) != count:
        assert time.monotonic() < until, find_owned(mark)
        time.sleep(0.02)


def test_the_exit_code_is_that_of_the_command_and_the_loops_are_gone() -> None:
    mark, environment = marked()
    command = [str(BUSY), "2", "--", "sh", "-c", "exit 7"]
    assert subprocess.run(command, env=environment, check=False).returncode == 7
    wait_for_count(mark, 0)


def test_the_loops_end_when_the_script_is_killed() -> None:
    mark, environment = marked()
    with subprocess.Popen(
        [BUSY, "2", "--", "sh", "-c", "read -r line"], env=environment, stdin=subprocess.PIPE
    ) as busy:
        wait_for_count(mark, 4)
        busy.kill()
    wait_for_count(mark, 0)


def test_a_wrong_call_is_told() -> None:
    for words in (["2"], ["x", "--", "true"], ["2", "--"], []):
        done = subprocess.run([BUSY, *words], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr[:6]) == (2, "usage:")
