from __future__ import annotations

import argparse
import copy
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from lxml import etree  # type: ignore[import-untyped]

from tallystick.cli import schema as noun
from tallystick.core.errors import Rejected, Unavailable, UsageError
from tallystick.schemas.change_rows import Change
from tallystick.schemas.compat import compare
from tallystick.schemas.modes import MODES
from tallystick.schemas.witness import check_witness

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "registry"
XSD = ROOT.parent / "shared" / "data" / "junit-xsd" / "jenkins-junit-10.xsd"
ORDER: dict[str, Any] = {
    "type": "object",
    "required": ["id", "amount"],
    "properties": {
        "id": {"type": "integer"},
        "amount": {"type": "number", "minimum": 1},
        "note": {"type": "string"},
        "state": {"type": "string", "enum": ["new", "paid"]},
    },
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """Give the order schema with one place set, or dropped when the value is `...`."""
    schema = copy.deepcopy(ORDER)
    node = schema
    *parents, last = path.split("/")
    for name in parents:
        node = node[name]
    if value is ...:
        del node[last]
    else:
        node[last] = value
    return schema


SEED = [
    ("add an optional field", changed("properties/coupon", {"type": "string"}), "compatible"),
    ("make an optional field required", changed("required", ["id", "amount", "note"]), "breaking"),
    ("add a required field", {**changed("properties/vat", {"type": "number"}),
                              "required": ["id", "amount", "vat"]}, "breaking"),
    ("remove a field", changed("properties/note", ...), "breaking"),
    ("rename a field", {**ORDER, "properties": {
        **{k: v for k, v in ORDER["properties"].items() if k != "note"}, "memo": {}}}, "breaking"),
    ("retype a field", changed("properties/id", {"type": "string"}), "breaking"),
    ("close the model", changed("additionalProperties", False), "breaking"),
    ("drop an enum value", changed("properties/state/enum", ["new"]), "breaking"),
    ("add an enum", changed("properties/note/enum", ["a"]), "breaking"),
    ("widen an enum", changed("properties/state/enum", ["new", "paid", "void"]), "compatible"),
    ("relax a constraint", changed("properties/amount/minimum", 0), "compatible"),
    ("tighten a constraint", changed("properties/amount/minimum", 2), "breaking"),
    ("drop a required field from the list", changed("required", ["id"]), "compatible"),
    ("mark a field as personal", changed("properties/note/x-gdpr-sensitive", True), "compatible"),
    ("nothing", ORDER, "compatible"),
]  # fmt: skip


@pytest.mark.parametrize(("new", "verdict"), [pytest.param(*row[1:], id=row[0]) for row in SEED])
def test_the_policy_table_of_babelqueue_holds(new: Any, verdict: str) -> None:
    found = compare(ORDER, new, "babelqueue")
    assert found.verdict == verdict
    if verdict == "breaking":
        assert any(row.effect == "breaking" for row in found.changes)
        removal = any(row.rule.startswith("property-removed") for row in found.changes)
        assert found.has_witness or removal
    else:
        assert all(row.effect == "compatible" for row in found.changes)
    if found.has_witness:
        assert check_witness(ORDER, new, found.witness)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"type": "integer"}, {"type": "number"}),
        ({"const": 1}, {"enum": [1, 2]}),
        ({"type": "boolean"}, {"enum": [True, False]}),
        ({"type": "string"}, {"type": "string", "minLength": 0}),
        ({"type": "integer"}, {"type": "integer", "minLength": 3}),
        ({"type": "integer", "minimum": 0.5}, {"type": "integer", "minimum": 1}),
        ({"type": "object", "properties": {"a": {"type": "string"}}},
         {"type": "object", "patternProperties": {"^a$": {"type": "string"}}}),
    ],
)  # fmt: skip
def test_what_is_proven_is_no_false_alarm_in_any_mode(old: Any, new: Any) -> None:
    assert compare(old, new, "babelqueue").verdict == "compatible"
    assert compare(old, new, "BACKWARD").verdict == "compatible"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"const": 1}, {"const": 2}),
        ({"type": ["string", "null"]}, {"type": "string"}),
        ({"enum": [1, True, None]}, {"enum": ["1", "true", "<nil>"]}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({"$ref": "#/definitions/a", "definitions": {"a": {"type": "string"}}},
         {"$ref": "#/definitions/a", "definitions": {"a": {"type": "null"}}}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "string"}]}),
        ({"type": "object"}, {"type": "object", "propertyNames": {"maxLength": 3}}),
        ({"type": "object", "properties": {"a": {}}},
         {"type": "object", "properties": {"a": False}}),
    ],
)  # fmt: skip
def test_what_the_reference_misses_is_found_with_a_witness(old: Any, new: Any) -> None:
    found = compare(old, new, "babelqueue")
    assert found.verdict == "breaking"
    assert check_witness(old, new, found.witness)


