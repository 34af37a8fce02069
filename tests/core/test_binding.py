"""One project, one reconcile, one gate: laws that hold for the table of every broker."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.brokers import BROKERS
from tallystick.core.binding import (
    MAX_COUNT,
    OUT_OF_BAND,
    Binding,
    Count,
    delay_fields,
    envelope_facts,
    gate,
    gate_frame,
    headers_of,
    project,
    read_count,
    reconcile,
    retry_fields,
    route,
)
from tallystick.core.envelope import decode, encode, make
from tallystick.core.errors import Refused, UsageError
from tallystick.core.slot import Constant, Long, Slot, fill, native_type, read_rows

BINDINGS = [
    binding
    for row in BROKERS.values()
    for binding in (row.binding, *(each for each in row.layouts.values() if each != row.binding))
]
every_binding = pytest.mark.parametrize("binding", BINDINGS, ids=lambda each: each.name)
gated = pytest.mark.parametrize(
    "binding", [each for each in BINDINGS if each.gate], ids=lambda each: each.name
)
TABLE = {name: row.binding for name, row in BROKERS.items()}


def message(**changes: Any) -> bytes:
    document = {
        "job": "urn:babel:orders:created",
        "trace_id": "11111111-2222-4333-8444-555555555555",
        "data": {"n": 1.50},
        "meta": {
            "id": "66666666-7777-4888-9999-000000000000",
            "queue": "orders",
            "lang": "cobol",
            "schema_version": 1,
            "created_at": 1700000000123,
        },
        "attempts": 4,
    }
    return json.dumps({**document, **changes}, indent=1).encode()


@every_binding
def test_the_body_is_carried_as_it_came(binding: Binding) -> None:
    body = message()
    assert project(binding, decode(body)).body == body


@every_binding
def test_a_message_that_was_made_is_carried_in_canonical_bytes(binding: Binding) -> None:
    made = make("urn:babel:a:b", {}, now_ms=5, new_id=lambda: "i")
    assert project(binding, made).body == encode(made)


@every_binding
def test_a_member_that_is_absent_leaves_its_slot_out(binding: Binding) -> None:
    sections = project(binding, decode(b'{"job":"urn:x"}')).sections
    carried = {(section, key) for section, held in sections.items() for key in held}
    known = {
        (slot.section, slot.key)
        for slot in binding.slots
        if isinstance(slot.source, Constant) or slot.source == "urn"
    }
    assert carried == known


@every_binding
def test_a_null_member_is_as_absent(binding: Binding) -> None:
    null = b'{"job":"urn:x","trace_id":null,"attempts":null,"meta":{"id":null,"lang":null}}'
    bare = b'{"job":"urn:x"}'
    assert project(binding, decode(null)).sections == project(binding, decode(bare)).sections


@every_binding
def test_every_slot_reads_a_fact_that_exists_and_no_field_is_written_twice(
    binding: Binding,
) -> None:
    facts = {*envelope_facts(decode(message())), "key", "fifo.group", "fifo.deduplication"}
    sources = {slot.source for slot in binding.slots if isinstance(slot.source, str)}
    places = [(slot.section, slot.key) for slot in binding.slots]
    assert sources <= facts
    assert len(places) == len(set(places))


def test_a_source_that_nobody_provides_is_a_fault_of_the_table() -> None:
    rows = read_rows([Slot("headers", "x", "meta.idd", "text")])
    with pytest.raises(KeyError):
        fill(rows, envelope_facts(decode(message())))


@every_binding
def test_an_option_that_does_not_exist_is_a_usage_error(binding: Binding) -> None:
    with pytest.raises(UsageError) as caught:
        project(binding, decode(message()), colour="red")
    assert caught.value.code == "option"


def test_the_alias_is_projected_as_the_urn() -> None:
    frame = project(TABLE["pulsar"], decode(b'{"urn":"urn:alias"}'))
    assert frame.get("properties", "bq-job") == "urn:alias"


@pytest.mark.parametrize("binding", [each for each in BINDINGS if each.extras])
def test_headers_come_back_under_the_names_they_were_sent_with(binding: Binding) -> None:
    headers = {name: f"value of {name}" for name in OUT_OF_BAND}
    assert headers_of(binding, project(binding, decode(message()), headers=headers).sections) == (
        headers
    )


@pytest.mark.parametrize("binding", [each for each in BINDINGS if each.extras])
def test_a_header_never_takes_the_place_of_a_contract_field(binding: Binding) -> None:
    assert binding.extras is not None
    section = binding.extras.section
    contract = [slot.key for slot in binding.slots if slot.section == section]
    headers = dict.fromkeys(contract, "forged")
    for body in (message(), b'{"job":"urn:x"}'):
        plain = project(binding, decode(body))
        assert project(binding, decode(body), headers=headers).sections.get(section, {}) == (
            plain.sections.get(section, {})
        )


def test_a_header_never_looks_like_a_delay() -> None:
    frame = project(TABLE["kafka"], decode(message()), headers={"bq-original-topic": "forged"})
    assert frame.get("headers", "bq-original-topic") is None


def test_sqs_holds_ten_attributes_and_skips_the_headers_that_come_later() -> None:
    headers = {f"h{n}": str(n) for n in range(9)}
    held = project(TABLE["sqs"], decode(message()), headers=headers).sections["message_attributes"]
    assert len(held) == 10
    assert [key for key in held if key.startswith("h")] == ["h0", "h1", "h2", "h3"]


def test_sqs_leaves_out_an_empty_attribute() -> None:
    body = message(trace_id="")
    held = project(TABLE["sqs"], decode(body), headers={"empty": ""}).sections
    assert "bq-trace-id" not in held["message_attributes"]
    assert "empty" not in held["message_attributes"]


def test_laravel_redis_drops_headers() -> None:
    binding = BROKERS["redis"].layouts["laravel"]
    assert project(binding, decode(message()), headers={"traceparent": "x"}).sections == {}
    assert headers_of(binding, {"headers": {"traceparent": "x"}}) == {}


def test_a_header_that_is_not_text_is_not_handed_on() -> None:
    held = {"application_properties": {"traceparent": 7, "tracestate": "t"}}
    assert headers_of(TABLE["servicebus"], held) == {"tracestate": "t"}


def test_a_fifo_queue_groups_by_the_queue_and_deduplicates_by_the_message() -> None:
    held = project(TABLE["sqs"], decode(message()), queue="orders.fifo").sections["parameters"]
    assert held == {
        "MessageGroupId": "orders.fifo",
        "MessageDeduplicationId": "66666666-7777-4888-9999-000000000000",
    }


def test_a_configured_group_wins_and_content_based_deduplication_needs_no_id() -> None:
    given_options = {"queue": "orders.fifo", "group": "customer-7", "content_based": True}
    held = project(TABLE["sqs"], decode(message()), **given_options).sections["parameters"]
    assert held == {"MessageGroupId": "customer-7"}


def test_a_standard_queue_has_no_fifo_fields() -> None:
    assert "parameters" not in project(TABLE["sqs"], decode(message()), group="g").sections
    fifo_by_name = project(TABLE["sqs"], decode(message()), queue="a.fifo", fifo=False)
    assert "parameters" not in fifo_by_name.sections


@pytest.mark.parametrize("meta", [{}, {"id": ""}, {"id": None}])
def test_a_fifo_queue_refuses_a_message_without_an_id(meta: dict[str, Any]) -> None:
    with pytest.raises(Refused) as caught:
        project(TABLE["sqs"], decode(message(meta=meta)), fifo=True)
    assert (caught.value.code, caught.value.pointer) == ("no_deduplication_id", "/meta/id")


def test_the_queue_is_the_one_given_else_that_of_the_message_else_default() -> None:
    def group(body: bytes, **options: Any) -> Any:
        options |= {"fifo": True, "content_based": True}
        return project(TABLE["sqs"], decode(body), **options).get("parameters", "MessageGroupId")

    assert group(message(), queue="q") == "q"
    assert group(message()) == "orders"
    assert group(b'{"job":"urn:x"}') == "default"


def test_a_kafka_key_is_kept_byte_for_byte_and_an_empty_key_is_a_key() -> None:
    kafka, body = TABLE["kafka"], decode(message())
    assert project(kafka, body, key=b"\xff\x00").get("record", "key") == b"\xff\x00"
    assert project(kafka, body, key=b"").sections["record"]["key"] == b""
    assert "key" not in project(kafka, body).sections["record"]


def test_pulsar_routes_by_its_property_and_keeps_it_when_publishing_again() -> None:
    pulsar, body = TABLE["pulsar"], decode(message())
    assert route(pulsar, {"properties": {"bq-job": "urn:other"}}, body.urn) == "urn:other"
    for blank in ({}, {"bq-job": ""}, {"bq-job": " \t"}, {"bq-job": None}):
        assert route(pulsar, {"properties": blank}, body.urn) == body.urn
    assert route(pulsar, {"properties": {"bq-job": "\u00a0"}}, body.urn) == "\u00a0"
    again = project(pulsar, body, routed_as="urn:other")
    assert again.get("properties", "bq-job") == "urn:other"


def test_other_brokers_route_by_the_body() -> None:
    kafka, body = TABLE["kafka"], decode(message())
    assert route(kafka, {"headers": {"bq-job": b"urn:other"}}, body.urn) == body.urn
    again = project(kafka, body, routed_as="urn:other")
    assert again.get("headers", "bq-job") == b"urn:babel:orders:created"


# Attempts.

counts = st.integers(0, MAX_COUNT)
garbage = st.one_of(
    st.none(),
    st.booleans(),
    st.floats(),
    st.integers(max_value=-1),
    st.integers(min_value=MAX_COUNT + 1),
    st.text().filter(lambda text: not (text.isascii() and text.isdigit())),
    st.binary().filter(lambda raw: not raw.isdigit()),
    st.lists(st.integers()),
    st.sampled_from(["", " 1", "1 ", "+1", "-1", "1.0", "1e3", "٣", "\uff11", "1\n", "0x1", "1_0"]),
)


@given(counts, st.sampled_from([str, lambda n: str(n).encode(), int, lambda n: f"00{n}"]))
def test_a_count_is_read_from_text_bytes_and_numbers(count: int, spell: Any) -> None:
    assert read_count(spell(count)) == count


@given(garbage)
def test_what_is_not_a_plain_count_is_ignored(value: Any) -> None:
    assert read_count(value) is None


@pytest.mark.parametrize("digits", ["9" * 5000, "0" * 5000 + "7", str(MAX_COUNT + 1)])
def test_a_count_of_any_length_is_read_without_raising(digits: str) -> None:
    assert read_count(digits) == (7 if digits.endswith("7") else None)


@every_binding
@given(data=st.data())
def test_without_native_counts_the_body_decides(binding: Binding, data: st.DataObject) -> None:
    attempts = data.draw(st.integers(-3, 99))
    sections: dict[str, dict[str, Any]] = {}
    for count in binding.counts:
        sections.setdefault(count.section, {})[count.key] = data.draw(garbage)
    assert reconcile(binding, attempts, sections) == attempts
    assert reconcile(binding, attempts, {}) == attempts


@every_binding
def test_an_absent_body_count_reads_as_zero(binding: Binding) -> None:
    assert reconcile(binding, None, {}) == 0


@pytest.mark.parametrize("name", ["sqs", "servicebus", "artemis"])
@given(body=counts, native=counts)
def test_a_native_count_never_lowers_attempts(name: str, body: int, native: int) -> None:
    binding = TABLE[name]
    count = binding.counts[0]
    sections: dict[str, dict[str, Any]] = {count.section: {count.key: native}}
    assert reconcile(binding, body, sections) == max(body, native - count.offset)


@given(counts, counts)
def test_the_kafka_header_is_authoritative_even_when_lower(body: int, header: int) -> None:
    sections = {"headers": {"bq-attempts": str(header).encode()}}
    assert reconcile(TABLE["kafka"], body, sections) == header


@given(counts, st.none() | counts, counts)
def test_pulsar_overrides_first_and_then_raises(body: int, stated: int | None, again: int) -> None:
    properties = {} if stated is None else {"bq-attempts": str(stated)}
    sections: dict[str, Any] = {"properties": properties, "message": {"redelivery_count": again}}
    expected = max(body if stated is None else stated, again)
    assert reconcile(TABLE["pulsar"], body, sections) == expected


@pytest.mark.parametrize("name", ["memory", "redis", "rabbitmq"])
def test_where_the_broker_has_no_count_the_body_is_alone(name: str) -> None:
    loud: dict[str, Any] = {
        "headers": {"x-attempts": 9, "bq-attempts": b"9"},
        "message": {"delivery_count": 9},
    }
    assert reconcile(TABLE[name], 2, loud) == 2


@pytest.mark.parametrize(
    ("name", "sections", "expected"),
    [
        ("sqs", {"attributes": {"ApproximateReceiveCount": "1"}}, 0),
        ("sqs", {"attributes": {"ApproximateReceiveCount": "4"}}, 3),
        ("servicebus", {"message": {"delivery_count": 4}}, 3),
        ("servicebus", {"message": {"delivery_count": 0}}, 0),
        ("pulsar", {"message": {"redelivery_count": 4}}, 4),
        ("artemis", {"header": {"delivery-count": 4}}, 4),
        ("artemis", {"application_properties": {"JMSXDeliveryCount": 4}}, 3),
        ("artemis", {"application_properties": {"JMSXDeliveryCount": 1}}, 0),
    ],
)
def test_native_counts_start_where_the_broker_starts(
    name: str, sections: dict[str, dict[str, Any]], expected: int
) -> None:
    assert reconcile(TABLE[name], 0, sections) == expected


def test_the_rule_is_data() -> None:
    lowering = replace(TABLE["sqs"], counts=(Count("override", "a", "b", 1),))
    assert reconcile(lowering, 9, {"a": {"b": 3}}) == 2


# The gate.

ASCII_BLANK = st.text(" \t\n\v\f\r")
NOT_BLANK = st.text(min_size=1).filter(lambda text: text.strip(" \t\n\v\f\r") and text != "1")


@gated
def test_absent_and_null_decode(binding: Binding) -> None:
    assert gate(binding, present=False)
    assert gate(binding, present=True, value=None)


@gated
@given(ASCII_BLANK)
def test_an_ascii_blank_version_decodes(binding: Binding, blank: str) -> None:
    assert gate(binding, present=True, value=blank)


@gated
@given(NOT_BLANK)
def test_every_text_but_one_is_turned_away(binding: Binding, text: str) -> None:
    assert not gate(binding, present=True, value=text)
    assert gate(binding, present=True, value="1")


@gated
@pytest.mark.parametrize(
    "text", ["2", "01", "x", " 1", "1 ", "\t1\n", "1\u3000", "\u00a0", "\u0085", "\u3000", "\ufeff"]
)
def test_the_value_is_compared_untrimmed(binding: Binding, text: str) -> None:
    assert not gate(binding, present=True, value=text)


@gated
@given(st.one_of(st.booleans(), st.floats(), st.integers().filter(lambda n: n != 1)))
def test_numbers_other_than_an_integral_one_are_turned_away(binding: Binding, value: Any) -> None:
    assert not gate(binding, present=True, value=value)


@pytest.mark.parametrize(
    ("name", "integer", "raw"),
    [
        ("sqs", False, False),
        ("servicebus", True, False),
        ("pulsar", False, False),
        ("kafka", False, True),
        ("artemis", True, True),
    ],
)
def test_each_broker_takes_the_native_types_it_has(name: str, integer: bool, raw: bool) -> None:
    binding = TABLE[name]
    assert gate(binding, present=True, value=1) is integer
    assert gate(binding, present=True, value=Long(1)) is integer
    assert gate(binding, present=True, value=b"1") is raw
    assert gate(binding, present=True, value=b" \t") is raw
    assert gate(binding, present=True, value=b"\xc2\xa0") is False
    assert gate(binding, present=True, value=b"\xff") is False


@pytest.mark.parametrize("name", ["memory", "redis", "rabbitmq"])
@given(st.one_of(st.text(), st.integers(), st.none()))
def test_a_broker_without_a_gate_always_decodes(name: str, value: Any) -> None:
    assert gate(TABLE[name], present=True, value=value)
    assert gate_frame(TABLE[name], {"headers": {"bq-schema-version": value}})


@gated
def test_the_gate_lets_through_what_we_project_and_nothing_newer(binding: Binding) -> None:
    assert gate_frame(binding, project(binding, decode(message())).sections)
    newer = message(meta={"schema_version": 2, "id": "i"})
    assert not gate_frame(binding, project(binding, decode(newer)).sections)
    assert gate_frame(binding, {})


def test_the_gate_reads_an_sqs_attribute_of_text_only() -> None:
    held = {"bq-schema-version": {"DataType": "Binary", "BinaryValue": b"1"}}
    assert not gate_frame(TABLE["sqs"], {"message_attributes": held})


@gated
def test_the_gate_reads_a_field_that_the_table_writes(binding: Binding) -> None:
    assert binding.gate is not None
    written = {(slot.section, slot.key): slot.source for slot in binding.slots}
    assert written[binding.gate.section, binding.gate.key] == "meta.schema_version"


# Waiting, through the projection.


def test_a_delay_and_a_retry_exclude_each_other() -> None:
    with pytest.raises(UsageError) as caught:
        project(TABLE["kafka"], decode(message()), delay=1, attempts_before=0, tiers_ms=[5000])
    assert caught.value.code == "two_delays"


@pytest.mark.parametrize("binding", [each for each in BINDINGS if each.delay])
def test_a_delay_adds_its_fields_and_changes_no_other(binding: Binding) -> None:
    options: dict[str, Any] = {"now": 1000.5, "tiers_ms": [5000], "delayed_exchange": True}
    options["queue"] = "orders"
    plain = project(binding, decode(message()), queue="orders")
    fields = delay_fields(binding, 2.5, **options)
    delayed = project(binding, decode(message()), delay=2.5, **options)
    assert fields
    for section in {*plain.sections, *fields, *delayed.sections}:
        assert delayed.sections[section] == {
            **plain.sections.get(section, {}),
            **fields.get(section, {}),
        }


def test_a_kafka_retry_goes_to_its_tier_with_the_count_in_header_and_body() -> None:
    body = decode(message(attempts=2))
    frame = project(TABLE["kafka"], body, attempts_before=1, tiers_ms=[10, 20, 30], queue="orders")
    assert frame.get("record", "topic") == "orders.retry.2"
    assert frame.get("headers", "bq-attempts") == b"2"
    assert frame.get("headers", "bq-delay") == b"20"
    assert frame.get("headers", "bq-original-topic") == b"orders"


def test_a_retry_elsewhere_is_a_plain_republish() -> None:
    for name in ("redis", "rabbitmq", "servicebus", "pulsar", "artemis", "memory"):
        assert retry_fields(TABLE[name], 1) == {}


def test_native_types_have_names_that_json_cannot_tell() -> None:
    found = {
        (section, key): native_type(value)
        for name in ("kafka", "servicebus", "sqs")
        for section, held in project(TABLE[name], decode(message())).sections.items()
        for key, value in held.items()
    }
    assert found["headers", "bq-job"] == "bytes"
    assert found["message", "subject"] == "text"
    assert found["application_properties", "bq-schema-version"] == "integer"
    assert found["application_properties", "bq-created-at"] == "long"
    assert found["message_attributes", "bq-created-at"] == "Number"
    assert found["message_attributes", "bq-job"] == "String"
