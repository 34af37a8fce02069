"""Laws of the command as a process: no traceback, and an exit code that tells the truth."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tallystick.cli import NOUNS, main

from .calls import tally

EXAMPLE = Path(__file__).parents[2] / "examples" / "messages" / "order-created.json"
PROGRAM = "import sys; from tallystick.cli import main; sys.exit(main())"
TALLY = shlex.join([sys.executable, "-c", PROGRAM])
OURS = {"TALLY_TRACEBACK", "PYTHONUNBUFFERED"}
"""What a developer may have set and a user has not."""
USERS = {key: value for key, value in os.environ.items() if key not in OURS}


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `tally` the way a shell does; what is in `environment` is set in addition."""
    return subprocess.run(
        ["bash", "-c", line.replace("tally", TALLY, 1)],
        capture_output=True, encoding="utf-8", timeout=120, check=False, env=USERS | environment,
    )  # fmt: skip


@pytest.mark.parametrize("noun", NOUNS)
def test_every_noun_answers_help(noun: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([noun, "--help"]) == 0
    assert f"tally {noun}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("tally envelope show - <&-", "standard input is closed"),
        ("tally envelope encode - <&-", "standard input is closed"),
        (f"tally envelope show '{EXAMPLE}' >&-", "standard output is closed"),
        (f"tally envelope show '{EXAMPLE}' >/dev/full", "No space left on device"),
        (f"tally envelope show '{EXAMPLE}' >/dev/full", "hint: the disk is full"),
        ("tally suite run standard/bytes/numbers/zero --journal /dev/full", "the disk is full"),
        (
            "tally faults run --json nobroker >/dev/full",
            "no fault run exists for the broker 'nobroker'",
        ),
        ("tally schema check --json --registry none.json >/dev/full", "tally: none.json"),
        ("tally journal show /bin/ls", "not UTF-8"),
        ("tally suite run --known /bin/ls", "not UTF-8"),
    ],
)
def test_a_broken_stream_or_file_is_one_line_and_exit_2(line: str, said: str) -> None:
    done = shell(line)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_output_is_utf8_whatever_the_locale_says(tmp_path: Path) -> None:
    path = tmp_path / "message.json"
    path.write_text('{"job":"urn:x","data":{"é":1.0}}', encoding="utf-8")
    done = shell(
        f"tally envelope portable '{path}'", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"
    )
    assert done.returncode == 1
    assert "/data/é" in done.stdout
    assert done.stderr == ""


def test_talk_never_lands_between_the_data() -> None:
    done = shell('tally envelope encode - 2>&- <<< \'{"job":"u","timestamp":1}\'')
    assert (done.returncode, done.stdout) == (0, '{"job":"u"}')


def test_an_endless_file_is_rejected_and_not_read_to_its_end() -> None:
    done = shell("ulimit -v 4000000; tally envelope show /dev/zero")
    assert done.returncode == 1
    assert "more than" in done.stderr


@pytest.mark.parametrize(
    ("words", "said", "environment"),
    [
        (["envelope", "show", str(EXAMPLE)], "", {}),
        (["faults", "run", "--json", "nobroker"], "no fault run exists", {}),
        (["faults", "run", "--json", "nobroker"], "no fault run exists", {"PYTHONUNBUFFERED": "1"}),
        (["schema", "check", "--json", "--registry", "none.json"], "none.json", {}),
    ],
)
def test_a_reader_that_goes_away_is_exit_141_and_never_success(
    words: list[str], said: str, environment: dict[str, str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", PROGRAM, *words]
    try:
        done = subprocess.run(
            command, stdout=writer, stderr=subprocess.PIPE, encoding="utf-8", check=False,
            env=USERS | environment,
        )  # fmt: skip
    finally:
        os.close(writer)
    assert done.returncode == 141
    assert said in done.stderr
    assert done.stderr.count("\n") == (2 if said else 0), "the line and its hint"


def test_an_error_is_one_line_for_a_reader_of_lines_and_has_the_keys_of_a_gate(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = tally(capsys, "faults", "run", "--json", "nobroker")
    assert (code, out.count("\n")) == (2, 1)
    _, gate, _ = tally(capsys, "schema", "check", "--json", "--registry", "none.json")
    assert list(json.loads(out)["error"]) == list(json.loads(gate)["error"])


@pytest.mark.parametrize("words", ["run --json --limit -1 a:b", "schema nosuch --json"])
def test_a_command_line_that_cannot_be_read_is_told_on_stderr_alone(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = tally(capsys, *words.split())
    assert (code, out) == (2, "")
    assert ": error: " in err.splitlines()[-1]


def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a noun in place whose verb has a fault."""

    def fail(_: argparse.Namespace) -> int:
        raise LookupError("it\x1b[31m is gone")

    module = ModuleType("tallystick.cli.journal")
    module.register = lambda parser: parser.set_defaults(run=fail)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tallystick.cli.journal", module)


def test_a_fault_of_our_own_is_one_line_and_exit_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch)
    monkeypatch.delenv("TALLY_TRACEBACK", raising=False)
    assert main(["journal"]) == 2
    first, hint = capsys.readouterr().err.splitlines()
    assert first == "tally: internal fault: LookupError: it\\x1b[31m is gone"
    assert "TALLY_TRACEBACK=1" in hint


def test_a_fault_of_our_own_is_raised_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch)
    monkeypatch.setenv("TALLY_TRACEBACK", "1")
    with pytest.raises(LookupError, match="is gone"):
        main(["journal"])
