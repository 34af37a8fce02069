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
        (["nonsense"], 2, "unknown command 'nonsense'"),
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


@pytest.mark.parametrize(
    ("options", "place", "value"),
    [
        (["redis", "--layout", "laravel", "--delay", "5", "--now", "100"], "delayed/score", 105),
        (["kafka", "--delay", "6", "--tiers", "5000,30000"], "record/topic", "q.retry.2"),
        (["rabbitmq", "--delay", "5", "--delayed-exchange"], "headers/x-delay", 5000),
        (["sqs", "--fifo", "--queue", "q"], "parameters/MessageGroupId", "q"),
    ],
)
def test_every_broker_that_can_wait_can_be_asked_to(
    options: list[str],
    place: str,
    value: object,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "message.json"
    path.write_bytes(b'{"job":"urn:x","meta":{"id":"i","queue":"q"}}')
    assert main(["envelope", "project", str(path), "--json", "--broker", *options]) == 0
    section, key = place.split("/")
    assert json.loads(capsys.readouterr().out)["sections"][section][key] == value


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["artemis", "--delay", "5", "--now", "inf"], 2, "--now"),
        (["artemis", "--delay", "5", "--now", "nan"], 2, "--now"),
        (["artemis", "--delay", "5", "--now", "1e308"], 2, "--now"),
        (["artemis", "--delay", "soon"], 2, "--delay"),
        (["artemis", "--delay", "5"], 2, "--now"),
        (["kafka", "--delay", "5"], 1, "--tiers"),
        (["kafka", "--delay", "5", "--tiers", "5000,x"], 2, "5000,30000"),
        (["kafka", "--delay", "5", "--tiers", "0"], 2, "5000,30000"),
        (["redis", "--delay", "5"], 1, "--layout laravel"),
        (["redis", "--layout", "cake"], 2, "laravel"),
        (["rabbitmq", "--delay", "5"], 1, "--delayed-exchange"),
        (["kafka", "--fifo"], 2, "no ordered (FIFO) queues"),
    ],
)
def test_a_projection_that_cannot_be_names_the_option_that_helps(
    options: list[str], code: int, said: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["envelope", "project", message, "--broker", *options]) == code
    said_all = capsys.readouterr()
    assert said in said_all.err
    assert (said_all.out, "internal" in said_all.err) == ("", False)


@pytest.mark.parametrize(
    ("broker", "native"),
    [("kafka", "[" * 20_000), ("sqs", '{"headers":{}}'), ("memory", '{"x":{}}'), ("sqs", "[]")],
)
def test_native_fields_that_nobody_would_read_are_refused(
    broker: str, native: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["envelope", "reconcile", message, "--broker", broker, "--native", native]) == 2
    err = capsys.readouterr().err
    assert "native" in err or "section" in err
    assert "internal" not in err


def test_show_prints_json_where_there_is_no_canonical_form(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(b'{"job":"u","n":1e400,"data":{}}'))
    assert main(["envelope", "show", "-", "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert (shown["verdict"], shown["canonical"]) == ("ok", None)
    assert "/n" in shown["canonical_unknown"]


@pytest.mark.parametrize("verb", ["show", "portable", "encode"])
def test_a_message_cannot_draw_on_the_terminal(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x9b31m\u202e"
    body = f'{{"job":"urn:\\u001b[31m{evil}","meta":{{"ts":1}},"data":{{"{evil}":1.0}}}}'
    monkeypatch.setattr(sys, "stdin", Stdin(body.encode()))
    main(["envelope", verb, "-"])
    said = capsys.readouterr()
    shown = said.err if verb == "encode" else said.out + said.err
    assert all(character.isprintable() for character in shown.replace("\n", ""))


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
