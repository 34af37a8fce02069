"""Laws of the registry that its impostors break: references, moves, fields, names and masks."""

from __future__ import annotations

import json
from typing import Any

from tallystick.core.errors import TallystickError
from tallystick.schemas import (
    align,
    mask,
    moves,
    patterns,
    pii_names,
    pii_values,
    refs,
    removals,
    validate,
)
from tallystick.schemas.catalog import parse_catalog
from tests.schemas.test_history import Trees, rows
from tests.schemas.test_removals import GONE, MOVED

TEXT, COUNT = {"type": "string"}, {"type": "integer"}


def references_hold() -> bool:
    joined = {
        ("urn:e:a", "#/b"): ("urn:e:a", "/b"),
        ("https://e.org/a", "b#c"): ("https://e.org/b", "c"),
        ("file:///x/a.json", ""): ("file:///x/a.json", ""),
        ("file:///x/a.json", "http://["): ("http://[", ""),
    }
    try:
        if any(refs.resolve(*given) != found for given, found in joined.items()):
            return False
    except ValueError:
        return False
    files = {
        "a.json": {"$id": "https://e.org/a", "items": {"$ref": "b"}},
        "b.json": {"$id": "https://e.org/b"},
        "c.json": {"$id": "https://e.org/b"},
        "d.json": {"$ref": "file:///etc/passwd"},
    }
    library = refs.Library({path: refs.Document(path, one) for path, one in files.items()})
    faults = [(path, fault.code) for path, fault in refs.complete(library, lambda *_: None)]
    return (
        faults == [("c.json", "schema.id"), ("d.json", "schema.ref")]
        and list(refs.links(library["a.json"], library)) == ["b.json"]
        and _is_found_late()
    )


def _is_found_late() -> bool:
    """An `$id` that another reference leads to is found, though it is asked for first."""
    files = {"a.json": {"$id": "https://e.org/a", "items": {"$ref": "b"}},
             "z.json": {"$ref": "x/b.json"}, "x/b.json": {"$id": "https://e.org/b"}}  # fmt: skip

    def read(path: str) -> bytes:
        if path not in files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return json.dumps(files[path]).encode()

    manifest = {"schemas": [{"urn": f"urn:{one}", "schema": f"{one}.json"} for one in "az"]}
    try:
        return len(parse_catalog(json.dumps(manifest), read).documents) == len(files)
    except TallystickError:
        return False


def moves_hold() -> bool:
    two: dict[str, bytes] = {"r.json": rows("1"), "a/r.json": rows("2", "3")}
    cases: tuple[tuple[dict[str, bytes], dict[str, bytes], dict[str, tuple[str, str]]], ...] = (
        ({"a/r.json": rows("1", "2")}, {"a/r.json": rows("1")}, {"a/r.json": ("1", "")}),
        ({"a/r.json": rows("1")}, {"a/r.json": rows("1")}, {}),
        (two, {"r.json": rows("1")}, {}),
        (two, {"r.json": rows("1", "2")}, {"a/r.json": ("", "23")}),
        (two, {**two, "r.json": rows("1", "4"), "a/r.json": rows("3")}, {}),
        (two, {"r.json": rows("1", "2"), "a/r.json": rows("4")}, {"a/r.json": ("4", "2")}),
        ({"r.json": b"{", "a/r.json": rows("2")}, {}, {}),
        ({"r.json": b"{}", "a/x.json": rows("2")}, {}, {"a/x.json": ("", "2")}),
        ({"a/r.json": b"{"}, {}, {"a/r.json": ("", "")}),
        ({"a/x.json": b"{"}, {}, {}),
    )
    joined = moves.Move(frozenset("1"), frozenset("2"))
    kept = {beside: {urn for urn in "123" if moves.is_moved(joined, urn, frozenset(beside))}
            for beside in ("", "3", "2")}  # fmt: skip
    return kept == {"": {"2", "3"}, "3": {"2"}, "2": set()} and all(
        moves.find_moves(Trees(before, after), "1", "", "r.json")
        == {path: moves.Move(*map(frozenset, move)) for path, move in found.items()}
        for before, after, found in cases
    )


