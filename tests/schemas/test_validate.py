from __future__ import annotations

import argparse
import io
import json
import os
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree  # type: ignore[import-untyped]

from tallystick.cli import schema as noun
from tallystick.core.errors import Rejected
from tallystick.schemas.catalog import Catalog, load_catalog, parse_catalog
from tallystick.schemas.stream import Tally, judge_chunk, judge_lines, judge_parallel
from tallystick.schemas.typed import Typed
from tallystick.schemas.validate import (
    Judge,
    build_judge,
    compile_schema,
    compile_subset,
    judge_bytes,
)
from tests.report.junit_rules import JENKINS, check_junit

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "registry"


def catalog_of(schema: Any, urn: str = "u") -> Catalog:
    manifest = json.dumps({"schemas": [{"urn": urn, "schema": "s.json"}]})
    return parse_catalog(manifest, lambda _: json.dumps(schema).encode())


def tally(*words: str) -> int:
    parser = argparse.ArgumentParser()
    noun.register(parser)
    args = parser.parse_args(["validate", *words])
    return int(args.run(args))


def test_every_violation_has_pointer_keyword_expected_and_found() -> None:
    raw = (EXAMPLE / "messages" / "order-invalid.json").read_bytes()
    finding = judge_bytes(build_judge(load_catalog(EXAMPLE)), raw, "m.json")
    assert [one[:4] for one in finding.violations] == [
        ("/data", "required", "currency", None),
        ("/data/amount", "type", ["number"], "12"),
        ("/data/lines/0/sku", "minLength", 1, ""),
        ("/data/order_id", "minimum", 1, 0),
    ]


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer"}, b"1.0", b"1.5"),
        ({"const": 9007199254740992}, b"9007199254740992", b"9007199254740993"),
        ({"maximum": 10**30}, b"1" + b"0" * 30, b"1" + b"0" * 29 + b"01"),
        ({"minLength": 3}, "日本語".encode().join([b'"'] * 2), '"日本"'.encode()),
        ({"$ref": "#/definitions/a", "definitions": {"a": {"type": "null"}}}, b"null", b"0"),
        ({"format": "email"}, b'"a@b.c"', b'"nope"'),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": [False]},
         b"[]", b"[1]"),
        (False, b"{", b"1"),
    ],
)  # fmt: skip
def test_the_whole_of_json_schema_holds_exactly(schema: Any, good: bytes, bad: bytes) -> None:
    judge = build_judge(catalog_of(schema), urn="u")
    assert judge_bytes(judge, good, "f").outcome == ("ok" if schema is not False else "unreadable")
    assert judge_bytes(judge, bad, "f").outcome == "invalid"


def test_formats_assert_only_where_the_dialect_or_the_caller_says_so() -> None:
    modern = {"$schema": "https://json-schema.org/draft/2020-12/schema", "format": "email"}
    assert compile_schema(modern).is_valid("nope")
    assert not compile_schema(modern, formats="assert").is_valid("nope")
    assert compile_schema({"format": "email"}, formats="annotate").is_valid("nope")


def test_a_malformed_schema_is_rejected_with_its_pointer() -> None:
    with pytest.raises(Rejected) as caught:
        compile_schema({"properties": {"a": {"type": "strnig"}}})
    assert caught.value.pointer == "/properties/a/type"


MODERN = "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("pattern", ["a**", "a+*", "(?-u)a", r"(?-u:\w)", "(?i)a", "(?!x)a**"])
@pytest.mark.parametrize(
    "dialect",
    [MODERN, MODERN.replace("2020-12", "2019-09"), "http://json-schema.org/draft-07/schema"],
)
def test_a_pattern_that_ecma_262_refuses_is_malformed_in_every_dialect(
    pattern: str, dialect: str
) -> None:
    with pytest.raises(Rejected) as caught:
        compile_schema({"$schema": dialect, "properties": {"a": {"not": {"pattern": pattern}}}})
    assert caught.value.message == (
        f'the schema is malformed: {json.dumps(pattern)} is not a "regex"'
    )
    assert caught.value.pointer == "/properties/a/not/pattern"


def test_a_pattern_under_defs_is_read_in_draft_07() -> None:
    with pytest.raises(Rejected) as caught:
        compile_schema({"$ref": "#/$defs/a", "$defs": {"a": {"pattern": "a**"}}})
    assert caught.value.pointer == "/$defs/a/pattern"


