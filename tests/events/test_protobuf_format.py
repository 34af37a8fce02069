"""The Protobuf format, single and batch."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.errors import Refused, Rejected
from tallystick.events.event import Event, make
from tallystick.events.extensions import SAMPLES
from tallystick.events.formats.protobuf_format import (
    message_class,
    read,
    read_batch,
    write,
    write_batch,
)
from tallystick.events.golden import EVENTS
from tallystick.events.payload import Message
from tests.events.strategies import events

MINIMAL = write(EVENTS["minimal"])


def message(**more: Any) -> Any:
    given: dict[str, Any] = {"id": "1", "source": "/s", "spec_version": "1.0", "type": "t"}
    return message_class("CloudEvent")(**(given | more))


def with_value(name: str, **value: Any) -> bytes:
    event = message()
    for field, content in value.items():
        setattr(event.attributes[name], field, content)
    event.attributes[name].SetInParent()
    return bytes(event.SerializeToString())


@given(events())
def test_any_event_reads_back_from_protobuf_without_declarations(event: Event) -> None:
    assert read(write(event)) == event


@given(st.lists(events(), max_size=4))
def test_any_batch_reads_back_from_protobuf(batch: list[Event]) -> None:
    assert list(read_batch(write_batch(batch))) == batch


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("subject", {"ce_integer": 5}), ("subject", {"ce_uri": "a:b"}),
        ("time", {"ce_string": "x"}),
        ("time", {"ce_string": "2018-04-05T17:31:00Z"}), ("dataschema", {"ce_string": "a:b"}),
        ("datacontenttype", {"ce_integer": 5}), ("id", {"ce_string": "1"}), ("ext", {}),
        ("ext", {"ce_uri": "//x"}), ("ext", {"ce_string": "\x07"}),
        ("specversion", {"ce_string": "1"}),
        ("Ext", {"ce_boolean": True}), ("data", {"ce_string": "x"}),
        ("extinteger", {"ce_string": "5"}),
    ],
)  # fmt: skip
def test_a_map_entry_of_the_wrong_type_is_rejected_at_its_place(
    name: str, value: dict[str, Any]
) -> None:
    body = with_value(name, **value)
    with pytest.raises(Rejected) as rejected:
        read(body, SAMPLES)
    assert rejected.value.pointer == f"/{name}"
    assert rejected.value.offset == body.rindex(name.encode()) - 2


def test_a_timestamp_outside_its_range_is_rejected_and_refused() -> None:
    event = message()
    event.attributes["time"].ce_timestamp.nanos = -1
    with pytest.raises(Rejected):
        read(event.SerializeToString())
    event.attributes["time"].ce_timestamp.nanos = 0
    event.attributes["time"].ce_timestamp.seconds = 1 << 50
    with pytest.raises(Rejected):
        read(event.SerializeToString())
    with pytest.raises(Refused):
        write(make(id="1", source="/s", type="t", time="0000-01-01T00:00:00Z"))


def test_a_name_that_occurs_twice_is_rejected() -> None:
    body = with_value("ext", ce_integer=1)
    with pytest.raises(Rejected) as rejected:
        read(body + body[len(MINIMAL) :] + with_value("ext", ce_integer=2))
    assert rejected.value.code == "duplicate_attribute"


def test_an_unknown_field_is_ignored() -> None:
    assert read(MINIMAL + b"\x7a\x03abc") == EVENTS["minimal"]


@pytest.mark.parametrize(
    "body",
    [b"", b"\x00", MINIMAL[:-1], MINIMAL + b"\x32", MINIMAL + b"\x32\xff\xff\xff\xff\x07",
     MINIMAL + b"\x32\x80\x80\x80\x80\x04", MINIMAL + b"\x0a\x02\xff\xfe", b"\xff" * 11,
     MINIMAL + b"\x3a\x01\xff", MINIMAL + b"\x0b" * 200],
)  # fmt: skip
def test_what_is_no_message_is_rejected(body: bytes) -> None:
    with pytest.raises(Rejected):
        read(body)


def test_a_length_of_a_gigabyte_is_rejected_at_its_place() -> None:
    with pytest.raises(Rejected) as rejected:
        read(MINIMAL + b"\x32\x80\x80\x80\x80\x04")
    assert rejected.value.offset == len(MINIMAL)


def test_json_travels_as_text_and_its_faults_are_found() -> None:
    event = make(id="1", source="/s", type="t", data={"a": [1]})
    assert read(write(event)).datacontenttype == "application/json"
    wrong = message(text_data="{nope")
    wrong.attributes["datacontenttype"].ce_string = "application/json"
    with pytest.raises(Rejected) as rejected:
        read(wrong.SerializeToString())
    assert rejected.value.pointer == "/data"


def test_a_message_keeps_the_url_of_its_type() -> None:
    url = "type.googleapis.com/x.Y"
    event = make(id="1", source="/s", type="t", data=Message.of(b"\x0a\x01a", url))
    back = read(write(event))
    assert back == event
    assert back.data.type_url == url


def test_a_batch_fault_names_the_index_and_the_byte() -> None:
    batch = write_batch([EVENTS["minimal"]])
    with pytest.raises(Rejected) as rejected:
        read_batch(batch + batch[:2] + MINIMAL.replace(b"1.0", b"0.9"))
    assert rejected.value.pointer == "/1/specversion"
    assert rejected.value.offset is not None
    assert rejected.value.offset > len(batch)
    with pytest.raises(Rejected):
        read_batch(b"\x08\x01")
