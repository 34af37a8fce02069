"""One rule for every verb of `tally schema`: what keeps it from its work is exit 2, and is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lxml import etree  # type: ignore[import-untyped]

from tallystick.cli import main

EXAMPLE = Path(__file__).parents[2] / "examples" / "registry"
USER = "urn:babel:users:registered"
BROKEN = {
    "manifest": ("registry.json", '{"schemas":\n ['),
    "malformed": ("schemas/users-registered.json", '{\n\n"type": "strnig"}'),
    "reference": ("schemas/users-registered.json", '{\n\n"$ref": "http://e.org/x"}'),
}
VERBS = {
    "validate": ("validate", "MESSAGE"),
    "compat": ("compat", "--against", "HEAD"),
    "gdpr": ("gdpr",),
    "require": ("gdpr", "--require"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path in EXAMPLE.rglob("*.json"):
        target = tmp_path / "registry" / path.relative_to(EXAMPLE)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    message = {"job": USER, "data": {}, "meta": {}}
    (tmp_path / "message.json").write_text(json.dumps(message))
    return tmp_path / "registry"


def run(folder: Path, verb: str, *words: str) -> int:
    message = str(folder.parent / "message.json")
    named = [message if word == "MESSAGE" else word for word in VERBS.get(verb, (verb,))]
    return main(["schema", *named, "--registry", str(folder / "registry.json"), *words])


@pytest.mark.parametrize("verb", ["validate", "gdpr", "require", "export-asyncapi"])
@pytest.mark.parametrize("fault", list(BROKEN))
def test_a_broken_registry_keeps_a_verb_from_its_work(
    fault: str, verb: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, text = BROKEN[fault]
    (folder / file).write_text(text)
    assert run(folder, verb) == 2
    told = capsys.readouterr()
    assert f"{file}:{text.count(chr(10)) + 1}: " in told.err
    assert told.out == ""


@pytest.mark.parametrize("fault", list(BROKEN))
def test_a_broken_registry_is_what_check_is_there_to_find(
    fault: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, text = BROKEN[fault]
    (folder / file).write_text(text)
    assert run(folder, "check", "--json") == 1
    faults = json.loads(capsys.readouterr().out)["faults"]
    assert (faults[0]["file"], faults[0]["line"]) == (
        str(folder / file), text.count("\n") + 1,
    )  # fmt: skip


@pytest.mark.parametrize("verb", list(VERBS))
def test_what_keeps_a_verb_from_its_work_is_told_in_the_format_asked_for(
    verb: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "registry.json").write_text('{"schemas":\n [')
    assert run(folder, verb, "--json") == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["line"]) == ("json.syntax", 2)
    assert error["file"] == str(folder / "registry.json")
    junit = folder.parent / "junit.xml"
    assert run(folder, verb, "--github", "--junit", str(junit)) == 2
    assert f"::error file={folder}/registry.json,line=2," in capsys.readouterr().out
    assert etree.parse(junit).getroot().get("failures") == "1"


def test_a_fault_in_a_schema_is_annotated_in_its_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, text = BROKEN["malformed"]
    (folder / file).write_text(text)
    assert run(folder, "gdpr", "--github") == 2
    assert f"::error file={folder}/{file},line=3," in capsys.readouterr().out


@pytest.mark.parametrize("words", [(), ("--jsonl",)])
def test_an_envelope_given_for_bare_data_is_judged_by_its_data(
    words: tuple[str, ...], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, "validate", "--urn", USER, "--json", *words) == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert {one["pointer"] for one in finding["violations"]} == {"/data"}
    other = "urn:babel:orders:created"
    assert run(folder, "validate", "--urn", other, *words) == 1
    assert f"expected data of '{other}', found an envelope of '{USER}'" in capsys.readouterr().out


def test_a_long_witness_is_cut_short_in_text_and_whole_as_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text('{"type": "string", "minLength": 5000}')
    new.write_text('{"type": "string", "maxLength": 10}')
    words = ["schema", "compat", str(old), str(new)]
    for more in ([], ["--github"]):
        assert main([*words, *more]) == 1
        told = capsys.readouterr().out
        assert "characters; --json gives all)" in told
        assert max(map(len, told.splitlines())) < 1000
    main([*words, "--json"])
    assert len(json.loads(capsys.readouterr().out)["witness"]["data"]) >= 5000