def test_a_name_of_pattern_properties_is_a_pattern_too() -> None:
    with pytest.raises(Rejected) as caught:
        compile_schema({"$schema": MODERN, "items": {"patternProperties": {"^/a**": True}}})
    assert caught.value.pointer == "/items/patternProperties/^~1a**"


@pytest.mark.parametrize("keyword", ["const", "default", "x-note"])
def test_what_only_looks_like_a_pattern_is_none(keyword: str) -> None:
    value = {"pattern": "a**", "patternProperties": {"a**": {}}}
    compile_schema({"$schema": MODERN, keyword: value, "enum": [value], "examples": [value]})
    compile_schema({"$schema": MODERN, "properties": {"pattern": {"type": "string"}}})


@pytest.mark.parametrize("look", ["", "(?!x)"])
@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [(r"\p{L}{1,255}$", "é" * 255, "é" * 256), ("[^<>]{0,20000}$", "é" * 20_000, "é" * 20_001)],
)
def test_a_long_count_of_a_wide_class_is_a_pattern(
    look: str, pattern: str, good: str, bad: str
) -> None:
    checker = compile_schema({"pattern": f"^{look}{pattern}"})
    assert checker.is_valid(good)
    assert not checker.is_valid(bad)


def test_a_pattern_too_large_to_be_compiled_is_refused() -> None:
    with pytest.raises(Rejected):
        compile_schema({"pattern": r"(\p{L}{1000}){1000}"})


def test_a_runaway_pattern_refuses_the_message_and_returns() -> None:
    checker = compile_schema({"pattern": "^(a|a)*(?=b)b$"})
    assert not checker.is_valid("a" * 5000)


@pytest.mark.parametrize(
    ("raw", "outcome"),
    [
        (b'{"job":"u","data":1}', "ok"),
        (b'{"job":"","urn":"u","data":1}', "ok"),
        (b'{"job":"nope","urn":"u","data":1}', "unknown"),
        (b'{"data":1}', "unknown"),
        (b'{"job":"u"}', "invalid"),
        (b'{"job":"u","data":"1"}', "invalid"),
        (b'{"job":"u","data":1,"data":1}', "unreadable"),
        (b'{"job":"u","data":1,"meta":{"a":"\\u003a","a":1}}', "unreadable"),
        (b'{"job":"u","meta":{"a" :1,"a":2},"data":1}', "unreadable"),
        (b'{"data":1,"data":1}', "unreadable"),
        (b'{"data":"1","data":1}', "unreadable"),
        (b'{"job":"u","data":1,"trace_id":"\\ud800"}', "unreadable"),
        (b'{"job":"u","data":1,"trace_id":"a \\"b\\" \\u0041"}', "ok"),
        (b'{"data":1,"job":"u"}', "ok"),
        (b'{"job":"u","meta":{"id":1,"id":2},"data":1}', "unreadable"),
        (b'{"job":"u","job":"u","data":1}', "unreadable"),
        (b'{"job":"u","meta":{"id":1},"data":1,"other":{"a":1}}', "ok"),
        (b'{"job":"u","meta":7,"data":1}', "ok"),
        (b'{"job":"u","data":18446744073709551617}', "ok"),
        (b'{"job":"u","data":1.0}', "ok"),
        (b'{"job":["u"],"data":1}', "unknown"),
        (b'{"job":"u","data":NaN}', "unreadable"),
        (b'{"job":"u","data":1}{"job":"u","data":1}', "unreadable"),
        (b"[1]", "unreadable"),
        (b'{"job":"u","data":', "unreadable"),
        (b"\xff", "unreadable"),
    ],
)
@pytest.mark.parametrize("schema", [{"type": "integer"}, {"type": "integer", "not": False}])
def test_a_line_is_judged_like_the_same_bytes_in_a_file(
    raw: bytes, outcome: str, schema: Any
) -> None:
    judge = build_judge(catalog_of(schema))
    assert judge_bytes(judge, raw, "f").outcome == outcome
    good = b'{"job":"u","data":7}\n'
    texts = (raw + b"\n", good + raw + b"\n" + good, good + good + raw)
    for text, typed in product(texts, (Typed(judge), ready(judge))):
        found = judge_chunk(typed, text, "f", 0)
        at = text.split(b"\n").index(raw) + 1
        assert [(one.line, one.outcome) for one in found.findings] == (
            [] if outcome == "ok" else [(at, outcome)]
        )
        assert found.ok == text.count(good) + (outcome == "ok")


