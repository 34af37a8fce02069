"""Brokers and workers die by kill -9 in mid-work: nothing is lost and nothing is made up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic

import pytest

from tallystick import App
from tallystick.brokers.servers import Running, down, up
from tallystick.core.errors import Unavailable

pytestmark = pytest.mark.xdist_group("brokers")

URN = "urn:babel:orders:created"
PROGRAM = Path(__file__).with_name("worker_program.py")
COUNT = 1000
PATIENCE = 120.0
BROKERS = {"redis": "?retry_after=2", "rabbitmq": "", "artemis": ""}


class Worker:
    """A worker process that is started again whenever it is found dead, as a supervisor would."""

    def __init__(self, url: str, ledger: Path) -> None:
        self._command = [sys.executable, str(PROGRAM), url, str(ledger)]
        self._ledger = ledger
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, stderr=subprocess.DEVNULL)

    def handled(self) -> Counter[int]:
        if self._process.poll() is not None:
            self._process = self._start()
        lines = self._ledger.read_bytes().splitlines() if self._ledger.exists() else []
        return Counter(int(line) for line in lines)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        self._process.terminate()
        return self._process.wait(40)


@contextmanager
def broker(name: str) -> Iterator[tuple[Path, Running]]:
    with tempfile.TemporaryDirectory(prefix="tally-") as folder:
        home = Path(folder)
        try:
            yield home, up(name, fresh=True, home=home)
        finally:
            down(name, wipe=True, home=home, limit=0)


def publish(app: App, sent: list[int]) -> None:
    """Publish in batches until all are the broker's; a batch that failed is published again."""
    end, pause = monotonic() + PATIENCE, Event()
    while len(sent) < COUNT and monotonic() < end:
        batch = range(len(sent), min(len(sent) + 25, COUNT))
        try:
            app.publish_all((URN, {"n": number}) for number in batch)
        except Unavailable:
            pause.wait(0.1)
        else:
            sent += batch


def wait_until(condition: Callable[[], bool], what: str) -> None:
    end, pause = monotonic() + PATIENCE, Event()
    while not condition():
        assert monotonic() < end, what
        pause.wait(0.05)


@pytest.mark.parametrize("name", BROKERS)
def test_nothing_is_lost_when_broker_and_worker_are_killed(name: str, tmp_path: Path) -> None:
    with broker(name) as (home, running):
        url = running.url + BROKERS[name]
        worker = Worker(url, tmp_path / "ledger")
        sent: list[int] = []
        app = App(url, queue="orders")
        publisher = Thread(target=publish, args=(app, sent), daemon=True)
        publisher.start()
        try:
            wait_until(lambda: len(worker.handled()) > COUNT // 4, "a quarter")
            worker.kill()
            wait_until(lambda: len(worker.handled()) > COUNT // 3, "a third")
            os.kill(running.pid, signal.SIGKILL)
            assert up(name, home=home).url == running.url
            publisher.join(PATIENCE)
            assert len(sent) == COUNT
            wait_until(lambda: len(worker.handled()) >= COUNT, "all")
            assert set(worker.handled()) == set(range(COUNT))
            assert worker.stop() == 0
        finally:
            worker.kill()
            app.close()
