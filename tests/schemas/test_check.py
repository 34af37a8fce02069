from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tallystick.core.errors import Rejected
from tallystick.schemas.check import Checked, check_registry
from tallystick.schemas.check_names import collisions, is_urn, kafka_topic, message_id, sqs_queue
from tallystick.schemas.compat import compare

if TYPE_CHECKING:
    from collections.abc import Callable

ENVELOPE = {"job": "urn:babel:a:one", "trace_id": "t", "data": {"n": 1}, "attempts": 0}


def check(files: dict[str, Any], *rows: dict[str, Any]) -> Checked:
    """Check a registry held in memory; one row for `a.json` when none is given."""
    manifest = {"schemas": rows or [{"urn": "urn:babel:a:one", "schema": "a.json"}]}

    def read(path: str) -> bytes:
        if path not in files:
            raise FileNotFoundError(2, "No such file or directory", path)
        content = files[path]
        return content if isinstance(content, bytes) else json.dumps(content).encode()

    return check_registry(json.dumps(manifest, indent=1).encode(), read, "registry.json")


def row(urn: str, schema: str = "a.json", **more: Any) -> dict[str, Any]:
    return {"urn": urn, "schema": schema, **more}


def rules(checked: Checked) -> list[tuple[str, int, str, str]]:
    return [(one.file, one.line, one.pointer, one.rule) for one in checked.faults]


def test_a_sound_registry_has_no_faults() -> None:
    checked = check({"a.json": {"type": "object"}})
    assert (checked.faults, checked.urns, checked.files) == ((), ("urn:babel:a:one",), 1)


@pytest.mark.parametrize(
    ("text", "line", "pointer", "rule", "words"),
    [
        (b'{\n"type": "strnig"}', 2, "/type", "schema.meta", "did you mean 'string'"),
        (b'{"properties": {\n"x": {"type": "blob"}}}', 2, "/properties/x/type", "schema.meta",
         "the types are"),
        (b'{"required":\n "a"}', 2, "/required", "schema.meta", "array"),
        (b'{"minLength":\n -1}', 2, "/minLength", "schema.meta", "minimum"),
        (b'{"pattern":\n\n "["}', 3, "/pattern", "schema.meta", "regex"),
        (b'{"definitions": {"unused": {"type":\n 3}}}', 2, "/definitions/unused/type",
         "schema.meta", "array"),
        (b'{\n"type" "x"}', 2, "", "schema.json", "delimiter"),
        (b'{"a": 1,\n"a": 2}', 2, "", "schema.json", "twice"),
        (b'{"$schema":\n "http://example.com/own"}', 1, "", "schema.json", "$schema"),
        (b'{"items":\n {"$ref": "#/definitions/gone"}}', 2, "/items/$ref", "schema.ref",
         "points to nothing"),
        (b'{"items":\n {"$ref": "https://example.com/x"}}', 2, "/items/$ref", "schema.ref",
         "never fetched"),
        (b'{"items": {"$schema":\n "https://json-schema.org/draft/2020-12/schema"}}', 2,
         "/items/$schema", "schema.mixed", "dialect"),
        (b'{"$ref":\n "a%00b.json"}', 2, "/$ref", "registry.path", "points outside"),
        (b'{"not": {"$ref":\n "../../etc/passwd"}}', 2, "/not/$ref", "registry.path",
         "points outside"),
        (b'{"items": {"$ref":\n "gone.json#/x"}}', 2, "/items/$ref", "schema.missing", "No such"),
        (b'{"$schema": "https://json-schema.org/draft/2020-12/schema",\n"pattern": "["}', 2,
         "/pattern", "schema.compile", "regex"),
        (b'{"type": "string",\n"examples": ["x",\n 5]}', 3, "/examples/1", "example", "string"),
    ],
)  # fmt: skip
def test_a_faulty_schema_is_named_with_line_and_pointer(
    text: bytes, line: int, pointer: str, rule: str, words: str
) -> None:
    checked = check({"a.json": text})
    assert [(one.line, one.rule) for one in checked.faults] == [(line, rule)]
    fault = checked.faults[0]
    assert fault.file == "a.json"
    assert fault.pointer in (pointer, "/$schema")
    assert words in fault.message
    assert checked.errors == 1


