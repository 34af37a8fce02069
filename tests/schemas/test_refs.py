"""One resolver for all verbs: what a reference means depends on no order, and leads back home."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest

from tallystick.core.errors import Rejected
from tallystick.schemas.bundle import bundle
from tallystick.schemas.catalog import Catalog, bundled, locate, parse_catalog
from tallystick.schemas.check import Checked, check_registry
from tallystick.schemas.refs import CONSTRAINING, Document, is_alias
from tallystick.schemas.validate import compile_entry

MONEY = {"$id": "https://e.org/money", "type": "integer"}
BY_ID = {
    "money.json": MONEY,
    "order.json": {"properties": {"total": {"$ref": "https://e.org/money"}}},
}
BY_RELATIVE_ID = {
    "money.json": MONEY,
    "order.json": {
        "$id": "https://e.org/order", "properties": {"total": {"$ref": "money"}},
    },
}  # fmt: skip
BY_URN = {
    "order.json": {
        "$id": "urn:e:order", "properties": {"total": {"$ref": "#/definitions/m"}},
        "definitions": {"m": {"type": "integer"}},
    },
}  # fmt: skip
UNLISTED = {  # money.json is in no row: it is known only after bill.json has been followed
    "bill.json": {"$ref": "x/money.json"},
    "order.json": {"properties": {"total": {"$ref": "https://e.org/money"}}},
    "x/money.json": MONEY,
}


def manifest(paths: tuple[str, ...]) -> bytes:
    rows = [{"urn": f"urn:babel:{path[:-5]}:made", "schema": path} for path in paths]
    return json.dumps({"schemas": rows}).encode()


def read(files: dict[str, Any], paths: tuple[str, ...]) -> tuple[Catalog, Checked]:
    def give(path: str) -> bytes:
        if path not in files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return json.dumps(files[path], indent=1).encode()

    return parse_catalog(manifest(paths), give), check_registry(manifest(paths), give)


@pytest.mark.parametrize("files", [BY_ID, BY_RELATIVE_ID, BY_URN, UNLISTED])
def test_what_a_reference_means_depends_on_no_order(files: dict[str, Any]) -> None:
    listed = [path for path in files if "/" not in path]
    for paths in permutations(listed):
        catalog, checked = read(files, paths)
        assert checked.faults == ()
        _, checker = compile_entry(catalog, "urn:babel:order:made")
        assert checker.is_valid({"total": 1})
        assert not checker.is_valid({"total": "1"})


def test_two_files_of_one_id_are_a_fault_for_every_verb() -> None:
    files = {
        "a.json": {"type": "object", "$id": "https://e.org/a"},
        "b.json": {"$id": "https://e.org/a"},
    }

    def give(path: str) -> bytes:
        return json.dumps(files[path], indent=1).encode() if path in files else b""

    text = manifest(("a.json", "b.json"))
    with pytest.raises(
        Rejected, match=r"b\.json:2: the \$id 'https://e.org/a' already belongs to a\.json"
    ):
        parse_catalog(text, give)
    found = [one for one in check_registry(text, give).faults if one.rule == "schema.id"]
    assert [(one.file, one.line, one.pointer) for one in found] == [("b.json", 2, "/$id")]


@pytest.mark.parametrize("reference", ["http://[", "file:///etc/passwd", "//[x", "urn:e:none"])
def test_a_reference_that_names_nothing_is_rejected_where_it_stands(reference: str) -> None:
    with pytest.raises(Rejected) as caught:
        read({"a.json": {"items": {"$ref": reference}}}, ("a.json",))
    assert caught.value.pointer == "/items/$ref"
    assert caught.value.message.startswith("a.json:3: ")


def test_a_place_of_a_bundle_leads_back_to_its_file() -> None:
    files = {
        "a.json": {"properties": {"m": {"$ref": "b.json#/definitions/m"}}},
        "b.json": {"definitions": {"m": {"properties": {"x~/": {"$ref": "c.json"}}}}},
        "c.json": {"type": "string"},
    }
    catalog, _ = read(files, ("a.json",))
    held = bundled(catalog, "urn:babel:a:made")
    for pointer, place in {
        "/properties/m": ("a.json", 3, "/properties/m"),
        "/properties/m/properties/x~0~1": ("b.json", 5, "/definitions/m/properties/x~0~1"),
        "/properties/m/properties/x~0~1/type": ("c.json", 2, "/type"),
        "/properties/m/required": ("b.json", 3, "/definitions/m"),
        "/definitions/c/type": ("c.json", 2, "/type"),
    }.items():
        assert locate(catalog, held, pointer) == place


def test_a_schema_that_refers_to_nothing_else_is_not_copied() -> None:
    schema = {"$ref": "#/definitions/m", "definitions": {"m": {"type": "string"}}}
    held = bundle(Document("a.json", schema), {})
    assert held.schema is schema
    assert held.home_of("/type") == ("a.json", "/definitions/m/type")


def test_a_malformed_file_is_named_even_when_another_refers_to_it() -> None:
    files = {"a.json": {"$ref": "b.json"}, "b.json": {"properties": {"x": {"type": "strnig"}}}}
    catalog, checked = read(files, ("a.json",))
    with pytest.raises(Rejected, match=r"^b\.json:4: .*strnig") as caught:
        compile_entry(catalog, "urn:babel:a:made")
    assert caught.value.pointer == "/properties/x/type"
    assert [(one.file, one.line) for one in checked.faults] == [("b.json", 4)]


@pytest.mark.parametrize("name", ["deprecated", "readOnly", "writeOnly", "x-owner", "description"])
def test_what_only_describes_leaves_a_reference_alone(name: str) -> None:
    assert is_alias({"$ref": "#/$defs/a", name: True}, "2020-12")


@pytest.mark.parametrize("name", sorted(CONSTRAINING - {"$ref"}))
def test_what_constrains_stands_beside_a_reference_unless_the_dialect_ignores_it(name: str) -> None:
    schema = {"$ref": "#/$defs/a", name: {}}
    assert (is_alias(schema, "2019-09"), is_alias(schema, "draft-07")) == (False, True)
