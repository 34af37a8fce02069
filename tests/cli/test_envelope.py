from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from tallystick.cli import main

BODY = (
    b'{"job":"urn:x","trace_id":"t","data":{"b":1.0,"a":2},'
    b'"meta":{"schema_version":1},"attempts":1}'
)


class Stdin:
    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


@pytest.fixture
def message(tmp_path: Path) -> str:
    path = tmp_path / "message.json"
    path.write_bytes(BODY)
    return str(path)


def test_encode_writes_the_canonical_bytes_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(b' {"data":{"b":1.0,"a":2},"urn":"u","timestamp":1}'))
    assert main(["envelope", "encode", "-"]) == 0
    out, err = capfdbinary.readouterr()
    assert out == b'{"job":"u","data":{"a":2,"b":1}}'
    assert b"/timestamp" in err


def test_encode_of_poison_writes_nothing_and_says_where(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(b'{"job":"x","data":[]}'))
    assert main(["envelope", "encode", "-"]) == 1
    out, err = capfdbinary.readouterr()
    assert out == b""
    assert b"/data" in err
    assert b"byte 18" in err


def test_show_says_what_a_consumer_sees(message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["envelope", "show", message, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["urn"], shown["accepted"], shown["canonical"]) == ("urn:x", True, False)


def test_project_prints_the_native_fields(message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["envelope", "project", message, "--broker", "kafka", "--json"]) == 0
    sections = json.loads(capsys.readouterr().out)["sections"]
    assert sections["headers"]["bq-job"] == "urn:x"
    assert sections["headers"]["bq-attempts"] == "1"


def test_reconcile_counts_what_the_broker_counted(
    message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    native = '{"attributes": {"ApproximateReceiveCount": "5"}}'
    assert main(["envelope", "reconcile", message, "--broker", "sqs", "--native", native]) == 0
    assert capsys.readouterr().out == "4\n"


def test_portable_lists_what_others_would_alter(
    message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["envelope", "portable", message]) == 1
    assert "/data/b  go  1.0 -> 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nonsense"], 2, "no command 'nonsense'"),
        (["envelope", "show", "no-such-file"], 2, "no such file: no-such-file"),
        (["envelope"], 2, "usage"),
        (["envelope", "project", "-", "--broker", "pigeon"], 2, "unknown broker 'pigeon'"),
        (["--help"], 0, ""),
        ([], 2, ""),
    ],
)
def test_every_mistake_is_one_clear_line(
    arguments: list[str],
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(BODY))
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert said in captured.err
    assert "Traceback" not in captured.err


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("tally ")


def test_importing_the_package_loads_nothing_heavy() -> None:
    import subprocess  # noqa: PLC0415

    script = (
        "import sys; before = set(sys.modules); import tallystick.cli; "
        "print(sorted(m for m in set(sys.modules) - before if not m.startswith('tallystick')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "['__future__']"