def test_every_fault_is_found_in_one_pass() -> None:
    files = {
        "a.json": {"properties": {"x": {"type": "strnig", "minLength": -1}}},
        "b.json": b"{",
        "c.json": {"$ref": "gone.json"},
    }
    checked = check(
        files, *(row(f"urn:babel:x:{name}", f"{name}.json") for name in ("a", "b", "c", "d"))
    )
    assert [fault.rule for fault in checked.faults] == [
        "schema.meta", "schema.meta", "schema.json", "schema.missing", "schema.missing",
    ]  # fmt: skip
    assert [fault.file for fault in checked.faults[-2:]] == ["c.json", "registry.json"]


def test_a_fault_in_a_shared_file_is_named_once_and_in_that_file() -> None:
    files = {
        "a.json": {"$ref": "common.json#/definitions/m"},
        "b.json": {"$ref": "common.json#/definitions/m"},
        "common.json": {"definitions": {"m": {"type": "nubmer"}}},
    }
    checked = check(files, row("urn:babel:x:a", "a.json"), row("urn:babel:x:b", "b.json"))
    assert [(fault.file, fault.pointer) for fault in checked.faults] == [
        ("common.json", "/definitions/m/type")
    ]


def test_a_long_chain_of_files_does_not_exhaust_the_stack() -> None:
    files: dict[str, Any] = {f"{at}.json": {"$ref": f"{at + 1}.json"} for at in range(3000)}
    files["3000.json"] = {"type": "strnig"}
    checked = check(files, row("urn:babel:x:a", "0.json"))
    assert [fault.file for fault in checked.faults] == ["3000.json"]


def test_a_misspelt_keyword_is_a_warning_and_an_extension_is_not() -> None:
    checked = check(
        {
            "a.json": {
                "minLenght": 3, "x-minLenght": 1, "confluent:tags": ["PII"], "owner": "me",
                "example": "as OpenAPI writes it",
            }
        }
    )  # fmt: skip
    assert [(fault.level, fault.pointer) for fault in checked.faults] == [("warning", "/minLenght")]
    assert checked.errors == 0


@pytest.mark.parametrize(
    ("urn", "well_formed"),
    [
        ("urn:babel:orders:created", True),
        ("urn:babel:orders:created.v2", True),
        ("URN:example:a%20b", True),
        ("orders:created", False),
        ("urn:babel", False),
        ("urn:babel:", False),
        ("urn:b:x", False),
        ("urn:babel:a b", False),
        ("urn:babel:ä", False),
        ("urn:babel:%zz", False),
        ("urn:babel:orders\n", False),
    ],
)
def test_a_urn_is_written_as_rfc_8141_says(urn: str, well_formed: bool) -> None:
    assert is_urn(urn) is well_formed
    levels = [fault.level for fault in check({"a.json": {}}, row(urn)).faults]
    if not well_formed:
        assert levels == ["error"]
    elif urn.lower() != urn or "%" in urn:
        assert levels == ["warning"]
    else:
        assert levels == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("urn:babel:a:b.c", "urn:babel:a:b_c"),
        ("urn:babel:a:b-c", "urn:babel:a:b.c"),
        ("urn:babel:a:b", "urn:babel:A:b"),
        ("urn:babel:a:" + "x" * 80 + "1", "urn:babel:a:" + "x" * 80 + "2"),
    ],
)
def test_urns_that_meet_in_a_derived_name_are_refused(first: str, second: str) -> None:
    checked = check({"a.json": {}}, row(first), row(second))
    meeting = [fault for fault in checked.faults if fault.rule == "urn.collision"]
    assert len(meeting) == 1
    assert (meeting[0].urn, meeting[0].pointer) == (second, "/schemas/1/urn")
    assert first in meeting[0].message


def test_urns_that_stay_apart_do_not_collide() -> None:
    urns = [f"urn:babel:orders:created.v{number}" for number in range(500)]
    assert list(collisions(urns)) == []


