"""`tally event`, run as users run it."""

from __future__ import annotations

import base64
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tallystick.cli import main
from tallystick.events.extensions import SAMPLES
from tallystick.events.formats import FORMATS, find_format
from tallystick.events.golden import BATCHES, EVENTS


@dataclass(frozen=True)
class Result:
    returncode: int
    stdout: bytes
    stderr: bytes


def tally(*arguments: str, given: bytes = b"") -> Result:
    """Run the command in this process, with its three streams."""
    streams = [io.TextIOWrapper(io.BytesIO(text), write_through=True) for text in (given, b"", b"")]
    with pytest.MonkeyPatch.context() as patch:
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            patch.setattr(sys, name, stream)
        try:
            code = main(["event", *arguments])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        _, out, err = (stream.buffer for stream in streams)
        return Result(code, out.getvalue(), err.getvalue())


@pytest.mark.parametrize("source", FORMATS)
def test_an_event_goes_from_any_format_into_any_other(source: str) -> None:
    event = EVENTS["allExtensionTypes"]
    body = find_format(source).write(event)
    for target in FORMATS:
        done = tally(
            "convert", "-", "--from", source, "--to", target, "--known", "samples", given=body
        )
        assert done.returncode == 0, done.stderr
        assert find_format(target).read(done.stdout, SAMPLES) == event


def test_a_batch_goes_through_a_file(tmp_path: Path) -> None:
    batch = BATCHES["minimalAndAllCore"]
    source, target = tmp_path / "in.xml", tmp_path / "out.pb"
    write, read = find_format("xml").write_batch, find_format("protobuf").read_batch
    assert write is not None
    assert read is not None
    source.write_bytes(write(batch))
    done = tally("convert", str(source), "--to", "protobuf", "-o", str(target))
    assert (done.returncode, done.stdout) == (0, b"")
    assert read(target.read_bytes(), SAMPLES) == batch
    back = tally("convert", str(target), "--batch", "--json")
    about = json.loads(back.stdout)
    assert about["events"] == 2
    assert len(json.loads(base64.b64decode(about["bytes_base64"]))) == 2
    refused = tally("convert", str(source), "--to", "avro")
    assert refused.returncode == 2
    assert b"no batches" in refused.stderr


def test_a_message_becomes_an_event_and_comes_back() -> None:
    message = b'{"job":"urn:a:b","trace_id":"t","data":{"n":1},"meta":{"id":"7"},"attempts":2}'
    event = tally("convert", "-", "--from", "envelope", given=message)
    assert json.loads(event.stdout)["type"] == "urn:a:b"
    assert tally("convert", "-", "--to", "envelope", given=event.stdout).stdout == message


def test_validate_names_the_attribute_and_the_offset() -> None:
    body = b'{"specversion":"1.0","id":"1","source":"/s","type":"t","time":"noon"}'
    wrong = tally("validate", "-", given=body)
    assert (wrong.returncode, wrong.stdout) == (1, b"")
    assert b"/time" in wrong.stderr
    place = body.index(b'"noon"')
    assert f"byte {place}".encode() in wrong.stderr
    told = tally("validate", "-", "--json", given=body)
    assert told.returncode == 1
    about = json.loads(told.stdout)
    assert (about["valid"], about["pointer"]) == (False, "/time")
    assert about["offset"] == place


def test_validate_counts_a_batch_and_knows_declared_types() -> None:
    one = b'{"specversion":"1.0","id":"1","source":"/s","type":"t","seen":"noon"}'
    told = tally("validate", "-", "--json", given=b"[" + one + b"," + one + b"]")
    assert json.loads(told.stdout) == {"valid": True, "format": "json", "batch": True, "events": 2}
    declared = tally("validate", "-", "--extension", "seen=Timestamp", given=one)
    assert declared.returncode == 1
    assert tally("validate", "-", given=one).stdout == b"valid: one json event\n"


def test_a_wrong_request_is_told_from_a_wrong_event() -> None:
    assert tally("validate", "no-such-file").returncode == 2
    assert tally("validate", "-", "--extension", "x=Date", given=b"{}").returncode == 2
    core = tally("validate", "-", "--extension", "id=String", given=b"{}")
    assert (core.returncode, b"'id' is not an extension" in core.stderr) == (2, True)
    assert tally("convert", "-", "--from", "avro", "--batch", given=b"").returncode == 2
