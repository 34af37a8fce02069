"""Every language to every other one: the five test cases and the envelope, on a real broker.

All clients must be here: one whose toolchain is missing fails this test (IOP-22, 44 to 60).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

INTEROP = Path(__file__).parents[2] / "interop"
LANGUAGES = ("go", "java", "node", "python", "rust")
TALLY = str(Path(sys.executable).parent / "tally")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_client_needs_no_environment_but_a_path_and_a_home(language: str) -> None:
    """IOP-8, IOP-17: once built it dials, and says in time that nobody answers.

    To build it the first time it may need more: a proxy, certificates.
    """
    start = str(INTEROP / language / "client" / "start")
    names = ("PATH", "HOME", "XDG_CACHE_HOME")
    kept = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    for command in ([start, "-p", "1"], ["env", "-i", *kept, start, "-p", "1"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)
        assert done.returncode == 1
        assert "refused" in done.stderr.lower(), done.stderr


def test_every_language_understands_every_other(tmp_path: Path) -> None:
    journal = tmp_path / "lab.jsonl"
    command = [
        TALLY, "lab", "run", "--broker", "rabbitmq", "--clients", ",".join(LANGUAGES),
        "--cases", "TC*", "--cases", "Envelope", "--timeout", "120", "--json",
        "--journal", str(journal),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, done.stderr + done.stdout
    lines = [json.loads(line) for line in journal.read_text("utf-8").splitlines()]
    passed = {line["case"] for line in lines if line.get("outcome") == "passed"}
    pairs = [(one, other) for one in LANGUAGES for other in LANGUAGES]
    for test in ("TC1_DummyRun", "TC2_BasicP2P", "TC3_BasicPubSub", "Envelope"):
        assert {f"rabbitmq/{test}/{one}/{other}" for one, other in pairs} <= passed
    for test in ("TC4_P2PMessageSize", "TC5_PubSubMessageSize"):
        sized = {case for case in passed if case.startswith(f"rabbitmq/{test}/")}
        assert len(sized) == 10 * len(pairs)