def test_derived_names_are_legal_for_what_they_name() -> None:
    urn = "urn:babel:orders:created.v2"
    assert message_id(urn) == "urn_babel_orders_created_v2"
    assert kafka_topic(urn) == "urn.babel.orders.created.v2"
    assert sqs_queue(urn) == "urn-babel-orders-created-v2"


@pytest.mark.parametrize(
    ("example", "pointer", "rule"),
    [
        ({**ENVELOPE, "data": {"n": "x"}}, "/data/n", "example"),
        ({"n": "x"}, "/n", "example"),
        ({**ENVELOPE, "job": "urn:babel:a:two"}, "/job", "example"),
        (b"{", "", "example"),
        (None, "", "example.missing"),
    ],
)
def test_an_example_that_the_manifest_names_must_be_valid(
    example: Any, pointer: str, rule: str
) -> None:
    files = {"a.json": {"properties": {"n": {"type": "integer"}}}}
    if example is not None:
        files["m.json"] = example
    checked = check(files, row("urn:babel:a:one", examples=["m.json"]))
    assert [(one.pointer, one.rule) for one in checked.faults] == [(pointer, rule)]


def test_a_good_example_may_be_an_envelope_or_bare_data() -> None:
    files = {"a.json": {"required": ["n"]}, "m.json": ENVELOPE, "bare.json": {"n": 2}}
    checked = check(files, row("urn:babel:a:one", examples=["m.json", "bare.json"]))
    assert (checked.faults, checked.examples) == ((), 2)


def test_every_fault_of_a_manifest_is_given_and_good_rows_are_checked() -> None:
    rows = [
        {"urn": "", "owner": 3},
        {"urn": "urn:babel:a:one", "schema": "a.json"},
        {"urn": "urn:babel:a:one", "schema": "../b.json"},
    ]
    text = json.dumps({"schemas": rows, "more": 1}).encode()
    checked = check_registry(text, _read_only(b'{"type": "strnig"}'))
    assert [one.pointer for one in checked.faults if one.rule == "manifest"] == [
        "/more", "/schemas/0/urn", "/schemas/0", "/schemas/0/owner",
        "/schemas/2/schema", "/schemas/2/urn",
    ]  # fmt: skip
    assert "schema.meta" in {one.rule for one in checked.faults}


def test_a_manifest_that_is_not_json_is_a_finding() -> None:
    checked = check_registry(b'{"schemas":\n [', lambda _: b"")
    assert rules(checked) == [("registry.json", 2, "", "manifest")]


def test_the_lock_names_every_urn_once() -> None:
    lock = b'{"ids": {\n"urn:babel:a:gone": 1,\n"urn:babel:a:one": 1}}'
    checked = check({"a.json": {}, "b.json": {}, "ids.lock": lock},
                    row("urn:babel:a:one"), row("urn:babel:a:two", "b.json"))  # fmt: skip
    assert [(one.line, one.rule, one.level) for one in checked.faults] == [
        (3, "ids.lock", "error"), (2, "ids.unknown", "warning"), (1, "ids.missing", "error"),
    ]  # fmt: skip
    broken = check({"a.json": {}, "ids.lock": b"{"})
    assert [one.rule for one in broken.faults] == ["ids.lock"]


def _read_only(schema: bytes) -> Callable[[str], bytes]:
    def read(path: str) -> bytes:
        if path != "a.json":
            raise FileNotFoundError(2, "No such file or directory", path)
        return schema

    return read