def fields_hold() -> bool:
    def fields(**held: Any) -> dict[str, Any]:
        return {"type": "object", "properties": held}

    texts = {"type": "object", "additionalProperties": TEXT}
    patterned = {**fields(), "patternProperties": {"^b": TEXT}}
    wrapped: dict[str, Any] = {"anyOf": [{"type": "null"}, fields(a=TEXT, b=COUNT)]}
    cases: tuple[tuple[Any, Any, set[str], set[str]], ...] = (
        (fields(a=TEXT), fields(a=TEXT, b=COUNT), {"/properties/b"}, set()),
        (fields(a=TEXT), fields(b=COUNT), {"/properties/b"}, {"/properties/a"}),
        (fields(), fields(b=False), set(), set()),
        (fields(), {**fields(b=COUNT), "propertyNames": {"maxLength": 0}}, set(), set()),
        (fields(), {**fields(b=COUNT), "patternProperties": {"b": TEXT}}, set(), set()),
        (texts, {**texts, **fields(b=COUNT)}, set(), set()),
        (patterned, {**patterned, **fields(b={"type": ["string", "null"]})}, set(), set()),
        ({**fields(), "required": ["b"]}, fields(b=COUNT), set(), set()),
        (fields(a=TEXT), wrapped, {"/anyOf/1/properties/b"}, set()),
        (fields(bc=TEXT), {"anyOf": [patterned]}, set(), set()),
        (_beside(fields(a=TEXT)), _beside(fields(a=TEXT, b=TEXT)), {"/properties/b"}, set()),
    )
    for old, new, added, removed in cases:
        found = align.align_fields(old, new)
        if (set(found.added), set(found.removed)) != (added, removed):
            return False
    return True


def _beside(schema: dict[str, Any]) -> dict[str, Any]:
    """Put a schema beside a reference, where that counts."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "$ref": "#/$defs/base", "$defs": {"base": {}}, **schema}


def removals_hold() -> bool:
    gone = all(removals.find_removals(old, new).pointers == (place,) for old, new, place in GONE)
    moved = any(removals.find_removals(old, new).pointers for old, new in MOVED)
    return gone and not moved


def names_hold() -> bool:
    pii_names.words_of.cache_clear()
    pii_names.name_kind.cache_clear()
    try:
        personal = (
            "useremail",
            "homephones",
            "phoneno2",
            "mac_address",
            "is_telefonu",
            "kimlikno",
        )
        harmless = ("emailverified", "saxophone", "mac", "isemail", "addressbook")
        return all(map(pii_names.name_kind, personal)) and not any(
            map(pii_names.name_kind, harmless)
        )
    finally:
        pii_names.words_of.cache_clear()
        pii_names.name_kind.cache_clear()


def masks_hold() -> bool:
    values = {4111111111111111: "card", 4111111111111112: "", 10000000146.0: "national_id", 1.5: ""}
    if any(pii_values.value_kind(value) != kind for value, kind in values.items()):
        return False
    schema = {"properties": {"a": {}, "b": TEXT, "n": COUNT, "e": {"enum": ["x"]}, "t": True}}
    value = {"a": "text", "b": "text", "n": 4111111111111111, "e": "x", "t": False, "u": [1]}
    found = {one.path for one in mask.plan_payload(schema, value)}
    kept = {one.path for one in mask.plan_payload(schema, value, mask.REFERENCE)}
    below = {"not": {"properties": {"x": {"x-gdpr-sensitive": True}}}}
    kept |= {one.path for one in mask.plan_payload(below, "text", mask.REFERENCE)}
    return found == {("a",), ("n",), ("t",), ("u",)} and kept == set()


def envelopes_hold() -> bool:
    one: dict[str, Any] = {"job": "urn:a", "data": {}}
    cases: tuple[tuple[Any, str, bool], ...] = (
        (one, "urn:a", True), (one, "urn:b", False), ({**one, "meta": {}}, "urn:b", True),
        ({"job": "urn:a"}, "urn:a", False), ([], "urn:a", False),
    )  # fmt: skip
    return all(validate.is_wrapped(message, urn) is found for message, urn, found in cases)


def patterns_hold() -> bool:
    patterns._weight.cache_clear()
    try:
        light = ("^[^<>]{0,20000}$", r"^\p{L}{1,255}$", "^[a-z]+(?=x)", "^[0-9a-f]{8}-[0-9a-f]{4}$")
        heavy = ("[^<>]{0,20000}<$", "^[^<>]{0,20000}x$", r"(?=a).{1,2000}b")
        weights = [patterns.weigh({"items": {"pattern": one}}) for one in heavy]
        both = patterns.weigh({"pattern": heavy[0], "patternProperties": {heavy[1]: {}}})
    finally:
        patterns._weight.cache_clear()
    long = {"a": ["x" * 400, {"y" * 400: 1}]}
    return (
        not any(patterns.weigh({"pattern": one}) for one in light)
        and weights[0] == weights[1] == 32 << 20
        and 0 < weights[2] <= 32 << 20
        and both == 2 * weights[0]
        and patterns.is_long(long, 20 << 20)
        and not patterns.is_long(long, 10 << 20)
        and not patterns.is_long("x" * 1_000_000, 0)
    )


LAWS = (
    references_hold, moves_hold, fields_hold, removals_hold, names_hold, masks_hold, envelopes_hold,
    patterns_hold,
)  # fmt: skip