def test_an_added_optional_field_is_free_at_every_depth_and_through_references() -> None:
    def schema(**more: Any) -> Any:
        inner = {"type": "object", "properties": {"a": {"type": "string"}, **more}}
        lines = {"type": "array", "items": {"$ref": "#/definitions/line"}}
        return {
            "definitions": {"line": inner},
            "type": "object",
            "properties": {"lines": lines, "deep": {"type": "object", "properties": {"x": inner}}},
        }

    new = schema(b={"type": "integer"})
    assert compare(schema(), new, "babelqueue").verdict == "compatible"
    assert compare(schema(), new, "strict").verdict == "breaking"
    assert compare(new, schema(), "babelqueue").verdict == "breaking"


@pytest.mark.parametrize(
    ("mode", "widened", "narrowed"),
    [
        ("strict", "compatible", "breaking"),
        ("BACKWARD", "compatible", "breaking"),
        ("FORWARD", "breaking", "compatible"),
        ("FULL", "breaking", "breaking"),
        ("NONE", "compatible", "compatible"),
        ("full", "breaking", "breaking"),
    ],
)
def test_a_mode_is_a_set_of_directions(mode: str, widened: str, narrowed: str) -> None:
    small, large = {"type": "integer"}, {"type": "number"}
    assert compare(small, large, mode).verdict == widened
    found = compare(large, small, mode)
    assert found.verdict == narrowed
    assert [row.effect for row in found.changes] == [narrowed]
    assert found.has_witness is (narrowed == "breaking")


def test_a_witness_of_null_is_told_from_none() -> None:
    found = compare({"type": ["string", "null"]}, {"type": "string"}, "strict")
    assert (found.has_witness, found.witness) == (True, None)
    assert found.as_json()["witness"] == {"data": None, "direction": "backward"}
    assert compare({}, {}, "strict").as_json()["witness"] is None


def test_a_change_names_its_pointer_and_rule() -> None:
    new = changed("properties/amount/minimum", 2)
    assert compare(ORDER, new, "strict").changes == (
        Change(
            "/properties/amount/minimum", "minimum-increased", "breaking",
            "minimum went from 1 to 2",
        ),
    )  # fmt: skip


def test_a_break_without_a_row_is_explained_by_the_witness() -> None:
    old = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    new = {"anyOf": [{"type": "string"}]}
    assert any(row.effect == "breaking" for row in compare(old, new, "strict").changes)


def test_unknown_modes_and_malformed_schemas_are_refused() -> None:
    with pytest.raises(UsageError):
        compare({}, {}, "banana")
    for mode in MODES:
        with pytest.raises(Rejected):
            compare({"type": "strnig"}, {}, mode)
        with pytest.raises(Rejected):
            compare({}, {"$ref": "http://example.com/a"}, mode)


@pytest.mark.parametrize("keyword", ["prefixItems", "dependentRequired", "minContains"])
def test_a_keyword_of_another_dialect_may_hold_anything(keyword: str) -> None:
    assert compare({keyword: "x"}, {keyword: 5}, "strict").verdict == "compatible"


# --- the command ---------------------------------------------------------------------------


def tally(*words: str) -> int:
    parser = argparse.ArgumentParser()
    noun.register(parser)
    args = parser.parse_args(["compat", *words])
    return int(args.run(args))


OLD = str(EXAMPLE / "schemas" / "orders-created.json")
NEW = str(EXAMPLE / "schemas" / "orders-created.v2-breaking.json")


def test_the_example_breaks_with_a_witness(capsys: pytest.CaptureFixture[str]) -> None:
    assert tally(OLD, NEW) == 1
    out = capsys.readouterr().out
    assert out.startswith("breaking\n")
    assert "x /properties/order_id/type type-changed: type integer became string" in out
    assert '{"order_id": 1, "amount": 0, "currency": "TRY"}' in out
    assert tally(OLD, OLD) == 0
    assert capsys.readouterr().out == "compatible\n"


