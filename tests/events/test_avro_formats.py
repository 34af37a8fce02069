"""The two Avro formats, checked against the published schemas with an independent library."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given

from tallystick.core.errors import Rejected
from tallystick.events.event import Event, make
from tallystick.events.extensions import SAMPLES
from tallystick.events.formats import avro_compact, avro_format
from tallystick.events.formats.avro_wire import Cursor, write_long
from tallystick.events.golden import EVENTS
from tallystick.suites.cloudevents import CONFORMANCE
from tests.events.avro_schemas import COMPACT, FULL, same_shape
from tests.events.strategies import declared, events
from tests.official import CLOUDEVENTS, needs

BOTH = pytest.mark.parametrize("form", [avro_format, avro_compact])


def independent_read(body: bytes, schema: Any) -> Any:
    stream = io.BytesIO(body)
    record = fastavro.schemaless_reader(stream, fastavro.parse_schema(schema), None)
    assert stream.read() == b""
    return record


def independent_write(record: Any, schema: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), record)
    return stream.getvalue()


@needs(CONFORMANCE)
@pytest.mark.parametrize(
    ("name", "ours"), [("cloudevents.avsc", FULL), ("cloudevents-compact.avsc", COMPACT)]
)
def test_the_published_schema_is_ours_but_for_the_names(name: str, ours: Any) -> None:
    assert CLOUDEVENTS
    published = json.loads((CLOUDEVENTS / "spec-formats" / name).read_text())
    assert same_shape(published) == same_shape(ours)


@given(events())
def test_any_event_reads_back_from_avro(event: Event) -> None:
    assert avro_format.read(avro_format.write(event), declared(event)) == event


@given(events())
def test_any_event_reads_back_from_compact_avro(event: Event) -> None:
    assert avro_compact.read(avro_compact.write(event), declared(event)) == event


@given(events())
def test_an_independent_library_reads_what_is_written(event: Event) -> None:
    record = independent_read(avro_format.write(event), FULL)
    assert record["attribute"]["id"] == event.id
    compact = independent_read(avro_compact.write(event), COMPACT)
    assert compact["source"] == event.source
    assert compact["extensions"].keys() == event.extensions.keys()


@pytest.mark.parametrize(
    "data",
    [{}, {"a": None, "b": True, "c": 1, "d": "x", "e": {"f": [{"g": 1.5}], "h": {"i": {}}}}, [],
     [{"a": "b"}, {}], True, 5, -1.5],
)  # fmt: skip
def test_json_without_a_content_type_is_modelled_by_the_union(data: Any) -> None:
    event = make(id="1", source="/s", type="t", data=data)
    body = avro_format.write(event)
    assert avro_format.read(body) == event
    assert avro_format.read(body).datacontenttype is None
    assert independent_read(body, FULL)["data"] is not None


@pytest.mark.parametrize("data", [None, [1], {"a": [1]}, 2**60, {"a": {"b": {"c": 1}}}])
def test_json_that_the_union_cannot_say_becomes_explicit_json_text(data: Any) -> None:
    event = make(id="1", source="/s", type="t", data=data)
    back = avro_format.read(avro_format.write(event))
    assert back == event
    assert back.datacontenttype == "application/json"


def test_what_an_independent_library_writes_is_read() -> None:
    attribute: dict[str, Any] = {
        "specversion": "1.0", "id": "1", "source": "/s", "type": "t", "gone": None,
        "number": 5, "flag": True, "octets": b"Ma", "time": "2018-04-05T17:31:00Z",
    }  # fmt: skip
    record = {"attribute": attribute, "data": {"a": {"value": {"b": [{"value": {"c": 1.0}}]}}}}
    event = avro_format.read(independent_write(record, FULL))
    assert event.data == {"a": {"b": [{"c": 1}]}}
    assert event.extensions == {"number": 5, "flag": True, "octets": b"Ma"}
    with pytest.raises(Rejected):
        avro_format.read(
            independent_write({"attribute": attribute | {"id": 5}, "data": None}, FULL)
        )


@BOTH
def test_the_golden_extensions_keep_their_types(form: Any) -> None:
    event = EVENTS["allExtensionTypes"]
    assert form.read(form.write(event), SAMPLES) == event


@BOTH
def test_every_cut_is_rejected(form: Any) -> None:
    body = form.write(EVENTS["allExtensionTypes"])
    for end in range(len(body)):
        with pytest.raises(Rejected):
            form.read(body[:end], SAMPLES)
    with pytest.raises(Rejected) as rejected:
        form.read(body + b"\x00")
    assert rejected.value.offset == len(body)


@BOTH
def test_a_claim_of_a_gigabyte_or_an_endless_number_is_rejected(form: Any) -> None:
    for claim in (write_long(1 << 30), write_long(1 << 62), write_long(-5), b"\xff" * 20):
        with pytest.raises(Rejected):
            form.read(claim + b"x")


def test_deep_nesting_is_rejected() -> None:
    body = avro_format.write(EVENTS["minimal"])[:-1]
    record = write_long(1) + b"\x02a" + write_long(3) + write_long(1)
    with pytest.raises(Rejected) as rejected:
        avro_format.read(body + write_long(4) + write_long(1) + record * 5000)
    assert rejected.value.code == "too_deep"


def test_a_fault_names_the_attribute_and_the_byte() -> None:
    body = avro_format.write(make(id="1", source="/s", type="t", subject="x"))
    with pytest.raises(Rejected) as rejected:
        avro_format.read(body.replace(b"\x02x", b"\x02\x07"))
    assert rejected.value.pointer == "/subject"
    assert rejected.value.offset == body.index(b"\x02x") - 1


def test_numbers_of_every_size_read_back() -> None:
    for number in (0, -1, 1, 63, 64, -64, -65, 2**31, -(2**63), 2**63 - 1):
        assert Cursor(write_long(number)).long() == number
