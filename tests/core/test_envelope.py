from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core import envelope as module
from tallystick.core.canonical import canonical
from tallystick.core.envelope import (
    Envelope,
    accepts,
    classify,
    decode,
    encode,
    make,
    reading,
    reason_not_accepted,
    replace,
)
from tallystick.core.errors import Refused, Rejected
from tallystick.core.exact import judge
from tallystick.core.scan import MAX_BYTES
from tests.core.messages import dumps, payloads, texts


def new(**options: Any) -> Envelope:
    ids = map("id-{}".format, count(1))
    return make("urn:x", options.pop("data", {}), now_ms=5, new_id=lambda: next(ids), **options)


def outcome(function: Any, body: bytes) -> Any:
    try:
        return function(body)
    except Rejected as rejection:
        return rejection.code, rejection.pointer, rejection.offset


@given(texts().map(str.encode))
def test_a_body_decoded_whole_is_what_two_steps_give(body: bytes) -> None:
    once = outcome(lambda one: decode(one, whole=True).data, body)
    assert once == outcome(lambda one: decode(one).document.get("data"), body)


def test_an_integer_that_no_double_holds_is_found_wherever_it_stands() -> None:
    for before in range(620):
        body = b'{"job":"x","data":{"a":"%s","n":%s}}' % (b"-" * before, b"9" * 309)
        with pytest.raises(Rejected) as caught:
            decode(body, whole=True)
        assert caught.value.code == "number_out_of_range"


@given(texts().map(str.encode))
def test_the_quick_decoder_agrees_with_the_rule(body: bytes) -> None:
    quick, exact = outcome(decode, body), outcome(judge, body)
    if isinstance(quick, tuple):
        assert quick == exact
        return
    meta, block = exact.part("meta"), exact.part("dead_letter")
    names = ("id", "queue", "lang", "schema_version", "created_at")
    assert quick.urn == exact.job
    assert quick.warnings == exact.notices
    assert quick.trace_id == exact.values.get("trace_id")
    assert quick.attempts == exact.values.get("attempts")
    assert (quick.payload is not None) == ("data" in exact.objects)
    assert (quick.meta is None) == (meta is None)
    if meta is not None:
        assert {n: getattr(quick.meta, n) for n in names} == {n: meta.get(n) for n in names}
    assert (quick.dead_letter is None) == (block is None)


@given(texts().map(str.encode))
def test_a_body_that_is_ok_is_an_object_for_everyone(body: bytes) -> None:
    if classify(body).verdict == "ok":
        assert isinstance(json.loads(body), dict)
        message = decode(body)
        if "inf" not in repr(message.document):  # a number that no double holds is not written
            encode(message)


def test_a_number_that_no_double_holds_is_read_outside_of_data_and_never_written() -> None:
    read = decode(b'{"job":"urn:a:b","meta":{"ext":1e999}}')
    with pytest.raises(Refused) as refused:
        encode(read)
    assert (refused.value.code, refused.value.pointer) == ("not_finite", "/meta/ext")


@given(payloads)
def test_what_is_made_can_be_decoded_and_written_again(data: dict[str, Any]) -> None:
    written = encode(new(data=data))
    again = decode(written)
    assert accepts(again)
    assert encode(again) == written
    assert canonical(again.data) == canonical(data)


@given(payloads)
def test_a_change_after_making_cannot_reach_the_message(data: dict[str, Any]) -> None:
    envelope = new(data=data)
    before = encode(envelope)
    data["later"] = float("nan")
    (envelope.data or {})["later"] = float("nan")
    assert encode(envelope) == before


@given(payloads, st.dictionaries(st.sampled_from(["x", "y", "\U00010000"]), payloads))
def test_unknown_members_survive(data: dict[str, Any], more: dict[str, Any]) -> None:
    body = dumps({"job": "urn:x", "data": data, **more})
    again = decode(encode(replace(decode(body), attempts=1)))
    assert canonical({k: again.document[k] for k in more}) == canonical(more)


