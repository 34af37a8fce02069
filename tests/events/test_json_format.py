"""The JSON format, single and batch."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.errors import Rejected
from tallystick.events.event import Event, make
from tallystick.events.extensions import CONSTRAINED, NONE, SAMPLES
from tallystick.events.formats import json_format
from tallystick.events.formats.json_format import read, read_batch, write, write_batch
from tallystick.events.payload import ABSENT
from tallystick.events.stream import read_json_batch, write_json_batch
from tallystick.events.timestamp import Timestamp
from tests.events.strategies import declared, events

MINIMAL = '"specversion":"1.0","id":"1","source":"/s","type":"t"'


def body(more: str = "") -> bytes:
    return f"{{{MINIMAL}{',' if more else ''}{more}}}".encode()


@given(events())
def test_any_event_reads_back_from_json(event: Event) -> None:
    assert read(write(event), declared(event)) == event


@given(events(), st.sampled_from([None, 1]), st.booleans())
def test_the_quick_way_agrees_with_the_full_one(
    event: Event, indent: Any, ascii_only: bool
) -> None:
    spaced = json.dumps(json.loads(write(event)), indent=indent, ensure_ascii=ascii_only).encode()
    for text in (write(event), spaced):
        full = json_format._read_fully(text, NONE)
        for _ in range(4):  # first in full, then with names learned, then with the shape learned
            found = read(text)
            assert write(found) == write(full)
            assert found == full


@pytest.mark.parametrize(
    ("more", "pointer", "at"),
    [
        ('"x":1.5', "/x", "1.5"), ('"x":10.0', "/x", "10.0"), ('"x":1e1', "/x", "1e1"),
        ('"x":[]', "/x", "[]"), ('"x":{}', "/x", "{}"), ('"x":2147483648', "/x", "2147"),
        ('"x":-2147483649', "/x", "-2147"), ('"x":"\\u0007"', "/x", '"\\u'),
        ('"x":"\x7f"', "/x", '"\x7f"'), ('"x":"\ufffe"', "/x", '"\ufffe'),
        ('"x":"\\ud800"', "/x", "\\ud800"), ('"X":1', "/X", "1}"),
        ('"id":"2"', "/id", '"id":"2"'),
        ('"data_base64":"!!!"', "/data_base64", '"!!!'), ('"data_base64":5', "/data_base64", "5"),
        ('"data":1,"data_base64":"AAAA"', "/data_base64", '"AAAA'),
        ('"subject":5', "/subject", "5"),
        ('"datacontenttype":"text/plain","data":{}', "/data", "{}"),
        ('"dataschema":"#x"', "/dataschema", '"#x"'), ('"data":NaN', "/data", "NaN"),
        ('"time":"2018-04-05 17:31:00Z"', "/time", '"2018'),
    ],
)  # fmt: skip
def test_a_fault_names_the_attribute_and_the_byte(more: str, pointer: str, at: str) -> None:
    with pytest.raises(Rejected) as rejected:
        read(body(more))
    assert rejected.value.pointer == pointer
    assert rejected.value.offset == body(more).index(at.encode())


@pytest.mark.parametrize(
    "text",
    [b"", b"  ", b"null", b"[]", b'"x"', b"{", body() + b"x", b"\xef\xbb\xbf" + body(), b"\xff",
     body('"x":"\xff"').replace(b"\xc3\xbf", b"\xff"), b"[" * 100_000,
     body('"data":' + "[" * 5000)],
)  # fmt: skip
def test_what_is_no_event_is_rejected(text: bytes) -> None:
    with pytest.raises(Rejected):
        read(text)


def test_a_learned_shape_lets_nothing_through() -> None:
    good = body('"time":"2018-04-05T17:31:00.123456Z","shaped":"a","data":{"a":1}')
    for _ in range(5):
        assert read(good).extensions == {"shaped": "a"}
        assert read(good).time == Timestamp("2018-04-05T17:31:00.123456Z")
        assert (read(good).id, read(good).subject, read(good).data) == ("1", None, {"a": 1})
        assert read(good).datacontenttype is None
    for old, new in (
        (b"05T17:31", b"31T17:31"), (b"00.123456Z", b"00.123456"), (b"Z", b"+25:00"),
        (b'"a"}', b'"a","shaped":"b"}'), (b'"shaped":"a"', b'"shaped":1.5'), (b'"1"', b'""'),
        (b'"shaped":"a"', b'"shaped":"\\u0007"'), (b"/s", b"a b"), (b"/s", b"<"), (b"1.0", b"0.3"),
        (b'"shaped":"a"', b'"shaped":2147483648'), (b'"a":1}', b'"a":NaN}'),
        (b'"shaped"', b'"Shaped"'), (b'"shaped":"a"', b'"shaped":"\x7f"'),
        (b'"data":{"a":1}', b'"data":{"a":1},"data_base64":"AA=="'),
    ):  # fmt: skip
        wrong = good.replace(old, new, 1) if old != b'"a"}' else good[:-1] + b',"shaped":"b"}'
        assert wrong != good
        with pytest.raises(Rejected):
            read(wrong)
        assert write(read(good)) == good
    odd = body('"class":"a","1st":2,"held":true,"members":"b","get":"c"')
    for _ in range(5):
        event = read(odd)
        assert write(event) == odd
        assert event.extensions == {
            "class": "a", "1st": 2, "held": True, "members": "b", "get": "c",
        }  # fmt: skip
    milliseconds = good.replace(b".123456Z", b".123Z")
    for _ in range(5):
        assert write(read(milliseconds)) == milliseconds
        assert str(read(milliseconds).time) == "2018-04-05T17:31:00.123Z"


def test_null_is_unset_for_attributes_and_a_value_for_data() -> None:
    assert read(body('"subject":null,"x":null,"data_base64":null')).data is ABSENT
    assert read(body('"data":null')).data is None
    assert read(body('"data":null')) != read(body())
    with pytest.raises(Rejected):
        read(body().replace(b'"1"', b"null"))


def test_a_long_integer_in_data_is_exact() -> None:
    digits = "9" * 400
    for number in (10**30, -(2**63) - 1, int(digits)):
        assert read(write(read(body(f'"data":[{number}]')))).data == [number]


def test_a_string_under_json_is_a_json_string_and_never_parsed() -> None:
    assert read(body('"datacontenttype":"application/json","data":"{}"')).data == "{}"


def test_octets_stay_octets_under_any_content_type() -> None:
    event = read(body('"datacontenttype":"application/json","data_base64":"e30="'))
    assert event.data == b"{}"
    assert b'"data_base64":"e30="' in write(event)
    assert read(body('"data_base64":"e30="')).datacontenttype is None


def test_a_duplicate_hidden_by_numbers_or_escapes_is_found() -> None:
    for more in ('"id":"2","x":"\\u0041"', '"id" : "2"', '"\\u0069d":"2"', '"data":1E5,"id":"2"'):
        with pytest.raises(Rejected) as rejected:
            read(body(more))
        assert rejected.value.code == "duplicate_attribute"


def test_declared_extensions_get_their_types() -> None:
    event = read(body('"exttimestamp":"2018-04-05T17:31:00Z","extinteger":5'), SAMPLES)
    assert type(event.extensions["exttimestamp"]).__name__ == "Timestamp"
    for wrong in (
        '"extinteger":"5"',
        '"extboolean":"true"',
        '"extboolean":1',
        '"extstring":1',
        '"exturi":"//x"',
    ):
        with pytest.raises(Rejected):
            read(body(wrong), SAMPLES)
    with pytest.raises(Rejected) as rejected:
        read(body('"posinteger":0'), CONSTRAINED)
    assert (rejected.value.pointer, rejected.value.offset) == ("/posinteger", len(body()) + 13)


def test_the_writer_spells_every_type_as_the_format_asks() -> None:
    event = make(id="1", source="/s", type="t", data=b"\x00", extensions={"b": True, "x": b"Ma"})
    assert write(event) == body('"b":true,"x":"TWE=","data_base64":"AA=="')


def test_a_batch_fault_names_the_index() -> None:
    with pytest.raises(Rejected) as rejected:
        read_batch(b"[" + body() + b", " + body('"x":1.5') + b"]")
    assert rejected.value.pointer == "/1/x"
    assert rejected.value.offset == 1 + len(body()) + 2 + len(body()) + 4


@pytest.mark.parametrize(
    "text",
    [b"", b"{}", b"[", b"[]]", b"[] x", b"[,]", b"[{},]", b'["x"]', b"[[]]", b"[}", b"[null]",
     b"[" + body(), b"[" + body() + b"," + b"]", b"[" + body() + b" " + body() + b"]", b'["',
     b"\xef\xbb\xbf[]"],
)  # fmt: skip
def test_what_is_no_batch_is_rejected(text: bytes) -> None:
    with pytest.raises(Rejected):
        read_batch(text)


@given(st.lists(events(), max_size=4), st.integers(1, 40))
def test_a_batch_reads_back_from_chunks_of_any_size(batch: list[Event], size: int) -> None:
    text = write_batch(batch)
    assert text == b"".join(write_json_batch(batch))
    assert [event.id for event in read_batch(text)] == [event.id for event in batch]
    chunks = [text[start : start + size] for start in range(0, len(text), size)]
    assert tuple(read_json_batch(chunks)) == read_batch(text)
