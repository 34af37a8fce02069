"""Laws of the judge: each rule can pass, and each can fail."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.verdict import Case, Outcome
from tallystick.suites.judge import judge
from tallystick.suites.rules import RULES


def b64(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def doc(value: Any) -> dict[str, str]:
    return {"bytes_base64": b64(json.dumps(value))}


OK = {"verdict": "ok", "accepted": True, "warnings": []}
SPLICE = {
    "dead_letter": {"reason": "poison"}, "shape": "splice", "record": {"a": 1},
}  # fmt: skip
EITHER = {
    "dead_letter": {"reason": "poison"}, "shape": "splice_or_wrapper",
    "record": {"raw": '{"n":1e400}'}, "splice_literals": ["1e400"], "splice_keys": ["n"],
}  # fmt: skip
MINIMAL = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
TIMED = {**MINIMAL, "time": "2018-04-05T17:31:00Z"}
WRITTEN = {"format": "json", "event": MINIMAL}
DEAD = '"dead_letter":{"reason":"poison"}'
HELD = {"member": "0" * 32 + ":b", "score": 1}
STATE = {"ready": ["a"], "deadlines": [HELD], "delayed": [{"member": "{ }", "score": 1}]}
STEPS = [{
    "ready": ["a"], "delayed": [{"body_json": {}, "score": 1}], "tokens_distinct": True,
    "deadlines": [{"token": "<any>", "raw": "b", "score": 1}],
}]  # fmt: skip

PASSES: list[tuple[str, Any, dict[str, Any]]] = [
    ("members", {"attempts": 2}, {"attempts": 2, "more": 1}),
    ("contains", {"sections": {"h": {"a": "1"}}}, {"sections": {"h": {"a": "1", "b": "2"}}}),
    ("no_members", ["record"], {}),
    ("nowhere", ["/sections/h/x"], {"sections": {"h": {"y": 1}}}),
    ("types", {"/h/x": "long"}, {"types": {"/h/x": "long", "/h/y": "text"}}),
    ("bytes", {"bytes_base64": b64("x")}, {"bytes_base64": b64("x")}),
    ("matches", {"bytes_base64": "x[0-9]+"}, {"bytes_base64": b64("x12")}),
    ("json", {"data_base64": {"a": 1.5}}, {"data_base64": b64('{ "a": 1.50 }')}),
    (
        "json_contains",
        {"dead_letter_base64": {"a": 1}},
        {"dead_letter_base64": b64('{"a":1,"b":2}')},
    ),
    ("document", {"/meta/lang": "go", "/data": {}}, doc({"meta": {"lang": "go"}, "data": {}})),
    ("absent", ["/urn", "/meta/ts"], doc({"job": "x"})),
    ("decodes", True, OK),
    ("decodes", False, {"verdict": "poison"}),
    ("accepted", True, OK),
    ("accepted", False, {"verdict": "ok", "accepted": False}),
    ("valid", True, OK),
    ("valid", False, {"verdict": "no_identity"}),
    ("valid", False, {"verdict": "ok", "accepted": False}),
    ("warned", True, {"warnings": ["/urn"]}),
    ("warned", False, {}),
    ("warnings", ["/urn"], {"warnings": ["/timestamp", "/urn"]}),
    ("rejected", {}, {"rejected": "no"}),
    ("rejected", {"code": "a", "pointer": "/x"}, {"rejected": "no", "pointer": "/x"}),
    ("within", {"min": 0, "max": 4}, {"min": 0.0, "max": 4.0}),
    ("redis_steps", STEPS, {"steps": [STATE]}),
    ("poison_record", SPLICE, {"bytes_base64": b64('{"a":1,' + DEAD + "}")}),
    ("poison_record", EITHER, {"bytes_base64": b64('{"n":1e400,' + DEAD + "}")}),
    ("poison_record", EITHER, {"bytes_base64": b64('{"raw":"{\\"n\\":1e400}",' + DEAD + "}")}),
    ("event", TIMED, {"event": {**MINIMAL, "time": "2018-04-05T19:31:00.0004+02:00"}}),
    ("events", [MINIMAL, TIMED], {"events": [MINIMAL, TIMED]}),
    ("parsed", True, {"event": MINIMAL}),
    ("parsed", True, {"events": []}),
    ("reads_as", WRITTEN, doc({**MINIMAL, "time": None})),
    ("json_members", {"id": "1", "time": {"absent": True}}, doc(MINIMAL)),
    ("json_members", {"time": {"absent": True}}, doc({"time": None})),
]
FAILS: list[tuple[str, Any, dict[str, Any]]] = [
    ("members", {"attempts": 2}, {"attempts": 2.0}),
    ("members", {"attempts": 2}, {}),
    ("contains", {"sections": {"h": {"a": "1"}}}, {"sections": {"h": {"a": 1}}}),
    ("no_members", ["record"], {"record": None}),
    ("nowhere", ["/sections/h/x"], {"sections": {"h": {"x": None}}}),
    ("types", {"/h/x": "long"}, {"types": {"/h/x": "integer"}}),
    ("types", {"/h/x": "long"}, {"types": {}}),
    ("types", {"/h/x": "long"}, {"types": []}),
    ("bytes", {"bytes_base64": b64("x")}, {"bytes_base64": b64("x ")}),
    ("matches", {"bytes_base64": "x[0-9]+"}, {"bytes_base64": b64("x12 ")}),
    ("matches", {"bytes_base64": "x[0-9]+"}, {}),
    ("bytes", {"bytes_base64": b64("x")}, {"bytes_base64": "eA"}),
    ("bytes", {"bytes_base64": b64("x")}, {"bytes_base64": 5}),
    ("bytes", {"bytes_base64": b64("x")}, {}),
    ("json", {"data_base64": {"a": 1}}, {"data_base64": b64('{"a":1.0}')}),
    ("json", {"data_base64": {"a": 1}}, {"data_base64": b64('{"a":')}),
    ("json_contains", {"dead_letter_base64": {"a": 1}}, {"dead_letter_base64": b64('{"b":2}')}),
    ("document", {"/data": {}}, doc({"data": []})),
    ("document", {"/data": {}}, {"bytes_base64": b64("\xff")}),
    ("document", {"/data": {}}, {"bytes_base64": b64("[" * 100_000)}),
    ("absent", ["/urn"], doc({"urn": None})),
    ("decodes", True, {"verdict": "poison"}),
    ("decodes", True, {}),
    ("decodes", False, OK),
    ("accepted", True, {"accepted": 1}),
    ("accepted", False, OK),
    ("accepted", False, {"verdict": "ok"}),
    ("accepted", False, {"verdict": "ok", "accepted": None}),
    ("valid", True, {"verdict": "ok", "accepted": False}),
    ("valid", False, OK),
    ("valid", False, {}),
    ("valid", False, {"verdict": "ok"}),
    ("warned", True, {"warnings": []}),
    ("warned", False, {"warnings": ["/urn"]}),
    ("warned", False, {"warnings": "none"}),
    ("warnings", ["/urn"], {"warnings": ["/URN"]}),
    ("rejected", {}, {"bytes_base64": ""}),
    ("rejected", {"code": "a"}, {"code": "a"}),
    ("rejected", {"pointer": "/x"}, {"rejected": "no", "pointer": "/y"}),
    ("rejected", {"code": "a"}, {"rejected": "no", "code": "b"}),
    ("within", {"min": 0, "max": 4}, {"min": 0, "max": 4.1}),
    ("within", {"min": 4, "max": 4}, {"min": 0, "max": 4}),
    ("within", {"min": 0, "max": 4}, {"min": True, "max": 4}),
    ("within", {"min": 0, "max": 4}, {"min": 0}),
    ("redis_steps", STEPS, {"steps": []}),
    ("redis_steps", STEPS, {"steps": [{**STATE, "ready": ["b"]}]}),
    ("redis_steps", STEPS, {"steps": [{**STATE, "deadlines": []}]}),
    ("redis_steps", STEPS, {"steps": [{**STATE, "deadlines": [HELD, HELD]}]}),
    ("redis_steps", STEPS, {"steps": [{**STATE, "deadlines": [{**HELD, "score": 2}]}]}),
    ("redis_steps", STEPS, {"steps": [{**STATE, "deadlines": [{**HELD, "member": "x:b"}]}]}),
    ("redis_steps", STEPS, {"steps": [{**STATE, "delayed": [{"member": "{", "score": 1}]}]}),
    ("redis_steps", STEPS, {"steps": [{}]}),
    ("redis_steps", [{"unheard-of": 1}], {"steps": [STATE]}),
    ("poison_record", SPLICE, {"bytes_base64": b64('{"a":1}')}),
    ("poison_record", SPLICE, {"bytes_base64": b64('{"a":1,"b":2,' + DEAD + "}")}),
    ("poison_record", SPLICE, {"bytes_base64": b64("[]")}),
    ("poison_record", EITHER, {"bytes_base64": b64('{"n":1E400,' + DEAD + "}")}),
    ("poison_record", EITHER, {"bytes_base64": b64('{"n":1e400,"raw":"",' + DEAD + "}")}),
    ("event", MINIMAL, {"event": TIMED}),
    ("event", TIMED, {"event": {**MINIMAL, "time": "2018-04-05T17:31:00.001Z"}}),
    ("event", MINIMAL, {"event": {**MINIMAL, "extensions": {"x": {"float": 1.5}}}}),
    ("event", MINIMAL, {"event": {**MINIMAL, "data": {"json": None}}}),
    ("event", MINIMAL, {}),
    ("events", [MINIMAL, TIMED], {"events": [TIMED, MINIMAL]}),
    ("events", [MINIMAL], {"events": []}),
    ("events", [], {}),
    ("parsed", True, {}),
    ("reads_as", WRITTEN, doc(TIMED)),
    ("reads_as", WRITTEN, {"bytes_base64": b64("{")}),
    ("reads_as", WRITTEN, {}),
    ("json_members", {"id": "1"}, doc({"id": 1})),
    ("json_members", {"data": {"absent": True}}, doc({"data": None})),
    ("json_members", {"id": "1"}, {"bytes_base64": b64("[")}),
]  # fmt: skip


def outcome(rule: str, wanted: Any, result: dict[str, Any]) -> Outcome:
    return judge(Case("s/x/1", "any", {}, {rule: wanted}), result).outcome


@pytest.mark.parametrize(("rule", "wanted", "result"), PASSES)
def test_each_rule_passes_what_is_right(rule: str, wanted: Any, result: dict[str, Any]) -> None:
    assert outcome(rule, wanted, result) is Outcome.PASSED


@pytest.mark.parametrize(("rule", "wanted", "result"), FAILS)
def test_each_rule_fails_what_is_wrong(rule: str, wanted: Any, result: dict[str, Any]) -> None:
    assert outcome(rule, wanted, result) is Outcome.FAILED


def test_every_rule_has_a_case_that_passes_and_one_that_fails() -> None:
    assert {rule for rule, _, _ in PASSES} == set(RULES) == {rule for rule, _, _ in FAILS}


def test_a_rejection_nobody_expected_is_one_difference() -> None:
    case = Case("s/x/1", "make", {}, {"document": {"/a": 1, "/b": 2}, "warned": False})
    (difference,) = judge(case, {"rejected": "too late"}).differences
    assert (difference.pointer, difference.found) == ("/rejected", "too late")


def test_steps_are_judged_one_by_one() -> None:
    case = Case("s/x/1", "steps", {}, {"steps": [{"members": {"a": 1}}, {"members": {"b": 2}}]})
    verdict = judge(case, {"steps": [{"a": 1}, {"b": 3}]})
    assert [one.pointer for one in verdict.differences] == ["/steps/1/b"]


def test_a_subject_that_names_no_types_never_passes_where_they_are_asked_for() -> None:
    expect = {"members": {"a": 1}, "types": {"/h/x": "long"}}
    case = Case("s/x/1", "project", {}, expect)
    steps = Case("s/x/1", "steps", {}, {"steps": [{}, expect]})
    assert judge(case, {"a": 1}).outcome is Outcome.UNSUPPORTED
    assert judge(case, {"a": 2}).outcome is Outcome.FAILED
    assert judge(case, {"a": 1, "types": {"/h/x": "long"}}).outcome is Outcome.PASSED
    assert judge(steps, {"steps": [{}, {"a": 1}]}).outcome is Outcome.UNSUPPORTED


def test_a_step_that_was_not_answered_fails() -> None:
    case = Case("s/x/1", "steps", {}, {"steps": [{"members": {"a": 1}}, {"members": {"b": 2}}]})
    verdict = judge(case, {"steps": [{"a": 1}]})
    assert [(one.pointer, one.found) for one in verdict.differences] == [("/steps/1", ...)]


def test_a_lone_surrogate_of_a_subject_can_be_written() -> None:
    case = Case("s/x/1", "any", {}, {"members": {"a": {"b": 1}}})
    for difference in judge(case, {"a": {"\ud800": "\udfff"}}).differences:
        json.dumps(difference.found, ensure_ascii=False, default=str).encode()
        difference.pointer.encode()


def test_bytes_differ_at_a_named_offset() -> None:
    long = "a" * 5000
    case = Case("s/x/1", "canonical", {}, {"bytes": {"bytes_base64": b64(long + "b" + long)}})
    (difference,) = judge(case, {"bytes_base64": b64(long + "c" + long)}).differences
    assert difference.expected.startswith("[byte 5000] ...")
    assert len(difference.expected) < 200


def test_an_answer_is_never_repeated_at_any_length() -> None:
    case = Case("s/x/1", "any", {}, {"members": {"a": 1}})
    (difference,) = judge(case, {"a": "x" * 10**6}).differences
    assert len(difference.found) < 3000


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda v: st.lists(v) | st.dictionaries(st.text(), v),
)


@given(
    st.sampled_from([(rule, wanted) for rule, wanted, _ in PASSES]),
    st.dictionaries(
        st.sampled_from(
            ["bytes_base64", "verdict", "accepted", "warnings", "min", "max", "data_base64"]
        )
        | st.text(max_size=3),
        json_values | st.binary().map(b64),
        max_size=4,
    ),
)
def test_no_answer_makes_the_judge_raise(rule: tuple[str, Any], result: dict[str, Any]) -> None:
    assert outcome(rule[0], rule[1], result) in Outcome


@pytest.mark.parametrize("expect", [{"warned": True}, {"warnings": ["/timestamp"]}])
def test_an_implementation_that_declares_no_warnings_is_judged_on_all_else(
    expect: dict[str, Any],
) -> None:
    case = Case("s/x/1", "decode", {}, {"accepted": True, **expect}, "clause")
    assert judge(case, OK).outcome is Outcome.FAILED
    silent = judge(case, OK, warnings=False)
    assert (silent.outcome, "no warnings" in silent.reason) == (Outcome.UNSUPPORTED, True)
    assert judge(case, {**OK, "accepted": False}, warnings=False).outcome is Outcome.FAILED


def test_a_case_that_wants_no_warning_can_pass_without_warnings() -> None:
    case = Case("s/x/1", "decode", {}, {"accepted": True, "warned": False}, "clause")
    assert judge(case, OK, warnings=False).outcome is Outcome.PASSED


def test_the_steps_of_a_case_are_judged_without_warnings_too() -> None:
    steps = {"steps": [{"accepted": True, "warned": True}]}
    case = Case("s/x/1", "steps", {}, steps, "clause")
    assert judge(case, {"steps": [OK]}).outcome is Outcome.FAILED
    assert judge(case, {"steps": [OK]}, warnings=False).outcome is Outcome.UNSUPPORTED