def test_json_says_verdict_changes_and_witness(capsys: pytest.CaptureFixture[str]) -> None:
    assert tally(OLD, NEW, "--json", "--mode", "strict") == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["verdict"], report["mode"]) == ("breaking", "strict")
    assert check_witness(
        json.loads(Path(OLD).read_bytes()),
        json.loads(Path(NEW).read_bytes()),
        report["witness"]["data"],
    )


def test_an_unknown_fails_unless_allowed(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text('{"$ref": "#"}')
    new.write_text('{"type": "string"}')
    assert tally(str(old), str(new), "--mode", "strict") == 1
    assert tally(str(old), str(new), "--mode", "strict", "--allow-unknown") == 0


def test_annotations_point_at_the_line_and_junit_conforms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    junit = tmp_path / "junit.xml"
    assert tally(OLD, NEW, "--github", "--junit", str(junit)) == 1
    assert f"::error file={NEW},line=7," in capsys.readouterr().out
    etree.XMLSchema(etree.parse(XSD)).assertValid(etree.parse(junit))


@pytest.mark.parametrize("words", [(), (OLD,), (OLD, NEW, OLD), (OLD, NEW, "--against", "HEAD")])
def test_wrong_use_is_a_usage_error(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        tally(*words)


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a repository: three versions of one URN, and a URN that comes and goes."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("AUTHOR", "a"), ("COMMITTER", "a")):
        monkeypatch.setenv(f"GIT_{name}_NAME", value)
        monkeypatch.setenv(f"GIT_{name}_EMAIL", f"{value}@example.com")
    home = tmp_path / "repo" / "registry"
    home.mkdir(parents=True)
    git(home.parent, "init", "-q", "-b", "main")
    common = {"definitions": {"id": {"type": "integer", "minimum": 0}}}
    write(home, {"a": {"properties": {"id": {"$ref": "common.json#/definitions/id"}}}}, common)
    git(home, "tag", "v1")
    write(home, {"a": {"properties": {"id": {"type": "integer"}}}, "b": {"type": "null"}}, common)
    git(home, "tag", "v2")
    write(home, {"a": {"properties": {"id": {"type": "number"}}}, "c": {}}, common)
    return home


def git(home: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(home), *words], check=True, capture_output=True)


def write(home: Path, schemas: dict[str, Any], common: Any) -> None:
    rows = [{"urn": f"urn:{name}", "schema": f"{name}.json"} for name in schemas]
    (home / "registry.json").write_text(json.dumps({"schemas": rows}))
    (home / "common.json").write_text(json.dumps(common))
    for name, schema in schemas.items():
        (home / f"{name}.json").write_text(json.dumps(schema))
    git(home, "add", "-A")
    git(home, "commit", "-q", "-m", "version")


def report_of(
    capsys: pytest.CaptureFixture[str], home: Path, *words: str
) -> tuple[int, dict[str, tuple[str, str]]]:
    code = tally("--registry", str(home), "--json", *words)
    rows = json.loads(capsys.readouterr().out)["urns"]
    return code, {row["urn"]: (row["state"], row["verdict"]) for row in rows}


def test_a_registry_is_compared_with_any_commit(
    history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report_of(capsys, history, "--against", "HEAD") == (0, {})
    assert report_of(capsys, history, "--against", "v2", "--mode", "strict") == (1, {
        "urn:a": ("changed", "compatible"),
        "urn:b": ("removed", "breaking"),
        "urn:c": ("added", "compatible"),
    })  # fmt: skip
    assert report_of(capsys, history, "--against", "v1", "--mode", "FORWARD") == (1, {
        "urn:a": ("changed", "breaking"), "urn:c": ("added", "compatible"),
    })  # fmt: skip
    (history / "a.json").write_text('{"properties": {"id": {"type": "string"}}}')
    code, rows = report_of(capsys, history, "--against", "main", "--mode", "strict")
    assert (code, rows) == (1, {"urn:a": ("changed", "breaking")})


def test_a_transitive_mode_looks_at_every_version(
    history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow = {"properties": {"id": {"type": "number", "minimum": 0}}}
    common = {"definitions": {"id": {"type": "integer", "minimum": 0}}}
    write(history, {"a": narrow}, common)
    write(history, {"a": {**narrow, "title": "an order"}}, common)
    assert report_of(capsys, history, "--against", "HEAD~1", "--mode", "BACKWARD")[0] == 0
    code, rows = report_of(capsys, history, "--against", "HEAD", "--mode", "BACKWARD_TRANSITIVE")
    assert code == 1
    assert rows["urn:a"] == ("changed", "breaking")
    assert rows["urn:c"] == ("removed", "breaking")


def test_a_transitive_mode_looks_between_the_reference_and_head_and_names_the_commit(
    history: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("--registry", str(history), "--against", "v1", "--mode", "BACKWARD_TRANSITIVE")
    second = _commit(history, "v2")
    assert tally(*words[:-1], "BACKWARD") == 0
    capsys.readouterr()
    junit = tmp_path / "junit.xml"
    assert tally(*words, "--junit", str(junit)) == 1
    assert f"removed urn:b: breaking against commit {second}" in capsys.readouterr().out
    assert f"against commit {second}" in junit.read_text()
    assert tally(*words, "--github") == 1
    assert f"against commit {second}" in capsys.readouterr().out


def _commit(home: Path, name: str) -> str:
    words = ["git", "-C", str(home), "rev-parse", "--short=12", name]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def test_a_version_that_cannot_be_read_is_reported(
    history: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    good = (history / "registry.json").read_text()
    (history / "registry.json").write_text('{"schemas": [')
    git(history, "commit", "-qam", "a slip")
    slip = _commit(history, "HEAD")
    (history / "registry.json").write_text(good)
    git(history, "commit", "-qam", "mended")
    words = ("--registry", str(history), "--against", "HEAD", "--mode", "FORWARD_TRANSITIVE")
    assert tally(*words) == 1
    assert f"unread commit {slip}: registry/registry.json:1: " in capsys.readouterr().out
    tally(*words, "--json")
    (unread,) = json.loads(capsys.readouterr().out)["unread"]
    assert unread["commit"].startswith(slip)
    junit = tmp_path / "junit.xml"
    tally(*words, "--github", "--junit", str(junit))
    assert f"title=commit {slip}::cannot be read: " in capsys.readouterr().out
    assert f"commit {slip}" in junit.read_text()


def test_a_shallow_clone_cannot_answer_for_the_whole_history(history: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{history.parent}", str(clone))
    with pytest.raises(Unavailable, match="shallow"):
        tally("--registry", str(clone / "registry"), "--against", "HEAD",
              "--mode", "FULL_TRANSITIVE")  # fmt: skip


@pytest.mark.parametrize("mode", ["FORWARD", "NONE"])
def test_a_removed_urn_breaks_no_reader_of_the_old_schemas(
    mode: str, history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tally("--registry", str(history), "--json", "--against", "v2", "--mode", mode)
    rows = {row["urn"]: row for row in json.loads(capsys.readouterr().out)["urns"]}
    assert rows["urn:b"]["verdict"] == "compatible"
    assert [row["effect"] for row in rows["urn:b"]["changes"]] == ["compatible"]


def test_the_witness_is_shown_once_however_many_rows_break(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text('{"type": "object"}')
    new.write_text('{"type": "object", "required": ["a", "b"], "minProperties": 9}')
    assert tally(str(old), str(new), "--github") == 1
    said = capsys.readouterr().out
    assert said.count("::error ") > 1
    assert said.count("witness, ") == 1


def test_nothing_is_ever_checked_out(history: Path) -> None:
    before = {path.name: path.read_bytes() for path in history.iterdir()}
    tally("--registry", str(history), "--against", "v1")
    assert {path.name: path.read_bytes() for path in history.iterdir()} == before


def test_the_text_names_state_and_verdict(
    history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tally("--registry", str(history), "--against", "v2") == 1
    lines = capsys.readouterr().out.splitlines()
    assert "removed urn:b: breaking" in lines
    assert lines[-1] == "3 URN(s) differ: 1 breaking, 2 compatible."


@pytest.mark.parametrize("reference", ["no-such-branch", "--help", ""])
def test_a_reference_git_does_not_know_is_refused(history: Path, reference: str) -> None:
    with pytest.raises((Unavailable, UsageError)):
        tally("--registry", str(history), f"--against={reference}")


def test_a_folder_outside_git_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    (tmp_path / "registry.json").write_text("{}")
    with pytest.raises(Unavailable, match="not inside a git repository"):
        tally("--registry", str(tmp_path), "--against", "HEAD")