@pytest.mark.parametrize("version", ["true", "1.0", '"1"', "1e0"])
def test_only_the_integer_1_is_the_schema_version(version: str) -> None:
    body = b'{"job":"x","meta":{"schema_version":%s}}' % version.encode()
    assert classify(body).verdict == "poison"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"job":"x"}', "/meta"),
        ('{"job":"x","meta":{"schema_version":2}}', "/meta/schema_version"),
        ('{"job":"x","meta":{"schema_version":1},"data":null}', "/data"),
        ('{"job":"x","meta":{"schema_version":1},"data":{}}', "/attempts"),
        ('{"job":"x","meta":{"schema_version":1},"data":{},"attempts":0}', "/trace_id"),
        (
            '{"job":"x","meta":{"schema_version":1},"data":{},"attempts":0,"trace_id":"\\t "}',
            "/trace_id",
        ),
    ],
)
def test_what_is_not_accepted_says_which_check_fails(text: str, reason: str) -> None:
    envelope = decode(text.encode())
    assert not accepts(envelope)
    assert str(reason_not_accepted(envelope)).startswith(reason)


@given(texts().map(str.encode))
def test_the_reason_and_the_check_never_disagree(body: bytes) -> None:
    if classify(body).verdict == "ok":
        envelope = decode(body)
        assert accepts(envelope) == (reason_not_accepted(envelope) is None)


def test_a_no_break_space_is_not_blank() -> None:
    assert decode('{"job":"\u00a0"}'.encode()).urn == "\u00a0"


@pytest.mark.parametrize("member", ["kept_body", "tallystick:body", "tallystick:document"])
def test_no_member_reaches_our_own_fields(member: str) -> None:
    body = dumps({"job": "x", member: "evil"})
    assert decode(body).body == body
    assert decode(body).document == {"job": "x", member: "evil"}


def test_a_number_out_of_range_is_found_when_data_is_read() -> None:
    envelope = decode(b'{"job":"x","data":{"n":[0,-1e400]}}')
    with pytest.raises(Rejected) as rejection:
        envelope.data  # noqa: B018
    assert (rejection.value.code, rejection.value.pointer) == ("number_out_of_range", "/data/n/1")


@pytest.mark.parametrize("more", [b"", b',"urn":"u"'])
@pytest.mark.parametrize("number", [b"1" + b"0" * 309, b"-" + b"9" * 5000])
def test_an_integer_that_no_double_holds_is_poison_inside_data(number: bytes, more: bytes) -> None:
    assert classify(b'{"job":"x","data":{"n":%s}%s}' % (number, more)).verdict == "poison"
    assert classify(b'{"job":"x","n":%s%s}' % (number, more)).verdict == "ok"


@pytest.mark.parametrize("name", ["id", "queue", "lang", "schema_version", "created_at", "ts"])
def test_the_contracts_own_names_are_refused_in_meta(name: str) -> None:
    with pytest.raises(Refused) as refusal:
        new(meta={name: 1})
    assert refusal.value.pointer == f"/meta/{name}"


@pytest.mark.parametrize("name", ["job", "urn", "timestamp", "dead_letter"])
def test_the_contracts_own_names_are_refused_at_the_top(name: str) -> None:
    with pytest.raises(Refused) as refusal:
        new(extensions={name: 1})
    assert refusal.value.pointer == f"/{name}"


def test_a_forbidden_member_put_in_later_is_refused_on_encode() -> None:
    with pytest.raises(Refused):
        encode(replace(new(), timestamp=1))
    with pytest.raises(Refused):
        encode(replace(new(), meta={"ts": 1}))


def test_a_message_of_the_wrong_types_is_not_made() -> None:
    with pytest.raises(Refused) as refusal:
        new(queue=5)
    assert refusal.value.pointer == "/meta/queue"


