"""One project: laws that hold for the table of every broker, its headers and its routes."""

from __future__ import annotations

from typing import Any

import pytest

from tallystick.brokers import BROKERS
from tallystick.core.binding import (
    OUT_OF_BAND,
    Binding,
    delay_fields,
    envelope_facts,
    headers_of,
    project,
    retry_fields,
    route,
)
from tallystick.core.envelope import decode, encode, make
from tallystick.core.errors import Refused, UsageError
from tallystick.core.slot import Constant, Slot, fill, native_type, read_rows
from tests.core.bindings import BINDINGS, TABLE, every_binding, message


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
