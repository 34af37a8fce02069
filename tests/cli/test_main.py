from __future__ import annotations

import subprocess
import sys


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "tallystick", "nonsense"]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert (done.returncode, b"unknown command 'nonsense'" in done.stderr) == (2, True)