HOSTILE: dict[str, tuple[bytes, str, int]] = {
    "deep": (b'{"job":"x","data":{"a":' + b"[" * 100_000, "too_deep", 1021),
    "deep and closed": (
        b'{"job":"x","data":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
        "too_deep",
        1021,
    ),
    "bom": (b'\xef\xbb\xbf{"job":"x"}', "byte_order_mark", 0),
    "cut utf-8": (b'{"job":"\xe2\x82', "not_utf8", 8),
    "cut": (b'{"job":"x"', "truncated", 10),
    "huge": (b'{"job":"' + b"x" * 64_000_000 + b'"}', "too_large", MAX_BYTES),
    "huge garbage": (b"[" * 64_000_000, "too_large", MAX_BYTES),
    "two": (b'{"job":"x"}{}', "trailing_data", 11),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bodies_get_a_reason_and_an_offset(name: str) -> None:
    body, code, offset = HOSTILE[name]
    with pytest.raises(Rejected) as rejection:
        decode(body)
    assert (rejection.value.code, rejection.value.offset) == (code, offset)


def test_depth_counts_the_same_whatever_the_interpreter_allows() -> None:
    deepest = b'{"job":"x","data":{"a":' + b"[" * 998 + b"]" * 998 + b"}}"
    assert encode(decode(deepest)) == b'{"job":"x","data":{"a":' + b"[" * 998 + b"]" * 998 + b"}}"
    with pytest.raises(Rejected) as rejection:
        decode(deepest.replace(b"[]", b"[[]]"))
    assert rejection.value.code == "too_deep"


def test_everything_public_is_documented() -> None:
    for name in module.__all__:
        thing = getattr(module, name)
        assert not callable(thing) or thing.__doc__


@pytest.mark.parametrize(
    "members",
    [
        {"meta": {"schema_version": True}},
        {"meta": {"schema_version": 1.5}},
        {"attempts": True},
        {"attempts": "1"},
        {"data": []},
        {"job": "  "},
        {"job": 5},
        {"trace_id": 5},
        {"x": float("nan")},
    ],
)
def test_what_could_not_be_read_again_is_not_made_by_replacing(members: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        replace(decode(encode(new())), **members)


@pytest.mark.parametrize(
    "options",
    [
        {"now_ms": 2**64},
        {"now_ms": -1},
        {"new_id": lambda: ""},
        {"queue": ""},
        {"meta": {5: 1}},
        {"extensions": {5: 1}},
        {"extensions": {"x": float("inf")}},
    ],
)
def test_what_could_not_be_read_again_is_not_made(options: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        make("urn:x", {}, **{"now_ms": 5, "new_id": lambda: "id", **options})


def test_a_message_is_a_value() -> None:
    body = encode(new(data={"a": [1]}))
    one, two = decode(body), decode(body)
    assert one.data == {"a": [1]}
    assert one == two
    assert not one != two  # noqa: SIM202 (the operator is what is tested)
    assert hash(one) == hash(two)
    one.document["job"] = "evil"
    (one.data or {})["a"].append(float("nan"))
    assert encode(one) == body
    later = replace(two, attempts=1)
    later.document["meta"]["id"] = "evil"
    assert encode(two) == body
    assert later != two


def test_a_buffer_that_changes_cannot_change_the_message() -> None:
    buffer = bytearray(b'{"job":"urn:x"}')
    envelope = decode(buffer)
    buffer[8:13] = b"urn:y"
    assert envelope.body == b'{"job":"urn:x"}'
    assert decode(memoryview(b'{"job":"urn:x"}')) == envelope
    with pytest.raises(TypeError):
        decode('{"job":"urn:x"}')  # type: ignore[arg-type]


def test_many_shallow_members_stay_on_the_quick_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_decode_exact", None)
    items = [{"brackets": "[[[[{{{{", "quote": '"'}] * 2000
    assert accepts(decode(encode(new(data={"items": items}))))


def test_an_integer_of_any_length_is_kept_and_costs_little() -> None:
    body = b'{"job":"urn:x","n":' + b"9" * 1_000_000 + b"}"
    assert encode(decode(body)) == body
