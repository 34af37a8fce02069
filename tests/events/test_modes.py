"""Binary, structured and batched modes of five protocols."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.errors import Rejected, UsageError
from tallystick.core.frame import Frame
from tallystick.events.event import Event, make
from tallystick.events.extensions import NONE, SAMPLES, declare, extension
from tallystick.events.formats import FORMATS
from tallystick.events.golden import BATCHES, EVENTS
from tallystick.events.modes import (
    PROTOCOLS,
    Mode,
    find_mode,
    partition_key,
    read_frame,
    write_batched,
    write_binary,
    write_structured,
)
from tallystick.events.payload import ABSENT
from tallystick.events.values import Kind
from tests.events.strategies import declared, events

EACH = pytest.mark.parametrize("protocol", PROTOCOLS)
MINIMAL = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "t"}


def http(body: bytes = b"", **more: Any) -> Event:
    headers = MINIMAL | {name.replace("_", "-"): value for name, value in more.items()}
    event = read_frame(Frame(body, {"headers": headers}), "http")
    assert isinstance(event, Event)
    return event


@EACH
@pytest.mark.parametrize("name", EVENTS)
def test_every_golden_event_survives_every_mode(protocol: str, name: str) -> None:
    event = EVENTS[name]
    assert read_frame(write_binary(event, protocol), protocol, SAMPLES) == event
    for form in FORMATS:
        frame = write_structured(event, protocol, form)
        assert find_mode(frame, protocol) is Mode.STRUCTURED
        assert read_frame(frame, protocol, SAMPLES) == event


@pytest.mark.parametrize("form", ["json", "protobuf", "xml"])
@pytest.mark.parametrize("name", BATCHES)
def test_every_golden_batch_survives_http(name: str, form: str) -> None:
    frame = write_batched(BATCHES[name], "http", form)
    assert find_mode(frame, "http") is Mode.BATCHED
    assert read_frame(frame, "http", SAMPLES) == BATCHES[name]


def carried(event: Event) -> bool:
    return event.data is ABSENT or event.data not in (b"", "") or event.data is False


@EACH
@given(data=st.data())
def test_any_event_with_octets_survives_binary_mode(protocol: str, data: st.DataObject) -> None:
    event = data.draw(events().filter(carried))
    assert read_frame(write_binary(event, protocol), protocol, declared(event)) == event


@EACH
def test_no_protocol_but_http_carries_batches(protocol: str) -> None:
    if protocol != "http":
        with pytest.raises(UsageError):
            write_batched((), protocol)
        section, name = PROTOCOLS[protocol].content_type
        frame = Frame(b"[]", {section: {name: "application/cloudevents-batch+json"}})
        with pytest.raises(Rejected):
            read_frame(frame, protocol)
    with pytest.raises(UsageError):
        write_batched((), "http", "avro")
    with pytest.raises(UsageError):
        write_binary(EVENTS["minimal"], "carrier pigeon")


def test_header_values_are_percent_encoded_as_the_specification_shows() -> None:
    event = make(id='a"%', source="/s", type="t", subject="Euro € 😀")
    for protocol in ("http", "nats"):
        headers = write_binary(event, protocol).sections["headers"]
        assert headers["ce-subject"] == "Euro%20%E2%82%AC%20%F0%9F%98%80"
        assert headers["ce-id"] == "a%22%25"


def test_a_quoted_header_is_unquoted_before_one_round_of_decoding() -> None:
    assert http(ce_subject='"a \\"b\\" %2541"').subject == 'a "b" %41'
    assert http(ce_subject="é").subject == "é"


@pytest.mark.parametrize("value", ["%C0%A0", "%ED%A0%80", "%zz", "%", "a%00b", "%7F", 5])
def test_a_wrong_header_value_is_rejected_by_its_name(value: Any) -> None:
    with pytest.raises(Rejected) as rejected:
        http(ce_subject=value)
    assert rejected.value.pointer == "/subject"


def test_header_names_have_no_case_in_http() -> None:
    headers = {name.upper(): value for name, value in MINIMAL.items()}
    assert read_frame(Frame(b"", {"headers": headers}), "http") == make(
        id="1", source="/s", type="t"
    )
    with pytest.raises(Rejected):
        read_frame(Frame(b"", {"headers": MINIMAL | {"CE-ID": "2"}}), "http")


def test_the_content_type_alone_decides_the_mode() -> None:
    body = write_structured(EVENTS["minimal"], "http").body
    for content_type in (
        "application/cloudevents+json",
        "Application/CloudEvents+JSON; charset=utf-8",
    ):
        frame = Frame(body, {"headers": MINIMAL | {"Content-Type": content_type}})
        assert read_frame(frame, "http") == EVENTS["minimal"]
    for unknown in (
        "application/cloudevents+cbor",
        "application/cloudevents",
        "application/cloudevents;",
    ):
        with pytest.raises(Rejected):
            read_frame(Frame(body, {"headers": {"Content-Type": unknown}}), "http")
    assert http(b'{"a":1}', content_type="application/json").data == {"a": 1}


def test_the_content_type_is_never_an_attribute_header_except_in_nats() -> None:
    with pytest.raises(Rejected):
        http(ce_datacontenttype="text/plain", content_type="text/plain")
    with pytest.raises(Rejected):
        http(ce_datacontenttype="text/plain")
    frame = write_binary(EVENTS["simpleTextData"], "nats")
    assert frame.sections["headers"]["ce-datacontenttype"] == "text/plain"
    assert "content-type" not in frame.sections["headers"]


def test_mqtt_may_repeat_the_content_type_but_not_contradict_it() -> None:
    frame = write_binary(EVENTS["simpleTextData"], "mqtt")
    own = dict(frame.sections["user_properties"])
    for repeated, fine in (("text/plain", True), ("text/html", False)):
        sections = dict(frame.sections) | {"user_properties": own | {"datacontenttype": repeated}}
        if fine:
            assert read_frame(Frame(frame.body, sections), "mqtt") == EVENTS["simpleTextData"]
        else:
            with pytest.raises(Rejected):
                read_frame(Frame(frame.body, sections), "mqtt")


def test_a_missing_or_illegal_attribute_is_rejected() -> None:
    for headers in (
        {},
        MINIMAL | {"ce-my_ext": "1"},
        MINIMAL | {"ce-": "1"},
        MINIMAL | {"ce-data": "1"},
    ):
        with pytest.raises(Rejected):
            read_frame(Frame(b"", {"headers": headers}), "http")


def test_kafka_tells_null_from_empty_and_keeps_the_key_out_of_the_event() -> None:
    frame = write_binary(EVENTS["minimal"], "kafka")
    assert frame.sections["record"] == {"value": None}
    empty = make(id="1", source="/s", type="t", data=b"", extensions={"partitionkey": "é"})
    frame = write_binary(empty, "kafka", partition_key)
    assert frame.sections["record"] == {"key": "é".encode()}
    assert frame.sections["headers"]["ce_id"] == b"1"
    assert read_frame(frame, "kafka") == empty
    sections = dict(frame.sections) | {"record": {"key": b"other"}}
    assert read_frame(Frame(b"", sections), "kafka") == empty


def test_amqp_reads_native_values_and_canonical_strings_under_both_prefixes() -> None:
    moment = datetime(2018, 4, 5, 17, 31, tzinfo=UTC)
    known = declare(extension("n", Kind.INTEGER), extension("b", Kind.BOOLEAN))
    for prefix in ("cloudEvents_", "cloudEvents:"):
        for values in (
            {"n": 5, "b": True, "time": moment},
            {"n": "5", "b": "true", "time": moment.isoformat()},
        ):
            fields = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", **values}
            frame = Frame(
                b"", {"application_properties": {prefix + k: v for k, v in fields.items()}}
            )
            event = read_frame(frame, "amqp", known)
            assert event == make(
                id="1", source="/s", type="t", time=moment, extensions={"n": 5, "b": True}
            )
    assert (
        write_binary(EVENTS["minimalWithTime"], "amqp").sections["application_properties"][
            "cloudEvents_time"
        ]
        == moment
    )


def test_implied_json_becomes_explicit_and_strings_are_quoted() -> None:
    frame = write_binary(make(id="1", source="/s", type="t", data="I'm just a string"), "http")
    assert frame.sections["headers"]["content-type"] == "application/json"
    assert frame.body == b'"I\'m just a string"'


def test_octets_that_are_not_what_they_say_stay_octets() -> None:
    assert http(b"{nope", content_type="application/json").data == b"{nope"
    assert http(b"\xff", content_type="text/plain").data == b"\xff"
    assert http(b"\xe9", content_type="text/plain; charset=iso-8859-1").data == "é"
    assert http(b"x", content_type="text/plain; charset=klingon").data == b"x"
    assert http(b"x").data == b"x"


@pytest.mark.parametrize("protocol", ["http", "kafka"])
@pytest.mark.parametrize("charset", ["", "; charset=utf-8"])
@pytest.mark.parametrize("structured", [False, True])
def test_a_charset_is_kept_in_binary_mode_and_ignored_in_structured_mode(
    protocol: str, charset: str, structured: bool
) -> None:
    """All that the feature files of cloudevents/conformance check."""
    expected = make(
        id="order-1042", source="/shop/orders", type="com.example.order.created",
        time="2026-11-15T10:30:00Z",
        datacontenttype=f"application/json{'' if structured else charset}",
        data={"total": 99.95},
    )  # fmt: skip
    frame = write_structured(expected, protocol) if structured else write_binary(expected, protocol)
    headers = dict(frame.sections["headers"])
    if structured:
        name = "application/cloudevents+json" + charset
        headers["content-type"] = name.encode() if protocol == "kafka" else name
    assert read_frame(Frame(frame.body, {"headers": headers}), protocol, NONE) == expected
