"""A capture gives back the exact frame, as a line and as a row."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.capture import (
    MARK,
    Capture,
    check_row,
    from_row,
    is_capture,
    read,
    read_row,
    write,
)
from tallystick.core.capture_columns import AROUND, COLUMNS, NUMBERS, CaptureRow
from tallystick.core.errors import Rejected
from tallystick.core.frame import Frame, Sections
from tallystick.core.native import Opaque, from_json, to_json
from tallystick.core.slot import Long

TEXT = st.text(st.characters(codec=None, categories=None), max_size=8)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**63), 2**63 - 1).map(Long),
    st.floats(allow_nan=False),
    TEXT,
    st.binary(max_size=12),
    st.datetimes(timezones=st.just(UTC)),
    st.datetimes(),
    st.decimals(allow_nan=False),
    st.uuids(),
    st.builds(Opaque, st.text(max_size=4), st.text(max_size=4)),
)
KEYS = st.one_of(TEXT, st.sampled_from(["$bytes", "$map", "$", "$int"]))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(KEYS, inner, max_size=3),
        st.dictionaries(st.integers(), inner, max_size=2),
    ),
    max_leaves=8,
)
SECTIONS = st.dictionaries(KEYS, st.dictionaries(KEYS, VALUES, max_size=3), max_size=3)
COUNTS = st.integers(0, 2**63 - 1)
CAPTURES = st.builds(
    Capture,
    st.sampled_from(["sent", "received", "tapped"]),
    st.sampled_from(["kafka", "redis"]),
    st.text(max_size=8),
    st.text(max_size=8),
    COUNTS,
    COUNTS,
    st.builds(Frame, st.one_of(st.binary(max_size=40), st.text().map(str.encode)), SECTIONS),
    st.none() | COUNTS,
)


def types(value: Any) -> Any:
    """The types of a value all the way down, which equality does not look at (1 == 1.0 == True)."""
    if isinstance(value, Mapping):
        return [(types(key), types(one)) for key, one in value.items()]
    if isinstance(value, list):
        return [types(one) for one in value]
    return type(value)


@given(CAPTURES)
def test_a_line_gives_back_the_exact_frame(capture: Capture) -> None:
    line = write(capture)
    assert b"\n" not in line
    back = read(line)
    assert back == capture
    assert types(back.frame.sections) == types(capture.frame.sections)
    assert write(back) == line


@given(CAPTURES)
def test_a_row_gives_back_the_exact_frame(capture: Capture) -> None:
    back = from_row(read_row(write(capture)))
    assert back == capture
    assert types(back.frame.sections) == types(capture.frame.sections)


@given(VALUES)
def test_any_json_reader_reads_what_is_written(value: Any) -> None:
    capture = Capture("sent", "kafka", "orders", "shop", 1, 0, Frame(b"{}", {"a": {"b": value}}))
    json.loads(write(capture).decode("utf-8"), parse_constant=pytest.fail)


def line(**members: Any) -> bytes:
    whole = {
        "kind": "capture",
        "format": 1,
        "direction": "sent",
        "broker": "kafka",
        "queue": "orders",
        "node": "shop",
        "at": 17,
        "sequence": 0,
        "body": "{}",
        "sections": {},
    } | members
    return json.dumps({key: one for key, one in whole.items() if one is not ...}).encode()


def test_a_line_is_what_the_reference_says() -> None:
    sections: Sections = {"headers": {"bq-job": b"urn:x", "n": Long(2)}, "record": {"key": None}}
    capture = Capture("sent", "kafka", "orders", "shop", 17, 3, Frame(b'{"a":1}', sections), 250)
    assert write(capture) == (
        b'{"kind":"capture","format":1,"direction":"sent","broker":"kafka","queue":"orders",'
        b'"node":"shop","at":17,"clock_error":250,"sequence":3,"body":"{\\"a\\":1}",'
        b'"sections":{"headers":{"bq-job":{"$bytes":"dXJuOng="},"n":{"$long":2}},'
        b'"record":{"key":null}}}'
    )
    assert b'"body64":"/w=="' in write(Capture("sent", "kafka", "q", "n", 1, 0, Frame(b"\xff")))


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"kind": "verdict"}, "capture_kind"),
        ({"kind": ...}, "capture_kind"),
        ({"format": 2}, "capture_format"),
        ({"format": True}, "capture_format"),
        ({"format": 1.0}, "capture_format"),
        ({"format": 2, "at": "today", "body": ...}, "capture_format"),
        ({"format": ...}, "capture_format"),
        ({"direction": "seen"}, "capture_direction"),
        ({"direction": 1}, "capture_direction"),
        ({"broker": 1}, "capture_line"),
        ({"sections": ...}, "capture_line"),
        ({"sections": None}, "capture_sections"),
        ({"at": -1}, "capture_number"),
        ({"at": 2**63}, "capture_number"),
        ({"sequence": -1}, "capture_number"),
        ({"clock_error": -1}, "capture_number"),
        ({"at": 1.5}, "capture_line"),
        ({"body": ...}, "capture_body"),
        ({"body64": "AA=="}, "capture_body"),
        ({"body": None}, "capture_body"),
        ({"body": None, "body64": None}, "capture_body"),
        ({"body": ..., "body64": "A"}, "capture_base64"),
        ({"sections": {"headers": 1}}, "capture_sections"),
        ({"sections": {"headers": {"a": {"$odd": 1}}}}, "native_tag"),
        ({"sections": {"headers": {"a": {"$bytes": 1}}}}, "native_value"),
        ({"sections": {"headers": {"a": {"$bytes": "A"}}}}, "native_value"),
        ({"sections": {"headers": {"a": {"$time": 1}}}}, "native_value"),
        ({"sections": {"headers": {"a": {"$time": 10**30}}}}, "native_value"),
        ({"sections": {"headers": {"a": {"$local": "2026-01-01T00:00:00Z"}}}}, "native_value"),
        ({"sections": {"headers": {"a": {"$map": [["a", 1], ["a", 2]]}}}}, "native_value"),
        ({"sections": {"headers": {"a": {"$opaque": ["a"]}}}}, "native_value"),
    ],
)
def test_a_line_that_is_no_capture_is_rejected(members: dict[str, Any], code: str) -> None:
    with pytest.raises(Rejected) as caught:
        read(line(**members))
    assert caught.value.code == code


REQUIRED = [name for name in AROUND if not COLUMNS[name].optional]


@pytest.mark.parametrize("value", [..., None])
@pytest.mark.parametrize("name", REQUIRED)
def test_a_row_may_lack_what_a_capture_must_have(name: str, value: Any) -> None:
    row = read_row(line(**{name: value}))
    assert getattr(row, name) is None
    with pytest.raises(Rejected, match=f"`{name}` is missing") as caught:
        from_row(row)
    assert caught.value.code == "capture_line"
    with pytest.raises(Rejected, match=f"`{name}` is missing"):
        read(line(**{name: value}))


def test_a_row_without_sections_is_no_capture() -> None:
    with pytest.raises(Rejected, match="`sections` is missing"):
        from_row(read_row(line(sections=...)))


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_below_0_is_in_no_capture(name: str) -> None:
    values = dict.fromkeys(NUMBERS, 1) | {name: -1}
    with pytest.raises(Rejected) as caught:
        from_row(CaptureRow("sent", "kafka", "orders", "shop", **values, body=b"", sections="{}"))
    assert (caught.value.code, caught.value.pointer) == ("capture_number", f"/{name}")


def test_a_row_of_an_unknown_direction_is_no_capture() -> None:
    with pytest.raises(Rejected) as caught:
        from_row(CaptureRow("seen", "kafka", "orders", "shop", 1, 1, 1, b"", "{}"))
    assert (caught.value.code, caught.value.pointer) == ("capture_direction", "/direction")


EDGES = st.sampled_from([0, -1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64]) | st.integers()


@given(
    st.fixed_dictionaries(
        {},
        optional={
            name: st.none() | (EDGES if name in NUMBERS else st.text(max_size=3)) for name in AROUND
        }
        | {"direction": st.none() | st.sampled_from(["sent", "received", "tapped", "up", ""])},
    )
)
def test_the_decoder_of_a_line_and_the_check_of_a_row_have_the_same_rule(
    around: dict[str, Any],
) -> None:
    values: dict[str, Any] = dict.fromkeys(AROUND) | around
    row = CaptureRow(**values, body=b"{}", sections="{}")
    assert outcome(read_row, line(**values)) == outcome(check_row, row)


def outcome(function: Callable[[Any], CaptureRow], value: Any) -> Any:
    try:
        return function(value)
    except Rejected as error:
        return error.code, error.message, error.pointer


@given(
    st.sampled_from(["capture", "head", "", None, 1]),
    st.dictionaries(
        st.sampled_from(["kind", "job", "a"]), st.sampled_from(["capture", 1]), max_size=2
    ),
    st.booleans(),
)
def test_a_line_is_a_capture_if_its_kind_says_so(
    kind: Any, others: dict[str, Any], spaced: bool
) -> None:
    first = {} if kind is None else {"kind": kind}
    for members in (first | others, others | first, {"inside": first, **others}):
        raw = json.dumps(members, separators=(", ", ": ") if spaced else (",", ":")).encode()
        assert is_capture(raw) == (members.get("kind") == "capture")
        assert MARK in raw or not is_capture(raw)


def test_a_broken_line_is_a_capture_by_its_beginning() -> None:
    assert is_capture(b'{"kind":"capture","format":1,"bo')
    assert not is_capture(b'{"format":1,"kind":"capture","bo')


def test_a_member_of_a_later_version_is_passed_over() -> None:
    assert read(line(settled="ack")).frame == Frame(b"{}")


@given(st.binary(max_size=60))
def test_hostile_bytes_are_rejected_and_nothing_else_is_raised(data: bytes) -> None:
    with pytest.raises(Rejected):
        read(data)


def test_a_deep_line_is_rejected() -> None:
    with pytest.raises(Rejected):
        read(line().replace(b'"sections": {}', b'"sections": {"a":' + b"[" * 50_000))


def test_native_values_keep_their_types() -> None:
    class Int32(int):
        pass

    class Odd:
        def __str__(self) -> str:
            return "odd"

    east = timezone(timedelta(hours=2))
    assert to_json(Int32(5)) == 5
    assert to_json(datetime(1970, 1, 1, 2, 0, 1, tzinfo=east)) == {"$time": 10**9}
    assert to_json(float("inf")) == {"$float": "inf"}
    assert to_json(2**63) == {"$int": "9223372036854775808"}
    assert to_json(Decimal("1.50")) == {"$decimal": "1.50"}
    assert to_json(UUID(int=1)) == {"$uuid": "00000000-0000-0000-0000-000000000001"}
    assert to_json((1, b"")) == [1, {"$bytes": ""}]
    assert to_json({"$bytes": 1}) == {"$map": [["$bytes", 1]]}
    assert to_json({"$a": 1, "$b": 2}) == {"$a": 1, "$b": 2}
    opaque = from_json(to_json(Odd()))
    assert isinstance(opaque, Opaque)
    assert opaque.text == "odd"
    assert from_json(to_json(opaque)) == opaque