def ready(judge: Judge) -> Typed:
    """Give a reader that knows its types already; the URN must have been met."""
    typed = Typed(judge)
    typed.learn()
    typed.learn()
    return typed


def test_good_lines_are_read_by_their_type_and_only_the_others_are_doubtful() -> None:
    judge = build_judge(catalog_of({"type": "object", "properties": {"a": {"type": "integer"}}}))
    judge.checker("u")
    typed = ready(judge)
    good, odd = b'{"job":"u","data":{"a":1}}', b'{"job":"u","data":{"b":1}}'
    assert list(typed.doubtful(good + b"\n" + good)[1]) == []
    assert list(typed.doubtful(good + b"\n" + odd)[1]) == [1]
    assert list(typed.doubtful(odd + b"\n" + odd)[1]) == [0, 1]
    assert typed.rest
    assert typed.doubtful(good + b"\n") == (1, range(1))


SCHEMAS = (
    {"type": ["integer", "object"], "maxProperties": 1},
    {"type": ["integer", "object"], "properties": {"a": True, "b": {"type": "string"}}},
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["a", "b", ":", '"']), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(st.lists(VALUES, max_size=5), st.booleans(), st.booleans(), st.sampled_from(SCHEMAS))
def test_the_quick_way_and_the_exact_way_agree(
    data: list[Any], compact: bool, plain: bool, schema: Any
) -> None:
    judge = build_judge(catalog_of(schema))
    separators = (",", ":") if compact else None
    extra = {"more": {"a": 1}} if plain else {}
    rows = [{"job": "u", "data": one, "meta": {"id": "x"}, **extra} for one in data]
    lines = [json.dumps(row, separators=separators).encode() for row in rows]
    slow = [judge_bytes(judge, line, "f", at) for at, line in enumerate(lines, 1)]
    for typed in (Typed(judge), ready(judge)):
        quick = judge_chunk(typed, b"\n".join(lines) + b"\n", "f", 0) if lines else Tally()
        assert quick.findings == [one for one in slow if one.outcome != "ok"]
        assert quick.ok == sum(one.outcome == "ok" for one in slow)


@pytest.mark.parametrize("ending", [b"\n", b""])
def test_two_processes_find_what_one_finds_in_the_same_order(tmp_path: Path, ending: bytes) -> None:
    path = tmp_path / "m.jsonl"
    rows = [b'{"job":"u","data":%d}' % n if n % 7 else b'{"job":"u"}' for n in range(5000)]
    path.write_bytes(b"\n".join(rows) + ending)
    judge = build_judge(catalog_of({"type": "integer"}))
    with path.open("rb") as file:
        alone = [tally for tally, _ in judge_lines(judge, file, str(path))]
    shared = [tally for tally, _ in judge_parallel(judge, str(path), 2, share=10_000)]
    assert len(shared) > 5
    flat = [finding for tally in alone for finding in tally.findings]
    assert flat == [finding for tally in shared for finding in tally.findings]
    assert [one.line for one in flat] == list(range(1, 5001, 7))
    assert sum(tally.ok for tally in shared) == sum(tally.ok for tally in alone) == 5000 - len(flat)


def test_files_are_judged_and_the_exit_code_tells(capsys: pytest.CaptureFixture[str]) -> None:
    good = str(EXAMPLE / "messages" / "order-created.json")
    bad = str(EXAMPLE / "messages" / "order-invalid.json")
    assert tally("--registry", str(EXAMPLE), good) == 0
    assert tally("--registry", str(EXAMPLE), good, bad) == 1
    assert "/data/order_id: minimum: expected 1, found 0" in capsys.readouterr().out


