"""`tally run` shows how it is doing: a view on a terminal, lines elsewhere, objects with --json."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tallystick.cli import main
from tallystick.core.transport import Countable
from tallystick.runtime.address import link_to
from tallystick.runtime.status import Backlog

HERE = Path(__file__).parent
TALLY = [str(Path(sys.executable).with_name("tally")), "run", "live_app:app"]
OPTIONS = ["--limit", "13", "--every", "0.05"]
ENDED = "1 dead_lettered, 11 handled, 1 retried"
SECRET = "alice"
WAITING = re.compile(
    r"10 handled \([0-9.]+/s\), 1 in flight, 1 retried, 1 dead-lettered, lag [0-9]+"
)
ERROR = "last error: orders: dead_lettered: builtins.ValueError"


MACHINE = re.compile(r'"handled": 10, .*"in_flight": 1, .*"dead_lettered": 1, "lag": [0-9]')


def start(go: Path, **streams: Any) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "GO": str(go), "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}
    extra = streams.pop("extra", [])
    return subprocess.Popen([*TALLY, *OPTIONS, *extra], cwd=HERE, env=environment, **streams)


def read_until(number: int, done: Any, *, wait: float = 60.0) -> str:
    """Read what is written until it is what is waited for, or until its writer has ended."""
    text, end = b"", time.monotonic() + wait
    while not done(text.decode(errors="replace")):
        assert time.monotonic() < end, text.decode(errors="replace")
        if select.select([number], [], [], 1.0)[0]:
            try:
                more = os.read(number, 65_536)
            except OSError:  # a terminal whose other end is closed
                break
            if not more:
                break
            text += more
    return text.decode(errors="replace")


def test_a_terminal_has_a_view_that_goes_away_at_the_end(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    program = start(tmp_path / "go", stdout=slave, stderr=slave)
    os.close(slave)
    try:
        text = read_until(master, lambda seen: WAITING.search(seen) and ERROR in seen)
        (tmp_path / "go").touch()
        text += read_until(master, lambda _: False)
        assert program.wait(60) == 0
    finally:
        program.kill()
        program.wait()
        os.close(master)
    assert SECRET not in text
    assert "\x1b[2J" not in text
    assert "\r\x1b[1A\x1b[J" in text
    bare = re.sub(r"\x1b\[[0-9]*[AJ]", "", text).replace("\r", "\n")
    lines = [line for line in bare.splitlines() if line]
    for n in (*range(10), "last"):
        assert f"order {n} is done" in lines
    assert lines[-1] == ENDED
    assert text.rpartition("\x1b[J")[2].strip() == ENDED


@pytest.mark.parametrize("machine", [False, True])
def test_elsewhere_there_are_lines_or_objects_without_any_drawing(
    machine: bool, tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    extra = ["--json"] if machine else []
    program = start(tmp_path / "go", stdout=subprocess.PIPE, stderr=writing, extra=extra)
    os.close(writing)
    waited = MACHINE if machine else WAITING
    try:
        text = read_until(reading, waited.search)
        (tmp_path / "go").touch()
        text += read_until(reading, lambda _: False)
        out = program.communicate(timeout=60)[0].decode()
    finally:
        program.kill()
        program.wait()
        os.close(reading)
    assert program.returncode == 0
    assert "\x1b" not in text
    assert SECRET not in text
    last = out.splitlines()[-1]
    lines = text.splitlines()
    if not machine:
        assert last == ENDED
        assert any(WAITING.search(line) and ERROR in line for line in lines)
        return
    assert json.loads(last) == {"dead_lettered": 1, "handled": 11, "retried": 1}
    told = [json.loads(line) for line in lines if line.startswith("{")]
    assert {one["kind"] for one in told} == {"status"}
    (one, *_) = [one for one in told if one["dead_lettered"] and one["in_flight"] == 1]
    assert one["handled"] == 10
    assert one["last_error"] == ERROR.removeprefix("last error: ")


def test_a_status_comes_after_some_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "nothing:app", "--every", "0"]) == 2
    assert "--every" in capsys.readouterr().err


def test_a_backlog_is_what_nobody_has_taken() -> None:
    link = link_to("memory://")
    transport = link.open()
    assert isinstance(transport, Countable)
    backlog = Backlog(link)
    assert backlog.ask(["a", "b"]) == 0
    backlog.close()
