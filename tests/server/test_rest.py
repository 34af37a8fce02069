"""Every endpoint and error code, asked of the running server."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.server.serving import ANY, MONEY, ODD, ORDERS, SCHEMAS, TREE, USERS, Served, encode

REGISTRY_JSON = "application/vnd.schemaregistry.v1+json"
ALL = sorted([ORDERS, USERS, *SCHEMAS])
O = f"/subjects/{encode(ORDERS)}"  # noqa: E741 - the subject of most requests
VERSION_WORDS = (
    "The specified version '0' is not a valid version id. "
    'Allowed values are between [1, 2^31-1] and the string "latest"'
)
BREAKING = {"type": "object", "properties": {"order_id": {"type": "string"}}}


def test_subjects_are_the_urns_in_lexical_order(server: Served) -> None:
    reply = server.get("/subjects?deleted=false&deleted_only=false&offset=0&limit=-1")
    assert (reply.status, reply.value) == (200, ALL)
    assert reply.headers["content-type"] == REGISTRY_JSON


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("offset=1&limit=2", ALL[1:3]),
        ("offset=99", []),
        ("limit=0", []),
        ("subjectPrefix=urn:babel:orders", [ORDERS]),
        ("subjectPrefix=:*:", ALL),
        ("deletedOnly=True", []),
        ("whatever=1", ALL),
    ],
)
def test_lists_are_cut_and_filtered(server: Served, query: str, wanted: list[str]) -> None:
    assert server.get(f"/subjects?{query}").value == wanted


@pytest.mark.parametrize("subject", [ORDERS, USERS, ODD, MONEY, TREE, ANY])
def test_every_subject_has_version_one_under_its_encoded_name(server: Served, subject: str) -> None:
    path = f"/subjects/{encode(subject)}/versions"
    assert server.get(path).value == [1]
    latest = server.get(f"{path}/latest").value
    assert latest == server.get(f"{path}/1").value
    assert set(latest) == {"subject", "version", "id", "schemaType", "schema"}
    assert (latest["subject"], latest["version"], latest["schemaType"]) == (subject, 1, "JSON")
    assert latest["id"] == ALL.index(subject) + 1
    assert server.get(f"{path}/latest/schema").value == json.loads(latest["schema"])


def test_a_subject_may_be_sent_with_plain_colons(server: Served) -> None:
    assert server.get(f"/subjects/{ORDERS}/versions").value == [1]


def test_the_schema_is_the_text_of_its_file(server: Served) -> None:
    text = (server.folder / "orders-created.json").read_text()
    assert server.get(f"{O}/versions/1").value["schema"] == text
    assert server.get(f"{O}/versions/1/schema").body.decode() == text


def test_a_schema_with_foreign_references_is_served_whole(server: Served) -> None:
    schema = json.loads(server.get(f"/subjects/{encode(MONEY)}/versions/1").value["schema"])
    target = schema["properties"]["price"]["$ref"]
    assert target.startswith("#/definitions/")
    assert "amount.json" not in target


@pytest.mark.parametrize(
    ("path", "status", "code", "message"),
    [
        ("/subjects/nope/versions", 404, 40401, "Subject 'nope' not found."),
        ("/subjects/nope/versions/latest", 404, 40401, "Subject 'nope' not found."),
        ("/subjects/nope/versions/abc", 404, 40401, "Subject 'nope' not found."),
        (f"{O}/versions/2", 404, 40402, "Version 2 not found."),
        (f"{O}/versions/0", 422, 42202, VERSION_WORDS),
        (f"{O}/versions/-2", 422, 42202, None),
        (f"{O}/versions/abc", 422, 42202, None),
        (f"{O}/versions/2147483648", 422, 42202, None),
        (f"{O}/versions/%D9%A1", 422, 42202, None),
        ("/schemas/ids/999", 404, 40403, "Schema 999 not found"),
        ("/schemas/ids/abc", 404, 40403, "Schema not found"),
        ("/schemas/ids/-1/schema", 404, 40403, None),
        ("/schemas/ids/999/subjects", 404, 40403, None),
        ("/schemas/ids/99999999999999999999/versions", 404, 40403, None),
        (f"{O}/metadata?key=owner&value=nobody", 404, 40403, None),
        ("/subjects/nope/metadata", 404, 40401, None),
        ("/schemas/guids/nope", 404, 40403, None),
        ("/config/nope", 404, 40401, None),
        ("/mode/nope", 404, 40409, "Subject 'nope' does not have subject-level mode configured"),
        ("/nope", 404, 404, "HTTP 404 Not Found"),
        ("/subjects/", 404, 404, None),
        ("/subjects?limit=x", 400, 400, None),
        ("/subjects?offset=-1", 400, 400, None),
        ("/schemas?latestOnly=maybe", 400, 400, None),
    ],
)  # fmt: skip
def test_errors_have_the_codes_of_confluent(
    server: Served, path: str, status: int, code: int, message: str | None
) -> None:
    reply = server.get(path)
    assert (reply.status, reply.code) == (status, code)
    assert reply.headers["content-type"] == REGISTRY_JSON
    assert set(reply.value) == {"error_code", "message"}
    assert message is None or reply.value["message"] == message


@pytest.mark.parametrize("version", ["latest", "LATEST", "-1", "1", "01", "%20latest"])
def test_the_latest_version_has_many_names(server: Served, version: str) -> None:
    assert server.get(f"{O}/versions/{version}").status == 200


def test_schemas_are_found_by_id(server: Served) -> None:
    number = ALL.index(ORDERS) + 1
    text = (server.folder / "orders-created.json").read_text()
    path = f"/schemas/ids/{number}"
    assert server.get(path).value == {"schemaType": "JSON", "schema": text}
    assert server.get(f"{path}?subject=topic-value&fetchMaxId=true").value["maxId"] == len(ALL)
    assert server.get(f"{path}/schema").body.decode() == text
    assert server.get(f"{path}/subjects").value == [ORDERS]
    assert server.get(f"{path}/versions").value == [{"subject": ORDERS, "version": 1}]


def test_every_schema_is_listed(server: Served) -> None:
    rows = server.get("/schemas?latestOnly=true").value
    assert [row["subject"] for row in rows] == ALL
    assert server.get("/schemas?offset=1&limit=1").value == rows[1:2]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/schemas/types", ["JSON"]),
        ("/contexts?offset=0&limit=-1", ["."]),
        ("/config", {"compatibilityLevel": "BACKWARD"}),
        (f"/config/{encode(ORDERS)}", {"compatibilityLevel": "BACKWARD"}),
        ("/config/nope?defaultToGlobal=true", {"compatibilityLevel": "BACKWARD"}),
        ("/mode", {"mode": "READONLY"}),
        (f"/mode/{encode(ORDERS)}", {"mode": "READONLY"}),
        ("/mode/nope?defaultToGlobal=true", {"mode": "READONLY"}),
        (f"{O}/versions/1/referencedby", []),
        ("/associations/resources/-/orders?resourceType=topic&associationType=value", []),
    ],
)
def test_settings_are_told(server: Served, path: str, value: Any) -> None:
    reply = server.get(path)
    assert (reply.status, reply.value) == (200, value)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", O),
        ("DELETE", f"{O}/versions/1?permanent=true"),
        ("PUT", "/config"),
        ("PUT", f"/config/{encode(ORDERS)}"),
        ("DELETE", f"/config/{encode(ORDERS)}"),
        ("PUT", "/mode"),
        ("DELETE", f"/mode/{encode(ORDERS)}"),
    ],
)
def test_writes_are_not_permitted(server: Served, method: str, path: str) -> None:
    reply = server.ask(method, path, {"compatibility": "NONE"})
    assert (reply.status, reply.code) == (422, 42205)


def test_registering_a_new_schema_is_not_permitted_but_a_known_one_has_its_id(
    server: Served,
) -> None:
    assert server.candidate(f"{O}/versions?normalize=False", {"type": "object"}).code == 42205
    assert server.candidate("/subjects/new/versions", {}).code == 42205
    text = (server.folder / "orders-created.json").read_text()
    assert server.candidate(f"{O}/versions", text).value["id"] == ALL.index(ORDERS) + 1


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/subjects", "GET, HEAD"),
        ("PATCH", O, "DELETE, POST"),
        ("GET", O, "DELETE, POST"),
        ("POST", "/schemas/ids/1", "GET, HEAD"),
        ("GET", f"/compatibility{O}/versions/latest", "POST"),
        ("OPTIONS", "/config", "DELETE, GET, HEAD, PUT"),
    ],
)
def test_a_method_that_a_path_lacks_is_405(
    server: Served, method: str, path: str, allowed: str
) -> None:
    reply = server.ask(method, path)
    assert (reply.status, reply.code, reply.headers["allow"]) == (405, 405, allowed)


def test_head_answers_without_a_body(server: Served) -> None:
    reply = server.ask("HEAD", "/subjects")
    assert (reply.status, reply.body) == (200, b"")


def test_lookup_finds_the_same_schema_however_it_is_written(server: Served) -> None:
    schema = json.loads((server.folder / "orders-created.json").read_bytes())
    reply = server.candidate(f"{O}?normalize=False&deleted=False", schema)
    found = reply.value
    assert server.get(f"/schemas/guids/{found.pop('guid')}/ids").value == [found["id"]]
    assert found == server.get(f"{O}/versions/1").value
    assert server.candidate(O, {**schema, "title": "other"}).code == 40403
    assert server.candidate("/subjects/nope", schema).code == 40401


def test_lookup_finds_a_schema_with_foreign_references_as_file_and_as_served(
    server: Served,
) -> None:
    path = f"/subjects/{encode(MONEY)}"
    served = server.get(f"{path}/versions/1").value
    assert server.candidate(path, SCHEMAS[MONEY][1]).value["id"] == served["id"]
    assert server.candidate(path, served["schema"]).value["id"] == served["id"]


@pytest.mark.parametrize("where", ["versions/latest", "versions/1", "versions"])
def test_a_candidate_is_judged_against_a_version_and_against_all(
    server: Served, where: str
) -> None:
    path = f"/compatibility{O}/{where}?normalize=False&verbose=False"
    text = (server.folder / "orders-created.json").read_text()
    assert server.candidate(path, text).value == {"is_compatible": True}
    assert server.candidate(path, BREAKING).value == {"is_compatible": False}


def test_verbose_messages_tell_why_and_show_a_witness(server: Served) -> None:
    reply = server.candidate(f"/compatibility{O}/versions/latest?verbose=true", BREAKING)
    messages = reply.value["messages"]
    assert any(re.match(r'\{errorType:"\w', one) for one in messages)
    assert any("/properties/order_id" in one for one in messages)
    witness = next(one for one in messages if one.startswith("{witness: '"))
    assert isinstance(json.loads(witness[11:-2])["order_id"], int)
    assert "{witnessAcceptedBy: 'old', witnessRefusedBy: 'new'}" in messages
    assert messages[-3] == "{oldSchemaVersion: 1}"
    assert messages[-1] == "{validateFields: 'false', compatibility: 'BACKWARD'}"


def test_a_compatible_candidate_has_no_messages(server: Served) -> None:
    schema = json.loads((server.folder / "orders-created.json").read_bytes())
    schema["properties"]["gift"] = {"type": "boolean"}
    reply = server.candidate(f"/compatibility{O}/versions?verbose=true", schema)
    assert reply.value == {"is_compatible": True}


def test_an_unknown_subject_is_broken_by_nothing(server: Served) -> None:
    assert server.candidate("/compatibility/subjects/new/versions/latest", {}).value == {
        "is_compatible": True
    }
    assert server.candidate("/compatibility/subjects/new/versions", {}).status == 200
    assert server.candidate("/compatibility/subjects/new/versions/1", {}).code == 40402
    assert server.candidate(f"/compatibility{O}/versions/7", {}).code == 40402
    assert server.candidate(f"/compatibility{O}/versions/x", {}).code == 42202


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b"{}", b'{"schema": 1}', b'{"schema": {}}', b'{"schema": ""}',
        b'{"schema": "nope"}', b'{"schema": "[]"}', b'{"schema": "1"}', b"\xff\xfe",
        b'{"schema": "{}", "schema": "{}"}',
        b'{"schema": "{\\"type\\": \\"strnig\\"}"}',
        b'{"schema": "{\\"$ref\\": \\"#/nowhere\\"}"}',
        b'{"schema": "{\\"$schema\\": \\"urn:unknown\\"}"}',
        b'{"schema": "{}", "schemaType": "XML"}',
        b'{"schema": "{}", "schemaType": ["JSON"]}',
        b'{"schema": "{}", "references": [{"name": "a", "subject": "b", "version": 1}]}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", [O, f"{O}/versions", f"/compatibility{O}/versions"])
def test_a_candidate_that_is_no_schema_is_42201(server: Served, path: str, body: bytes) -> None:
    reply = server.ask("POST", path, body)
    assert (reply.status, reply.code) == (422, 42201)
    assert reply.value["message"]


@pytest.mark.parametrize("kind", ["AVRO", "PROTOBUF"])
@pytest.mark.parametrize("path", [O, f"{O}/versions", f"/compatibility{O}/versions/latest"])
def test_a_schema_type_that_is_not_served_is_42201(server: Served, path: str, kind: str) -> None:
    reply = server.ask("POST", path, {"schema": '"string"', "schemaType": kind})
    assert (reply.status, reply.code) == (422, 42201)
    assert f"Invalid schema type {kind}" in reply.value["message"]


def test_the_page_can_compare_with_changes_and_witness(server: Served) -> None:
    told = server.candidate(f"/catalog/{encode(ORDERS)}/compare", BREAKING).value
    assert (told["verdict"], told["level"], told["identical"]) == ("breaking", "BACKWARD", False)
    assert told["changes"]
    assert json.loads(told["witness"])
    assert server.candidate("/catalog/nope/compare", {}).code == 40401


def test_the_catalog_has_owners_fields_and_marks(server: Served) -> None:
    rows = {row["subject"]: row for row in server.get("/catalog.json").value["subjects"]}
    assert rows[USERS]["owner"] == "identity"
    marked = {one["path"]: one["sensitive"] for one in rows[USERS]["fields"] if one["sensitive"]}
    assert marked == {
        "email": "email",
        "phone": "yes",
        "profile.full_name": "yes",
        "profile.tckn": "national_id",
        "addresses[].line": "yes",
    }


def test_the_root_is_a_page_for_people_and_an_empty_object_for_clients(server: Served) -> None:
    page = server.get("/", accept="text/html,*/*")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert server.get("/").body == page.body
    assert server.get("/", accept=REGISTRY_JSON).value == {}


def test_the_page_fetches_nothing_from_elsewhere(server: Served) -> None:
    assert not re.search(rb"https?://|//[a-z]+\.|@import|src=", server.get("/").body)


def test_metrics_are_prometheus_text(server: Served) -> None:
    server.get("/subjects")
    text = server.get("/metrics").body.decode()
    sample = re.compile(r'tallystick_\w+(\{(\w+="[^"\\\n]*",?)+\})? -?[0-9.e+-]+')
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(sample.fullmatch(line) for line in lines)
    assert re.search(r'requests_total\{method="GET",route="/subjects",status="200"\} [1-9]', text)
    assert f"tallystick_registry_subjects {len(ALL)}" in lines
    families = re.findall(r"# TYPE (\S+)", text)
    assert len(families) == len(set(families))


def test_health_is_told(server: Served) -> None:
    health = server.get("/healthz").value
    assert (health["status"], health["error"], health["subjects"]) == ("ok", "", len(ALL))
