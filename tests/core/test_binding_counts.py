"""One reconcile: how often a message was tried, from the body and from native counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.binding import (
    MAX_COUNT,
    Binding,
    Count,
    read_count,
    reconcile,
)
from tests.core.bindings import TABLE, every_binding

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
