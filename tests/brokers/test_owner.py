"""What a process starts ends with it, also when it is killed and can clear up nothing itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from tallystick.brokers.guardian import find_owned
from tallystick.brokers.owner import OWNER
from tallystick.brokers.servers.ports import is_free

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0
SAY = "print(*{}, sep='\\n', flush=True); signal.pause()"


def wait_until(is_so: Callable[[], bool], about: str) -> None:
    until = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < until, about
        time.sleep(0.02)


@contextmanager
def owner(program: str, lines: int) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """Run a program until it has said so many lines."""
    begin = "import os, signal, subprocess, sys; from tallystick.brokers.owner import *\n"
    with subprocess.Popen(
        [sys.executable, "-c", begin + dedent(program)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        try:
            assert process.stdout
            yield process, [process.stdout.readline().strip() for _ in range(lines)]
        finally:
            process.kill()


def check_nothing_is_left(token: str, folder: str) -> None:
    wait_until(lambda: not find_owned(token), "its processes are gone")
    wait_until(lambda: not Path(folder).exists(), "its folder is gone")


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("broker", ["redis", "rabbitmq", "qpid"])
def test_a_broker_of_ones_own_ends_with_its_owner(broker: str, ending: signal.Signals) -> None:
    program = f"""
        from tallystick.brokers.servers import running
        with running({broker!r}) as server:
            {SAY.format("(tied()[OWNER], scratch(), server.data_dir, *server.ports.values())")}
    """
    with owner(program, 4) as (process, (token, folder, data, port)):
        own = token.rpartition("/")[2]
        assert find_owned(own)
        assert Path(data).is_relative_to(folder)
        process.send_signal(ending)
        process.wait()
        check_nothing_is_left(own, folder)
    assert is_free(int(port))


CHILDREN = {
    "a child of another session": "['setsid', 'sleep', '600']",
    "a child that has left its parent": "['sh', '-c', 'setsid sleep 600 & exit']",
    "a child that will not go": "['sh', '-c', 'trap \"\" TERM INT HUP; while :; do sleep 1; done']",
    "a child that is stopped": "['sh', '-c', 'kill -STOP $$; sleep 600']",
}


@pytest.mark.parametrize("command", CHILDREN.values(), ids=CHILDREN)
def test_any_child_ends_with_its_owner(command: str) -> None:
    program = f"""
        token = tied()[OWNER]
        subprocess.Popen({command}, env={{**os.environ, OWNER: token}}, stdout=subprocess.DEVNULL)
        (scratch() / "file").touch()
        {SAY.format("(token, scratch())")}
    """
    with owner(program, 2) as (process, (token, folder)):
        own = token.rpartition("/")[2]
        wait_until(lambda: bool(find_owned(own)), "it runs")
        process.kill()
        process.wait()
        check_nothing_is_left(own, folder)


def test_an_owner_that_ends_by_itself_has_cleared_up_before() -> None:
    program = """
        child = subprocess.Popen(["sleep", "600"], env={**os.environ, **tied()})
        print(child.pid, scratch(), sep="\\n", flush=True)
    """
    with owner(program, 2) as (process, (pid, folder)):
        assert process.wait() == 0
        assert not Path(folder).exists()
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


def test_a_forked_process_does_not_keep_the_guardian_waiting() -> None:
    program = """
        folder, token = scratch(), tied()[OWNER]
        if not os.fork():
            assert scratch() != folder, "it has a guardian of its own"
            print(folder, token, os.getpid(), sep="\\n", flush=True)
            os.execvp("sleep", ["sleep", "600"])
        signal.pause()
    """
    with owner(program, 3) as (process, (folder, token, forked)):
        try:
            process.kill()
            process.wait()
            check_nothing_is_left(token.rpartition("/")[2], folder)
        finally:
            os.kill(int(forked), signal.SIGKILL)


def test_a_process_within_an_owned_one_belongs_to_both() -> None:
    inner = (
        "from tallystick.brokers.owner import *; import signal\n"
        "print(tied()[OWNER], flush=True); signal.pause()"
    )
    program = f"""
        token = tied()[OWNER]
        child = subprocess.Popen(
            [sys.executable, "-c", {inner!r}], env={{**os.environ, OWNER: token}},
            stdout=subprocess.PIPE, text=True,
        )
        {SAY.format("(token, scratch(), child.stdout.readline().strip())")}
    """
    with owner(program, 3) as (process, (token, folder, inside)):
        assert inside.startswith(f"{token}/")
        process.kill()
        process.wait()
        check_nothing_is_left(token.rpartition("/")[2], folder)


RUN = """
import os, signal
from tests.conftest import *

def test_one(broker_url):
    stay(broker_url("redis"))

def test_two():
    stay("")

def stay(url):
    with open(os.environ["SAID"], "a") as said:
        print(os.environ["TALLY_OWNER"], os.environ["TMPDIR"], url, file=said)
    signal.pause()
"""


@pytest.mark.parametrize("options", [("-n", "0"), ("-n", "2")], ids=["alone", "xdist"])
def test_a_test_run_that_is_killed_leaves_nothing(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import *")
    names = ("test_it.py", "test_also.py")  # a file stays on one worker (tests/schedule.py)
    for name in names:
        (tmp_path / name).write_text(RUN)
    said, few = tmp_path / "said", 2 if options[1] == "2" else 1
    command = [sys.executable, "-m", "pytest", "-p", "no:randomly", "-p", "no:cacheprovider"]
    environment = {**os.environ, "SAID": str(said), "PYTHONPATH": str(ROOT)}
    for outer in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"):  # of the outer run
        environment.pop(outer, None)
    with ExitStack() as stack:
        run = stack.enter_context(
            subprocess.Popen(
                [*command, *options, *names],
                cwd=tmp_path,
                env=environment,
                stdout=subprocess.DEVNULL,
            )
        )
        stack.callback(run.kill)
        wait_until(lambda: said.exists() and said.read_text().count("\n") == few, "they run")
        token, folder, _ = said.read_text().splitlines()[0].split(" ", 2)
        assert token != os.environ[OWNER]
        run.kill()
        run.wait()
        check_nothing_is_left(token.rpartition("/")[2], folder)