NEW = "https://json-schema.org/draft/2020-12/schema"
LATE = "https://json-schema.org/draft/2019-09/schema"


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"$defs": {"a": {"$id": "x"}, "b": {"$id": "x"}}}, "/$defs/b/$id"),
        ({"$id": "https://e.org/r", "$defs": {"a": {"$id": "r"}}}, "/$defs/a/$id"),
        ({"definitions": {"a": {"$id": "#x"}, "b": {"$id": "#x"}}}, "/definitions/b/$id"),
        ({"$schema": NEW, "$defs": {"a": {"$anchor": "q"}, "b": {"$anchor": "q"}}},
         "/$defs/b/$anchor"),
        ({"$schema": NEW, "$defs": {"a": {"$anchor": "q"}, "b": {"$dynamicAnchor": "q"}}},
         "/$defs/b/$dynamicAnchor"),
    ],
    ids=str,
)  # fmt: skip
def test_no_two_subschemas_of_a_file_share_a_name(schema: dict[str, Any], pointer: str) -> None:
    assert rules(check({"a.json": schema})) == [("a.json", 1, pointer, "schema.id")]
    with pytest.raises(Rejected, match="already"):
        compare(schema, schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": NEW, "$defs": {"a": {"$id": "x", "$anchor": "q"}, "b": {"$anchor": "q"}}},
        {"$schema": NEW, "$anchor": "q", "$dynamicAnchor": "q"},
        {"$id": "https://e.org/r", "definitions": {"a": {"$id": "#x"}, "b": {"$id": "#y"}}},
        {"$id": "a.json"},
    ],
    ids=str,
)
def test_a_name_may_stand_once_in_each_resource(schema: dict[str, Any]) -> None:
    assert check({"a.json": schema}).errors == 0
    assert compare(schema, schema).verdict == "compatible"


@pytest.mark.parametrize(
    ("schema", "pointers"),
    [
        ({"prefixItems": [{}], "dependentRequired": {"a": ["b"]}, "unevaluatedProperties": False},
         ["/prefixItems", "/dependentRequired", "/unevaluatedProperties"]),
        ({"properties": {"prefixItems": {"minContains": 1}}},
         ["/properties/prefixItems/minContains"]),
        ({"$schema": LATE, "prefixItems": [{}], "dependentRequired": {}}, ["/prefixItems"]),
        ({"$schema": NEW, "additionalItems": False, "prefixItems": [{}]}, ["/additionalItems"]),
        ({"$defs": {"a": {}}, "deprecated": True}, []),
    ],
    ids=str,
)  # fmt: skip
def test_a_keyword_of_another_dialect_is_a_warning(
    schema: dict[str, Any], pointers: list[str]
) -> None:
    faults = check({"a.json": schema}).faults
    assert [fault.pointer for fault in faults] == pointers
    assert {(fault.level, fault.rule) for fault in faults} <= {("warning", "schema.keyword")}


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("x-gdpr-sensitve", True, "schema.keyword"),
        ("x-gdpr-sensitive", 1, "schema.mark"),
        ("x-gdpr-sensitive", "", "schema.mark"),
        ("x-gdpr-sensitive", None, "schema.mark"),
        ("x-gdpr-sensitive", ["email"], "schema.mark"),
        ("x-gdpr-sensitive", True, ""),
        ("x-gdpr-sensitive", False, ""),
        ("x-gdpr-sensitive", "email", ""),
        ("x-owner", 1, ""),
    ],
)
def test_a_mark_that_marks_nothing_is_a_warning(name: str, value: Any, rule: str) -> None:
    faults = check({"a.json": {"properties": {"mail": {name: value}}}}).faults
    found = [(fault.pointer, fault.level, fault.rule) for fault in faults]
    assert found == ([(f"/properties/mail/{name}", "warning", rule)] if rule else [])


@pytest.mark.parametrize(
    ("schema", "is_empty"),
    [
        ({"type": "string", "enum": [1]}, True),
        ({"type": "integer", "minimum": 3, "maximum": 2}, True),
        ({"type": "object", "required": ["a"], "properties": {"a": False}}, True),
        ({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}, True),
        ({"properties": {"a": False}}, False),
        ({"type": "array", "items": False}, False),
        ({"pattern": "^(?=a)b", "type": "string"}, True),
    ],
    ids=str,
)
def test_a_schema_that_nothing_can_satisfy_is_a_warning(
    schema: dict[str, Any], is_empty: bool
) -> None:
    found = [(fault.level, fault.rule) for fault in check({"a.json": schema}).faults]
    assert found == ([("warning", "schema.empty")] if is_empty else [])


def test_a_schema_that_branches_at_every_level_is_checked_to_the_end() -> None:
    names = [f"n{at}" for at in range(30)]
    schema = {"type": "object", "properties": {name: {"$ref": "#"} for name in names}}
    assert check({"a.json": {**schema, "required": names[:3]}}).errors == 0
