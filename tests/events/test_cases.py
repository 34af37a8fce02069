"""Every case of ours on Tallystick itself, and every official case where its files are given."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tallystick.core.errors import Unavailable, UsageError
from tallystick.core.verdict import Case
from tallystick.events.golden import BATCHES, EVENTS
from tallystick.events.neutral import to_neutral
from tallystick.events.official import load_official, load_own
from tallystick.events.subject import EVENT_OPERATIONS
from tallystick.suites.cloudevents import CONFORMANCE
from tests.events.judge import answer, judge
from tests.events.layout import write_layout, write_tests
from tests.official import CLOUDEVENTS, needs

OFFICIAL_CASES = load_official(CLOUDEVENTS) if CLOUDEVENTS else []
OWN_CASES = load_own()


@needs(CONFORMANCE)
def test_all_official_cases_are_loaded() -> None:
    counts = Counter(case.name.split("/")[1] for case in OFFICIAL_CASES)
    assert counts["json"] == 43
    assert counts["protobuf"] == 33
    assert counts["xml"] >= 52
    assert len({case.name for case in OFFICIAL_CASES}) == len(OFFICIAL_CASES)


@needs(CONFORMANCE)
@pytest.mark.parametrize("case", OFFICIAL_CASES, ids=lambda case: case.name)
def test_an_official_case_passes(case: Case) -> None:
    assert judge(case, answer(case)) == []


@pytest.mark.parametrize("case", OWN_CASES, ids=lambda case: case.name)
def test_a_case_of_our_own_passes(case: Case) -> None:
    assert judge(case, answer(case)) == []


def test_our_own_cases_are_many_and_have_names_of_their_own() -> None:
    assert len({case.name for case in OWN_CASES}) == len(OWN_CASES) >= 120
    assert {case.operation for case in OWN_CASES} == EVENT_OPERATIONS.keys()


@pytest.mark.parametrize("case", OFFICIAL_CASES + OWN_CASES, ids=lambda case: case.name)
def test_a_case_can_fail(case: Case) -> None:
    wrong = to_neutral(EVENTS["minimal"]) | {"id": "not this one"}
    for result in ({"event": wrong, "events": [wrong] * 9, "bytes_base64": "e30="}, {}):
        if case.expect != {"parsed": True} or not result:
            assert judge(case, result) != []


def test_files_in_the_official_layout_are_read_in_each_format(tmp_path: Path) -> None:
    cases = load_official(write_layout(tmp_path))
    count = len(EVENTS) + len(BATCHES) + 1
    assert Counter(case.name.split("/")[1] for case in cases) == dict.fromkeys(
        ("json", "protobuf", "xml"), count
    )
    assert [case.name for case in cases if judge(case, answer(case))] == []
    assert load_official(tmp_path / "format") == cases
    leaf = load_official(tmp_path / "format" / "xml")
    assert leaf == [case for case in cases if case.name.startswith("cloudevents/xml/")]


def test_a_folder_without_cases_says_so(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        load_official(tmp_path)


def test_an_unknown_sample_names_the_file_and_where_to_define_it(tmp_path: Path) -> None:
    home = tmp_path / "json"
    write_tests(home, [{"id": "mine", "sampleId": "json-mine", "event": {}}])
    with pytest.raises(UsageError, match="unknown sampleId 'json-mine'") as caught:
        load_official(tmp_path)
    assert str(home / "valid-events.json") in str(caught.value)
    assert str(home / "samples.json") in caught.value.hint


def test_a_folder_defines_samples_of_its_own(tmp_path: Path) -> None:
    home = tmp_path / "json"
    event = {"specversion": "1.0", "id": "7", "source": "/s", "type": "t"}
    defined = {"events": {"json-mine": event}, "batches": {"pair": ["minimal", "json-mine"]}}
    write_tests(home, [{"id": "mine", "sampleId": "json-mine", "event": event}])
    minimal = to_neutral(EVENTS["minimal"])
    batch = {"id": "both", "sampleId": "pair", "batch": [minimal, event]}
    write_tests(home, [batch], "ValidBatch")
    (home / "samples.json").write_text(json.dumps(defined))
    mine, both = load_official(tmp_path)
    assert (judge(mine, answer(mine)), judge(both, answer(both))) == ([], [])
    assert judge(mine, {"event": {**event, "id": "8"}}) != []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("json/valid-events.json", "["),
        ("json/valid-events.json", '{"tests": [{"id": "a", "event": {}}]}'),
        ("json/samples.json", '{"events": {"a": {"id": "1"}}}'),
        ("json/samples.json", '{"batches": {"a": ["nothing"]}}'),
        ("protobuf/valid-events.json", '{"tests": [{"id": "a"}]}'),
        ("protobuf/valid-events.json", '{"tests": [{"id": "a", "validSingle": {"no": 1}}]}'),
        ("xml/valid-events.xml", "<testFile><test/></testFile>"),
        ("xml/valid-events.xml", "<testFile"),
    ],
)
def test_a_file_in_another_layout_is_named_in_one_line(
    name: str, text: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_official(tmp_path)
    assert str(path) in str(caught.value)


def test_our_own_cases_are_named_by_format_group_and_name() -> None:
    parts = [case.name.split("/") for case in OWN_CASES]
    assert {len(each) for each in parts} == {5}
    forms = {"json", "protobuf", "xml", "avro", "avro-compact", "modes"}
    assert {each[2] for each in parts} == forms
