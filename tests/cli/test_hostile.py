"""What a newcomer may do to the commands: one clear line, the right exit code, never a fault."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.calls import tally

REGISTRY = Path(__file__).parents[2] / "examples" / "registry" / "registry.json"
GARBAGE = {
    "empty": b"",
    "binary": bytes(range(256)),
    "deep": b"[" * 100_000,
    "list": b"[]",
    "null": b"null",
    "text": b'"x"',
    "number": b"1e999",
}

NOWHERE = ["loop", "folder", "missing", "empty/x", os.fsdecode(b"\xe9")]
NO_JSON = ["empty", "binary", "deep", "number"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Fill a folder with what no command wants, and go there."""
    for name, content in GARBAGE.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "event").write_text('{"specversion":"1.0","id":"1","source":"/a","type":"t"}')
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", [*GARBAGE, *NOWHERE])
@pytest.mark.parametrize(
    "words",
    [
        "envelope portable NAME --json",
        "envelope reconcile NAME --broker sqs --json",
        "event convert NAME --to protobuf --json",
        "suite list --cases NAME --json",
        "suite run --known NAME --json",
        "schema compat NAME NAME --json",
        "journal show NAME --json",
        "report build NAME -o page.html",
        "lab fields 1.0 --broker artemis --values NAME --json",
        "replay NAME --dry-run --json",
    ],
)
def test_garbage_is_said_in_one_line_and_with_json_as_an_object(
    words: str, name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = tally(capsys, *(word.replace("NAME", name) for word in words.split()))
    assert code in (1, 2) or name == "list"
    assert "internal fault" not in err
    assert "Traceback" not in err
    if "--json" in words and code == 2:
        assert json.loads(out)["error"]["message"]
    assert sorted(one.name for one in folder.iterdir()) == sorted(
        [*GARBAGE, "event", "folder", "loop"]
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("envelope show folder", "name a file, not a folder"),
        ("envelope show empty/x", "a part of the path is a file"),
        ("envelope show loop", "a symbolic link points to itself"),
        ("schema compat folder folder", "folder: not a file"),
        ("report build list -o x --coverage deep", "hint"),
        ("schema validate missing --registry REGISTRY", "or - for standard input"),
        ("schema check --registry REGISTRY --junit folder", "a file that you can write"),
    ],
)
def test_a_path_that_leads_nowhere_comes_with_a_hint(
    words: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert folder.is_dir()
    code, _, err = tally(capsys, *words.replace("REGISTRY", str(REGISTRY)).split())
    assert code == 2
    assert said in err


@pytest.mark.parametrize("name", [*NOWHERE, *NO_JSON])
@pytest.mark.parametrize(
    "words",
    [
        "gdpr --require --registry REGISTRY --waivers NAME",
        "gdpr --mask NAME --registry REGISTRY",
        "replay NAME --urn urn:babel:orders:created --lake .",
        "compat NAME NAME",
        "compat --against HEAD --registry NAME",
        "export-asyncapi --registry NAME",
        "gdpr --registry NAME",
        "serve --registry NAME",
        "validate list --registry NAME",
    ],
)
def test_a_file_that_a_gate_cannot_read_is_one_line_with_a_hint(
    words: str, name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert folder.is_dir()
    given = words.replace("REGISTRY", str(REGISTRY)).replace("NAME", name).split()
    code, out, err = tally(capsys, "schema", *given)
    assert (code, out) == (2, "")
    line, hint, *more = err.splitlines()
    assert line.startswith("tally: ")
    assert hint.startswith("  hint: ")
    assert not more


@pytest.mark.parametrize(
    "words",
    [
        "schema gdpr --registry REGISTRY --pattern x",
        "schema gdpr --registry REGISTRY --require --pattern (",
        "schema gdpr --registry REGISTRY --mask list",
        "schema gdpr --registry REGISTRY --mask list --urn urn:x:y",
        "schema gdpr --registry REGISTRY --mask order --urn urn:x:y",
        "schema gdpr --registry .",
        "schema compat one.json",
        "schema compat --against HEAD --registry REGISTRY --mode odd",
        "schema compat --against HEAD --registry .",
        "schema compat --against=-x --registry REGISTRY",
        "schema compat --against HEAD:none --registry REGISTRY",
        "schema replay malformed --urn urn:x:y --lake .",
        "schema serve --compatibility odd",
        "pipeline run --input list --registry REGISTRY --out lake --conf x",
        "pipeline run --input list --registry REGISTRY --out lake --fail-if x",
        "pipeline stream --input list --registry REGISTRY --out lake --trigger x",
        "pipeline run --input missing --registry REGISTRY --out lake",
        "pipeline run --input pipe --registry REGISTRY --out lake",
        "pipeline run --input loop --registry REGISTRY --out lake",
        "pipeline run --input list --registry REGISTRY --out empty",
        "pipeline run --input list --registry . --out lake",
        "pipeline show messages --lake folder",
        "pipeline tables --lake missing",
        "pipeline page --lake empty",
        "pipeline clean --lake missing",
        "pipeline tables --lake no_json",
        "pipeline show messages --lake no_object",
        "pipeline page --lake no_object",
        "schema replay true --urn urn:x:y --lake no_members",
        "pipeline run --input list --registry REGISTRY --out no_members --dry-run",
        "pipeline run --input= --registry REGISTRY --out lake --dry-run",
        "pipeline run --input list --registry REGISTRY --out lake --fail-if bad>\u0663",
    ],
)
def test_a_request_that_makes_no_sense_is_one_line_with_a_hint(
    words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "true").write_text("true")
    for lake, manifest in {"no_json": "{", "no_object": "[]", "no_members": '{"key":1}'}.items():
        (folder / lake).mkdir()
        (folder / lake / "manifest.json").write_text(manifest)
    (folder / "order").write_text('{"job":"urn:babel:orders:created","data":{}}')
    (folder / "registry.json").write_text('{"schemas":[{"urn":"urn:a:b","schema":"malformed"}]}')
    (folder / "malformed").write_text('{"type":"strin"}')
    code, out, err = tally(capsys, *words.replace("REGISTRY", str(REGISTRY)).split())
    assert (code, out) == (2, "")
    line, hint = err.splitlines()
    assert line.startswith("tally: ")
    assert hint.startswith("  hint: ")


@pytest.mark.parametrize(
    "words",
    [
        "envelope show -",
        "event validate - --batch",
        "schema validate - --registry REGISTRY",
        "schema validate --jsonl - --registry REGISTRY",
        "schema gdpr --mask - --registry REGISTRY",
        "schema replay - --urn urn:a:b --lake .",
    ],
)
def test_a_closed_standard_input_is_one_line_with_a_hint(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    code, _, err = tally(capsys, *words.replace("REGISTRY", str(REGISTRY)).split())
    assert code == 2
    assert err == "tally: standard input is closed\n  hint: name a file, or pipe a message in\n"


def test_an_output_with_an_empty_name_is_not_taken_for_standard_output(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert folder.is_dir()
    code, out, err = tally(capsys, "event", "convert", "event", "--to", "xml", "-o", "")
    assert (code, out) == (2, "")
    assert "Is a directory" in err


def test_an_error_is_an_object_with_its_code_pointer_and_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.json"
    path.write_text('{"job":5}')
    code, out, err = tally(capsys, "envelope", "reconcile", str(path), "--broker", "sqs", "--json")
    error = json.loads(out)["error"]
    assert code == 1
    assert (error["code"], error["pointer"]) == ("no_identity", "/job")
    assert error["hint"] in err
    code, out, _ = tally(capsys, "schema", "check", "--registry", "none.json", "--json")
    assert (code, list(json.loads(out))) == (2, ["error"]), "told once"
