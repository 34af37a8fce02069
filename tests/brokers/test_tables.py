"""Each broker's table, said a second time as the frame it must give. No row changes unnoticed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tallystick.brokers import BROKERS, find_binding
from tallystick.brokers.reference import describe, reference
from tallystick.core.binding import Binding, project
from tallystick.core.envelope import decode
from tallystick.core.errors import UsageError
from tallystick.core.slot import Long

BODY = (
    b'{"job":"urn:babel:orders:created","trace_id":"a-trace","data":{},'
    b'"meta":{"id":"an-id","queue":"orders","lang":"go","schema_version":1,'
    b'"created_at":1700000000123},"attempts":2}'
)
FRAMES: dict[str, dict[str, dict[str, Any]]] = {
    "memory": {},
    "redis": {},
    "rabbitmq": {
        "properties": {
            "type": "urn:babel:orders:created",
            "correlation_id": "a-trace",
            "message_id": "an-id",
            "app_id": "babelqueue",
            "content_type": "application/json",
            "content_encoding": "utf-8",
            "delivery_mode": 2,
        },
        "headers": {"x-schema-version": 1, "x-source-lang": "go", "x-attempts": 2},
    },
    "sqs": {
        "message_attributes": {
            "bq-job": {"DataType": "String", "StringValue": "urn:babel:orders:created"},
            "bq-trace-id": {"DataType": "String", "StringValue": "a-trace"},
            "bq-message-id": {"DataType": "String", "StringValue": "an-id"},
            "bq-schema-version": {"DataType": "Number", "StringValue": "1"},
            "bq-source-lang": {"DataType": "String", "StringValue": "go"},
            "bq-created-at": {"DataType": "Number", "StringValue": "1700000000123"},
        }
    },
    "servicebus": {
        "message": {
            "subject": "urn:babel:orders:created",
            "correlation_id": "a-trace",
            "message_id": "an-id",
            "content_type": "application/json",
        },
        "application_properties": {
            "bq-schema-version": 1,
            "bq-source-lang": "go",
            "bq-created-at": Long(1700000000123),
        },
    },
    "pulsar": {
        "properties": {
            "bq-job": "urn:babel:orders:created",
            "bq-trace-id": "a-trace",
            "bq-message-id": "an-id",
            "bq-schema-version": "1",
            "bq-source-lang": "go",
            "bq-attempts": "2",
        }
    },
    "kafka": {
        "headers": {
            "bq-job": b"urn:babel:orders:created",
            "bq-trace-id": b"a-trace",
            "bq-message-id": b"an-id",
            "bq-schema-version": b"1",
            "bq-source-lang": b"go",
            "bq-attempts": b"2",
        },
        "record": {"timestamp": Long(1700000000123)},
    },
    "artemis": {
        "annotations": {"x-opt-jms-type": "urn:babel:orders:created"},
        "properties": {"correlation-id": "a-trace", "creation-time": Long(1700000000123)},
        "application_properties": {
            "bq_schema_version": "1",
            "bq_source_lang": "go",
            "bq_attempts": "2",
            "bq_app_id": "babelqueue",
        },
    },
}
GATES = {
    "sqs": ("message_attributes", "bq-schema-version", ("text",)),
    "servicebus": ("application_properties", "bq-schema-version", ("text", "integer")),
    "pulsar": ("properties", "bq-schema-version", ("text",)),
    "kafka": ("headers", "bq-schema-version", ("text", "bytes")),
    "artemis": ("application_properties", "bq_schema_version", ("text", "bytes", "integer")),
}


def typed(sections: Any) -> dict[tuple[str, str], tuple[type, Any]]:
    return {
        (section, key): (type(value), value)
        for section, held in sections.items()
        for key, value in held.items()
    }


@pytest.mark.parametrize("broker", BROKERS)
def test_a_broker_carries_exactly_these_fields_with_these_types(broker: str) -> None:
    frame = project(BROKERS[broker].binding, decode(BODY))
    assert typed(frame.sections) == typed(FRAMES[broker])
    assert frame.body == BODY


@pytest.mark.parametrize("broker", BROKERS)
def test_the_gate_of_a_broker(broker: str) -> None:
    gate = BROKERS[broker].binding.gate
    found = (gate.section, gate.key, gate.natives) if gate else None
    assert found == GATES.get(broker)


@pytest.mark.parametrize(
    ("broker", "section", "value"),
    [
        ("memory", "headers", "00-x"),
        ("redis", "headers", "00-x"),
        ("rabbitmq", "headers", "00-x"),
        ("sqs", "message_attributes", {"DataType": "String", "StringValue": "00-x"}),
        ("servicebus", "application_properties", "00-x"),
        ("pulsar", "properties", "00-x"),
        ("kafka", "headers", b"00-x"),
        ("artemis", "application_properties", "00-x"),
    ],
)
def test_headers_ride_where_the_broker_has_room(broker: str, section: str, value: Any) -> None:
    frame = project(BROKERS[broker].binding, decode(BODY), headers={"traceparent": "00-x"})
    assert frame.get(section, "traceparent") == value


def test_artemis_names_are_java_identifiers() -> None:
    frame = project(find_binding("artemis"), decode(BODY), headers={"bq-replay-bypass": "1"})
    held = frame.sections["application_properties"]
    assert held["bq_replay_bypass"] == "1"
    assert all(key.isidentifier() for key in held)


def test_a_broker_is_a_folder_and_a_row() -> None:
    folder = Path(__file__).parents[2] / "src" / "tallystick" / "brokers"
    folders = {path.parent.name for path in folder.glob("*/binding.py")}
    assert folders == set(BROKERS)
    assert all(row.binding.name == name for name, row in BROKERS.items())


def test_a_url_scheme_means_one_broker() -> None:
    schemes = [scheme for row in BROKERS.values() for scheme in row.schemes]
    assert len(schemes) == len(set(schemes))
    assert {"redis", "amqp", "sqs", "sb", "pulsar", "kafka", "artemis", "memory"} <= set(schemes)


def test_a_layout_is_found_by_name() -> None:
    assert find_binding("redis") is find_binding("redis", "legacy")
    assert find_binding("redis", "laravel").delay is not None
    for broker, layout, code in (("rabbit", "", "broker"), ("sqs", "laravel", "layout")):
        with pytest.raises(UsageError) as caught:
            find_binding(broker, layout)
        assert caught.value.code == code


def test_the_reference_page_says_what_the_tables_say() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "bindings.md"
    assert page.read_text("utf-8") == reference()


@pytest.mark.parametrize("binding", [row.binding for row in BROKERS.values()])
def test_the_reference_shows_every_slot(binding: Binding) -> None:
    page = describe(binding)
    rules = [rule.slots for rule in (binding.delay, binding.retry) if rule]
    for slot in (slot for slots in (binding.slots, *rules) for slot in slots):
        assert f"| `{slot.section}` | `{slot.key}` |" in page
