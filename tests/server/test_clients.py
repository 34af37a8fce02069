"""The official clients, unchanged, against the running server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaRegistryClient,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from schema_registry.client import SchemaRegistryClient as PypiClient
from schema_registry.client.errors import ClientError
from schema_registry.client.schema import JsonSchema

from tests.server.serving import ANY, ODD, ORDERS, SCHEMAS, USERS, Served

ALL = sorted([ORDERS, USERS, *SCHEMAS])
ORDER: dict[str, Any] = {"order_id": 1, "amount": 9.5, "currency": "TRY"}
BREAKING = json.dumps({"type": "object", "properties": {"order_id": {"type": "string"}}})


@pytest.fixture
def confluent(server: Served) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": server.url}) as client:
        yield client


@pytest.fixture
def pypi(server: Served) -> PypiClient:
    return PypiClient(server.url)


def registered(server: Served) -> str:
    return (server.folder / "orders-created.json").read_text()


def test_confluent_lists_subjects_and_versions(confluent: SchemaRegistryClient) -> None:
    assert confluent.get_subjects() == ALL
    assert confluent.get_versions(ORDERS) == [1]
    assert confluent.get_schema_types() == ["JSON"]
    assert confluent.get_contexts() == ["."]


@pytest.mark.parametrize("subject", [ORDERS, ODD, ANY])
def test_confluent_reads_a_subject(confluent: SchemaRegistryClient, subject: str) -> None:
    number = ALL.index(subject) + 1
    latest = confluent.get_latest_version(subject)
    assert (latest.subject, latest.version, latest.schema_id) == (subject, 1, number)
    assert latest.schema.schema_type == "JSON"
    assert confluent.get_version(subject, 1).schema_id == number
    assert confluent.get_schema(number).schema_type == "JSON"
    assert confluent.get_schema(number).schema_str == latest.schema.schema_str
    assert confluent.get_subjects_by_schema_id(number) == [subject]
    used = confluent.get_schema_versions(number)
    assert [(one.subject, one.version) for one in used] == [(subject, 1)]


def test_confluent_looks_up_and_tests_compatibility(
    confluent: SchemaRegistryClient, server: Served
) -> None:
    same = Schema(registered(server), "JSON")
    broken = Schema(BREAKING, "JSON")
    assert confluent.lookup_schema(ORDERS, same).schema_id == ALL.index(ORDERS) + 1
    assert confluent.test_compatibility(ORDERS, same)
    assert not confluent.test_compatibility(ORDERS, broken)
    assert confluent.test_compatibility_all_versions(ORDERS, same)
    assert not confluent.test_compatibility_all_versions(ORDERS, broken)


def test_confluent_reads_by_metadata_guid_reference_and_association(
    confluent: SchemaRegistryClient, server: Served
) -> None:
    owned = confluent.get_latest_with_metadata(ORDERS, {"owner": "orders", "status": "active"})
    assert owned.schema_id == ALL.index(ORDERS) + 1
    guid = confluent.lookup_schema(ORDERS, Schema(registered(server), "JSON")).guid
    assert guid is not None
    assert confluent.get_schema_by_guid(guid).schema_str == registered(server)
    assert confluent.get_referenced_by(ORDERS, "latest") == []
    assert confluent.get_associations_by_resource_name("orders", "-", "topic", ["value"]) == []


def test_confluent_reads_settings(confluent: SchemaRegistryClient) -> None:
    assert confluent.get_compatibility() == "BACKWARD"
    assert confluent.get_compatibility(ORDERS) == "BACKWARD"
    assert confluent.get_config(ORDERS).compatibility_level == "BACKWARD"
    assert confluent.get_mode(ORDERS) == "READONLY"
    assert confluent.get_global_mode() == "READONLY"


def test_confluent_sees_the_codes_of_its_own_server(confluent: SchemaRegistryClient) -> None:
    def code(call: Any, *arguments: Any) -> int:
        with pytest.raises(SchemaRegistryError) as caught:
            call(*arguments)
        return int(caught.value.error_code)

    assert code(confluent.get_versions, "nope") == 40401
    assert code(confluent.get_version, ORDERS, 2) == 40402
    assert code(confluent.get_schema, 999) == 40403
    assert code(confluent.lookup_schema, ORDERS, Schema("{}", "JSON")) == 40403
    assert code(confluent.test_compatibility, ORDERS, Schema("{", "JSON")) == 42201
    assert code(confluent.register_schema, ORDERS, Schema("{}", "JSON")) == 42205
    assert code(confluent.delete_subject, ORDERS) == 42205
    assert code(confluent.set_compatibility, ORDERS, "FULL") == 42205


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"auto.register.schemas": False},
        {"auto.register.schemas": False, "use.latest.version": True},
        {"schema.id.serializer": header_schema_id_serializer},
    ],
)
def test_confluent_serializes_and_reads_back(
    confluent: SchemaRegistryClient, server: Served, settings: dict[str, Any]
) -> None:
    named = {"subject.name.strategy": lambda *_: ORDERS}
    text = registered(server)
    writer = JSONSerializer(text, confluent, conf={**settings, **named})
    context = SerializationContext("orders", MessageField.VALUE, [])
    raw = writer(ORDER, context)
    assert raw is not None
    if "schema.id.serializer" not in settings:
        assert raw[:5] == b"\x00" + (ALL.index(ORDERS) + 1).to_bytes(4, "big")
    reader = JSONDeserializer(None, schema_registry_client=confluent, conf=named)
    assert reader(raw, context) == ORDER


def test_the_pypi_client_reads_everything(pypi: PypiClient, server: Served) -> None:
    number = ALL.index(ORDERS) + 1
    assert pypi.get_subjects() == ALL
    assert pypi.get_versions(ORDERS) == [1]
    latest = pypi.get_schema(ORDERS)
    assert latest is not None
    assert (latest.schema_id, latest.version) == (number, 1)
    assert isinstance(latest.schema, JsonSchema)
    by_id = pypi.get_by_id(number)
    assert by_id is not None
    assert by_id.raw_schema == json.loads(registered(server))
    found = pypi.check_version(ORDERS, JsonSchema(registered(server)))
    assert found is not None
    assert found.schema_id == number
    used = pypi.get_schema_subject_versions(number)
    assert used is not None
    assert [(one.subject, one.version) for one in used] == [(ORDERS, 1)]
    assert pypi.get_compatibility(ORDERS) == "BACKWARD"


def test_the_pypi_client_tests_compatibility_and_may_not_write(
    pypi: PypiClient, server: Served
) -> None:
    assert pypi.test_compatibility(ORDERS, JsonSchema(registered(server)))
    assert not pypi.test_compatibility(ORDERS, JsonSchema(BREAKING))
    assert pypi.register(ORDERS, JsonSchema(registered(server))) == ALL.index(ORDERS) + 1
    with pytest.raises(ClientError) as caught:
        pypi.register(ORDERS, JsonSchema("{}"))
    assert caught.value.http_code == 422
    with pytest.raises(ClientError):
        pypi.update_compatibility("FULL", ORDERS)
