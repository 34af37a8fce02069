"""The command line of the pipeline, as far as it goes without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tallystick.cli import main
from tallystick.cli.pipeline import holds
from tallystick.core.errors import Unavailable
from tallystick.pipeline.session import explain, open_session
from tallystick.pipeline.tables import TABLES

FIGURES = {"messages": 1000, "refused": 2, "refused.schema": 0, "lost": 0}


def test_a_dry_run_says_what_would_be_read(
    tmp_path: Path, registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"job":"x"}\n')
    lake = tmp_path / "lake"
    command = ["pipeline", "run", "--input", str(tmp_path), "--registry", str(registry)]
    assert main([*command, "--out", str(lake), "--dry-run", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(one["form"], one["new"]) for one in told["inputs"]] == [("lines", True)]
    assert not lake.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--input", "nobody"], "no such file"),
        (["--input", "{folder}/empty"], "no files to read"),
        (["--input", "{folder}/a", "--registry", "{folder}/a"], "expecting value"),
        (["--input", "{folder}/a", "--registry", "{folder}/none"], "No such file"),
        (["--input", "{folder}/a", "--fail-if", "bad"], "is not a rule"),
        (["--input", "{folder}/a", "--fail-if", "nobody>0"], "there is no figure 'nobody'"),
        (["--input", "{folder}/a", "--conf", "x"], "not KEY=VALUE"),
    ],
)
def test_what_is_wrong_is_one_clear_line(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    registry: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "a").write_bytes(b"no json\n")
    (tmp_path / "empty").mkdir()
    given = [one.format(folder=tmp_path) for one in arguments]
    if "--registry" not in given:
        given += ["--registry", str(registry)]
    code = main(["pipeline", "run", "--out", str(tmp_path / "lake"), *given])
    told = capsys.readouterr().err
    assert code == 2
    assert said.lower() in told.lower()
    assert "Traceback" not in told


@pytest.mark.parametrize("verb", ["run", "stream"])
@pytest.mark.parametrize("schema", ["{bad", "[]", '{"type": "strin"}', '{"$ref": "gone.json"}'])
def test_a_registry_that_cannot_be_loaded_is_no_finding(
    verb: str, schema: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "registry.json").write_text('{"schemas":[{"urn":"urn:a:b","schema":"s.json"}]}')
    (tmp_path / "s.json").write_text(schema)
    given = ["--input", str(tmp_path), "--registry", str(tmp_path), "--out", str(tmp_path / "lake")]
    assert main(["pipeline", verb, *given, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["file"] == str(tmp_path / "s.json")


def test_the_tables_are_listed_with_their_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "tables", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["table"] for one in told] == list(TABLES)
    for one in told:
        assert set(one["key"]) <= set(one["columns"]), one["table"]


def test_a_lake_without_tables_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "show", "messages", "--lake", str(tmp_path)]) == 2
    assert "no tables here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (("bad", ">", 0.1, True), True),
        (("bad", ">", 0.2, True), False),
        (("bad", ">=", 2.0, False), True),
        (("lost", ">", 0.0, False), False),
        (("lost", "=", 0.0, False), True),
        (("refused.schema", "<", 1.0, False), True),
    ],
)
def test_a_rule_is_held_against_the_figures(rule: tuple[str, str, float, bool], told: bool) -> None:
    assert holds(FIGURES, *rule) is told


def test_a_missing_java_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    with pytest.raises(Unavailable) as told, open_session():
        pass
    assert told.value.code == "java.missing"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("java.lang.OutOfMemoryError: Java heap space", "memory"),
        ("System memory 259522560 must be at least 471859200", "memory"),
        ("Could not parse Master URL: 'x'", "master"),
        ("[Errno 111] Connection refused", "memory"),
        ("x\ntallystick.core.errors.Unavailable: kafka: Connection refused\ny", "spark.task"),
        ("something else\nand more", "spark"),
    ],
)
def test_what_spark_says_becomes_one_line(said: str, code: str) -> None:
    told = explain(RuntimeError(said))
    assert told.code == code
    assert "\n" not in told.message
