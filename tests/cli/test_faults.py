"""`tally faults`: figures as text and as an object, a journal, and an honest exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event
from time import monotonic

import pytest

from tallystick.cli import main
from tallystick.core.journal import read

SHORT = ("--messages", "200", "--kill-broker", "1", "--kill-worker", "1", "--cut", "1")


def test_a_run_gives_figures_and_a_journal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "faults.jsonl"
    assert main(["faults", "run", "redis", *SHORT, "--journal", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["redis"]
    assert told["conforms"]
    assert (told["sent"], told["effects"], told["lost"]) == (200, 200, 0)
    (journal,) = read(file.read_text(encoding="utf-8").splitlines(keepends=True))
    assert journal.complete
    assert len(journal.records) == 5
    assert main(["journal", "show", str(file)]) == 0
    assert "killed, then restarted with its data" in capsys.readouterr().out


def test_a_run_without_messages_is_no_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["faults", "run", "redis", "--messages", "0"]) == 2
    assert "needs at least one message" in capsys.readouterr().err


def processes_under(folder: Path) -> list[int]:
    """Find every process that has this folder in its environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                seen = (entry / "environ").read_bytes()
            except OSError:  # it ended, or is not ours
                continue
            if str(folder).encode() in seen:
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_process_behind(number: int, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        (
            "import signal, sys; from tallystick.cli import main; "
            "signal.signal(signal.SIGINT, signal.default_int_handler); sys.exit(main())"
        ),
    ]
    process = subprocess.Popen(
        [*command, "faults", "run", "redis", "--messages", "100000"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stderr=subprocess.DEVNULL,
    )
    end, pause = monotonic() + 600, Event()
    while not list(tmp_path.glob("tally-*/*/run/worker-1.starts")):
        assert monotonic() < end, "it did not begin"
        pause.wait(0.05)
    assert len(processes_under(tmp_path)) >= 4
    process.send_signal(number)
    assert process.wait(600) != 0
    assert processes_under(tmp_path) == []
