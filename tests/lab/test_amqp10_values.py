"""Our table of AMQP 1.0 values: every type, its edges, and the lengths where encodings change."""

from __future__ import annotations

import json
import math
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tallystick.core.errors import Unavailable, UsageError
from tallystick.lab.fields_types import TypeCase, encode_value, make_value, type_cases
from tests.official import QPID, needs

UNSIGNED = {"ubyte": 8, "ushort": 16, "uint": 32, "ulong": 64}
SIGNED = {"byte": 8, "short": 16, "int": 32, "long": 64}
TEXTS = ("binary", "string", "symbol")
OTHERS = ("null", "boolean", "char", "timestamp", "uuid", "float", "double")
DECIMALS = ("decimal32", "decimal64", "decimal128")
COMPLEX = ("array", "list", "map", "described")


@cache
def cases() -> tuple[TypeCase, ...]:
    return type_cases("any")


def values(kind: str) -> list[Any]:
    return [case.value for case in cases() if case.kind == kind]


def kinds_within(kind: str, value: Any) -> set[str]:
    """Give the types inside a value of a complex type, at any depth."""
    if kind == "array":
        inner = [(value["element_type"], each) for each in value["elements"]]
    elif kind == "list":
        inner = [tuple(each) for each in value]
    elif kind == "map":
        inner = [tuple(each) for pair in value for each in pair]
    elif kind == "described":
        inner = [tuple(value["value"])]
    else:
        return set()
    return {each for each, _ in inner}.union(*(kinds_within(*each) for each in inner))


def test_every_type_is_there() -> None:
    expected = {*UNSIGNED, *SIGNED, *TEXTS, *OTHERS, *DECIMALS, *COMPLEX}
    assert {case.kind for case in cases()} == expected


def test_integers_have_their_edges_and_those_of_narrower_types() -> None:
    for kind, bits in UNSIGNED.items():
        edges = {0, 1, 2 ** (bits - 1), 2**bits - 1} | {2**n for n in (8, 16, 32) if n < bits}
        assert edges <= set(values(kind))
    for kind, bits in SIGNED.items():
        edges = {-1, 0, 1} | {n for low in (8, 16, 32, 64) if low <= bits for n in _edges(low)}
        assert edges <= set(values(kind))


def _edges(bits: int) -> tuple[int, int]:
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


@pytest.mark.parametrize(
    ("kind", "smallest", "largest"),
    [
        ("float", 2.0**-149, (2 - 2.0**-23) * 2.0**127),
        ("double", 2.0**-1074, 1.7976931348623157e308),
    ],
)
def test_floats_have_both_zeros_the_smallest_the_largest_the_infinities_and_nan(
    kind: str, smallest: float, largest: float
) -> None:
    numbers = [float(make_value(kind, value)) for value in values(kind)]
    assert {str(number) for number in numbers} >= {"0.0", "-0.0", "inf", "-inf", "nan"}
    assert {sign * edge for sign in (1, -1) for edge in (smallest, largest)} <= set(numbers)
    assert any(0.1 < abs(number) < 10 and math.isfinite(number) for number in numbers)


def test_texts_are_empty_and_of_255_and_256_bytes_and_longer() -> None:
    for kind in TEXTS:
        lengths = {
            len(value) // 2 if kind == "binary" else len(value.encode()) for value in values(kind)
        }
        assert {0, 1, 255, 256} <= lengths
    assert max(len(value) for value in values("string")) >= 1000
    assert any(not value.isascii() for value in values("string"))


def test_moments_ids_and_characters_have_their_edges() -> None:
    assert {*_edges(64), -1, 0} <= set(values("timestamp"))
    assert {0, 0x7F, 0xD7FF, 0xE000, 0x10000, 0x10FFFF} <= set(values("char"))
    ids = values("uuid")
    assert {"0", "f"} <= {digit for each in ids for digit in each[0] if len(set(each)) == 2}
    assert values("boolean") == [False, True]


def test_complex_values_are_empty_nested_in_each_other_and_past_255_elements() -> None:
    inside = {
        kind: set[str]().union(*(kinds_within(kind, value) for value in values(kind)))
        for kind in COMPLEX
    }
    assert {"list", "map", "array", "described"} <= inside["list"]
    assert {"list", "map", "array", "described"} <= inside["map"]
    plain = {*UNSIGNED, *SIGNED, *TEXTS, *OTHERS} - {"null"}
    assert {"list", "map", "array", *plain} <= inside["array"]
    assert {"list", "map", "array"} <= inside["described"]
    assert {*UNSIGNED, *SIGNED, *TEXTS, *OTHERS, *DECIMALS} <= inside["list"]
    assert all([] in values(kind) for kind in ("list", "map"))
    assert any(value["elements"] == [] for value in values("array"))
    assert any(len(value) > 255 for value in values("list"))
    assert any(2 * len(value) > 255 for value in values("map"))
    assert any(len(value["elements"]) > 255 for value in values("array"))


def test_every_value_has_bytes_of_its_own() -> None:
    encoded = Counter(encode_value(make_value(case.kind, case.value)) for case in cases())
    assert [body.hex() for body, times in encoded.items() if times > 1] == []


@needs("qpid-interop")
def test_the_table_is_at_least_as_wide_as_that_of_the_qpid_interop_test() -> None:
    assert QPID
    theirs = type_cases("any", QPID / "amqp10_type_values.json")
    ours, counted = (Counter(case.kind for case in table) for table in (cases(), theirs))
    assert {
        kind: (ours[kind], count) for kind, count in counted.items() if ours[kind] < count
    } == {}
    for case in theirs:
        inside = kinds_within(case.kind, case.value)
        wide = set[str]().union(*(kinds_within(case.kind, value) for value in values(case.kind)))
        assert inside <= wide


def test_a_file_of_others_is_read_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    file = tmp_path / "values.json"
    file.write_text(json.dumps({"primitive": {"uint": {"values": [7]}}, "complex": {}}))
    assert type_cases("b", file) == (TypeCase("fields/1.0/b/uint/0", "uint", 7),)
    file.write_text("[]")
    with pytest.raises(UsageError, match=r"values\.json"):
        type_cases("b", file)
    with pytest.raises(Unavailable, match=r"nowhere\.json"):
        type_cases("b", tmp_path / "nowhere.json")
