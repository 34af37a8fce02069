from __future__ import annotations

import json
import struct
import subprocess
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.canonical import (
    canonical,
    canonical_exact,
    canonical_message,
    canonical_message_exact,
    number_text,
    utf16_order,
)
from tallystick.core.errors import Refused
from tests.core.messages import payloads, scalars, values

doubles = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack(">d", bits.to_bytes(8))[0])


@given(values)
def test_the_quick_way_agrees_with_the_rule(value: Any) -> None:
    assert canonical(value) == canonical_exact(value)


@given(payloads, st.text(max_size=5), st.integers(-5, 2**70), st.booleans())
def test_the_quick_way_agrees_with_the_rule_on_messages(
    data: dict[str, Any], text: str, attempts: int, extended: bool
) -> None:
    meta = {"id": text, "queue": "q", "lang": "go", "schema_version": 1, "created_at": attempts}
    document = {"job": "j", "trace_id": "t", "data": data, "meta": meta, "attempts": attempts}
    if extended:
        document["extension"] = data
    assert canonical_message(document) == canonical_message_exact(document)


@given(values)
def test_canonical_bytes_are_a_fixed_point(value: Any) -> None:
    once = canonical(value)
    assert canonical(json.loads(once)) == once


@given(st.lists(scalars, min_size=40, max_size=60))
def test_many_values_take_the_search_and_still_agree(value: list[Any]) -> None:
    assert canonical(value) == canonical_exact(value)


def test_numbers_are_written_as_ecmascript_writes_them() -> None:
    numbers = [
        number
        for bits in range(0, 2**64, 2**64 // 4000)
        for number in struct.unpack(">d", bits.to_bytes(8))
        if number - number == 0
    ]
    numbers += [float(f"{digit}e{power}") for digit in (1, 5, 9.5) for power in range(-12, 25)]
    script = "const a=JSON.parse(require('fs').readFileSync(0));console.log(JSON.stringify(a))"
    answer = subprocess.run(
        ["node", "-e", script],
        input=json.dumps(numbers),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "[" + ",".join(map(number_text, numbers)) + "]" == answer.stdout.strip()


@given(doubles.filter(lambda number: number - number == 0))
def test_a_number_reads_back_as_itself(number: float) -> None:
    assert float(number_text(number)) == number


@given(st.integers())
def test_an_integer_is_exact_at_any_size(number: int) -> None:
    assert canonical(number * 10**30) == str(number * 10**30).encode()
    assert canonical([10**5000]) == b"[1" + b"0" * 5000 + b"]"


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.none()))
def test_members_stand_in_utf16_order(value: dict[str, None]) -> None:
    written = list(json.loads(canonical(value)))
    assert written == sorted(value, key=utf16_order)


@pytest.mark.parametrize(
    ("value", "code", "pointer"),
    [
        ({"a": [1, {"b": float("nan")}]}, "not_finite", "/a/1/b"),
        ({"a": [float("inf")] * 40}, "not_finite", "/a/0"),
        ([None, float("nan"), *range(50)], "not_finite", "/1"),
        ({"a/b": {"~": "\ud800"}}, "lone_surrogate", "/a~1b/~0"),
        ({"\udfff": 1}, "lone_surrogate", "/\\udfff"),
        ({1: 2}, "not_json", "/1"),
        ({"a": {1, 2}}, "not_json", "/a"),
        ({"a": b"x"}, "not_json", "/a"),
    ],
)
def test_what_is_not_json_is_refused_with_its_pointer(value: Any, code: str, pointer: str) -> None:
    with pytest.raises(Refused) as refusal:
        canonical(value)
    assert (refusal.value.code, refusal.value.pointer) == (code, pointer)


def test_depth_is_limited_on_writing() -> None:
    value: list[Any] = []
    for _ in range(999):
        value = [value]
    assert canonical(value) == b"[" * 1000 + b"]" * 1000
    with pytest.raises(Refused) as refusal:
        canonical([value])
    assert refusal.value.code == "too_deep"


class Odd(Enum):
    HUGE = 1e16
    WHOLE = 2.0
    ZERO = -0.0


class Loud(float):
    def __repr__(self) -> str:
        return "loud"


@pytest.mark.parametrize("value", [*Odd, Loud(1.5), [Odd.HUGE, Loud(2)]])
def test_enums_and_subclasses_are_written_by_the_rule(value: Any) -> None:
    assert canonical({"a": value}) == canonical_exact({"a": value})
    assert json.loads(canonical({"a": value}))


def test_python_values_that_stand_for_json_are_written_alike_on_both_ways() -> None:
    value = {"id": UUID(int=1), "pair": (1, 2)}
    assert canonical(value) == canonical_exact(value)
    assert canonical(value) == b'{"id":"00000000-0000-0000-0000-000000000001","pair":[1,2]}'