@pytest.mark.parametrize(("policy", "code"), [("fail", 1), ("warn", 0), ("skip", 0)])
def test_an_unknown_urn_fails_unless_told_otherwise(
    tmp_path: Path, policy: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.json"
    path.write_text('{"job": "urn:nobody", "data": {}}')
    assert tally("--registry", str(EXAMPLE), "--unknown", policy, str(path)) == code
    assert "no schema registered" in capsys.readouterr().out


def test_bare_data_is_judged_with_a_urn(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text('{"order_id": 1, "amount": 1, "currency": "EUR"}')
    words = ("--registry", str(EXAMPLE), "--urn", "urn:babel:orders:created", str(path))
    assert tally(*words) == 0
    assert tally(*words, "--jsonl") == 0


def test_a_stream_is_read_from_stdin_and_reported_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reading, writing = os.pipe()
    os.write(writing, b'{"job":"urn:babel:orders:created","data":{}}\n')
    os.close(writing)
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert tally("--registry", str(EXAMPLE), "--jsonl", "--json", "-") == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["invalid"], report["ok"]) == (1, 0)
    assert [one["expected"] for one in report["findings"][0]["violations"]] == [
        "amount", "currency", "order_id",
    ]  # fmt: skip


def test_the_progress_bar_is_drawn_only_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(b'{"job":"urn:babel:users:registered","data":{"user_id":1,"email":"a"}}\n')
    for terminal in (True, False):
        screen = io.StringIO()
        monkeypatch.setattr(screen, "isatty", lambda: terminal)  # noqa: B023 - used at once
        monkeypatch.setattr("sys.stderr", screen)
        assert tally("--registry", str(EXAMPLE), "--jsonl", str(path)) == 0
        assert ("[####" in screen.getvalue()) is terminal


def test_annotations_and_junit_name_the_file_and_conform(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = str(EXAMPLE / "messages" / "order-invalid.json")
    junit = tmp_path / "junit.xml"
    assert tally("--registry", str(EXAMPLE), "--github", "--junit", str(junit), bad) == 1
    assert capsys.readouterr().out.startswith(f"::error file={bad},title={bad} [urn%3Ababel")
    check_junit(etree.parse(junit).getroot(), (JENKINS,))


def test_the_subset_judges_by_fewer_keywords(capsys: pytest.CaptureFixture[str]) -> None:
    bad = str(EXAMPLE / "messages" / "order-invalid.json")
    assert tally("--registry", str(EXAMPLE), "--subset", bad) == 1
    assert "1 violation\n" in capsys.readouterr().out
    judge = build_judge(catalog_of({"maxLength": 1}), urn="u", compile_with=compile_subset)
    assert judge_bytes(judge, b'"abc"', "f").outcome == "ok"
    deep = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}}
    judge = build_judge(catalog_of(deep), urn="u", compile_with=compile_subset)
    finding = judge_bytes(judge, b'{"a": ["x", 1]}', "f")
    assert [one[:2] for one in finding.violations] == [("/a/1", "not_a_string")]


def test_a_malformed_schema_met_by_a_worker_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(b'{"job":"u","data":1}\n' * 100)
    judge = build_judge(catalog_of({"type": "strnig"}))
    with pytest.raises(Rejected) as caught:
        list(judge_parallel(judge, str(path), 2, share=500))
    assert (caught.value.pointer, caught.value.code) == ("/type", "schema.malformed")


def test_workers_end_when_nobody_listens_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(b'{"job":"u","data":"x"}\n' * 20_000)
    judge = build_judge(catalog_of({"type": "integer"}))
    workers: list[int] = []
    fork = os.fork

    def fork_and_note() -> int:
        child = fork()
        if child:
            workers.append(child)
        return child

    monkeypatch.setattr("os.fork", fork_and_note)
    parts = judge_parallel(judge, str(path), 2, share=50_000)
    next(parts)
    parts.close()  # type: ignore[attr-defined]
    assert len(workers) == 2
    for worker in workers:
        with pytest.raises(ChildProcessError):  # it has ended, and its parent has reaped it
            os.waitpid(worker, os.WNOHANG)


def test_no_worker_is_started_without_a_part(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(b'{"job":"u","data":1}\n' * 3)
    judge = build_judge(catalog_of({"type": "integer"}))
    ((found, _),) = judge_parallel(judge, str(path), 10**15)
    assert (found.ok, found.lines) == (3, 3)


def test_a_pattern_that_counts_far_meets_a_long_text_under_the_limit_of_time() -> None:
    checker = compile_schema({"properties": {"s": {"pattern": "[^<>]{0,20000}<$"}}})
    assert checker.is_valid({"s": "text <"})
    assert [one.keyword for one in checker.violations({"s": "text"})] == ["pattern"]
    with pytest.raises(Rejected, match="takes longer than") as caught:
        checker.is_valid({"s": "a" * 100_000})
    assert "pattern" in (caught.value.hint or "")
