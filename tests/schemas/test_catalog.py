from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tallystick.core.errors import Rejected, Unavailable
from tallystick.schemas.catalog import load_catalog, parse_catalog, self_contained

EXAMPLE = Path(__file__).parents[2] / "examples" / "registry"


def registry(files: dict[str, Any]) -> Any:
    """Give a reader over files held in memory."""

    def read(path: str) -> bytes:
        if path not in files:
            raise FileNotFoundError(2, "no such file", path)
        content = files[path]
        return content if isinstance(content, bytes) else json.dumps(content).encode()

    return read


def one(path: str = "a.json", **more: Any) -> str:
    return json.dumps({"schemas": [{"urn": "urn:a", "schema": path, **more}]})


def test_the_example_registry_loads_with_owner_and_line() -> None:
    catalog = load_catalog(EXAMPLE)
    entry = catalog.entries["urn:babel:users:registered"]
    assert (entry.owner, entry.status, entry.line) == ("identity", "active", 10)
    assert entry.text == (EXAMPLE / entry.path).read_text()
    assert list(catalog.entries) == ["urn:babel:orders:created", "urn:babel:users:registered"]


@pytest.mark.parametrize(
    ("manifest", "pointer", "line"),
    [
        ("[\n]", "", 1),
        ('{"schemas": {}}', "/schemas", 1),
        ('{"schemas": [\n1]}', "/schemas/0", 2),
        ('{"schemas": [\n{"urn": "", "schema": "a"}]}', "/schemas/0/urn", 2),
        ('{"schemas": [{"urn": "u",\n "schema": 3}]}', "/schemas/0/schema", 2),
        ('{"schemas": [{"urn": "u",\n\n "schema": "../a.json"}]}', "/schemas/0/schema", 3),
        ('{"schemas": [{"urn": "u", "schema": "/etc/passwd"}]}', "/schemas/0/schema", 1),
        ('{"schemas": [{"urn": "u", "schema": "C:\\\\a"}]}', "/schemas/0/schema", 1),
        ('{"schemas": [{"urn": "u", "schema": "a", "ownr": "x"}]}', "/schemas/0/ownr", 1),
        ('{"schemas": [{"urn": "u", "schema": "a", "examples": "x"}]}', "/schemas/0/examples", 1),
        ('{"schemas": [{"urn": "u", "schema": "a.json"},\n{"urn": "u", "schema": "a.json"}]}',
         "/schemas/1/urn", 2),
    ],
)  # fmt: skip
def test_a_bad_manifest_names_file_line_and_pointer(manifest: str, pointer: str, line: int) -> None:
    with pytest.raises(Rejected) as caught:
        parse_catalog(manifest, registry({"a.json": True}), "r.json")
    assert caught.value.pointer == pointer
    assert caught.value.message.startswith(f"r.json:{line}: ")
    assert "tally schema check" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "line", "code"),
    [
        (b'{"type": "object",\n}', 2, "json.syntax"),
        (b'{"a": 1,\n"b": {"a": 1},\n "a": 2}', 3, "json.duplicate"),
        (b'{"a":\n NaN}', 2, "json.number"),
        (b'{"a":\n 1e999}', 2, "json.number"),
        (b"\xef\xbb\xbf{}", 1, "json.bom"),
        (b'{\n"a": "\xff"}', 2, "json.encoding"),
        (b'{\n"a": "\\ud800"}', 2, "json.surrogate"),
        (b"[" * 100_000, 1, "json.depth"),
        (b"3", 1, "schema.shape"),
    ],
)  # fmt: skip
def test_a_schema_that_is_not_exact_json_is_rejected_with_its_line(
    text: bytes, line: int, code: str
) -> None:
    with pytest.raises(Rejected) as caught:
        parse_catalog(one(), registry({"a.json": text}))
    assert (caught.value.code, caught.value.message.split(":")[1]) == (code, str(line))
    assert caught.value.hint, "and it is said what to do"


def test_an_unknown_dialect_is_rejected() -> None:
    with pytest.raises(Rejected, match="unknown"):
        parse_catalog(one(), registry({"a.json": {"$schema": "http://json-schema.org/draft-03"}}))


def test_a_missing_file_is_unavailable_and_names_the_line() -> None:
    with pytest.raises(Unavailable, match=r"registry\.json:1: urn:a: a\.json"):
        parse_catalog(one(), registry({}))


def test_a_symbolic_link_may_not_lead_out(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("{}")
    home = tmp_path / "registry"
    home.mkdir()
    (home / "registry.json").write_text(one("link.json"))
    (home / "link.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(Rejected, match="a symbolic link points outside"):
        load_catalog(home)
    (home / "link.json").unlink()
    (home / "real.json").write_text('{"type": "string"}')
    (home / "link.json").symlink_to(home / "real.json")
    assert load_catalog(home).entries["urn:a"].schema == {"type": "string"}


@pytest.mark.parametrize("ref", ["http://example.com/a.json", "https://10.0.0.1/x#/y"])
def test_a_remote_reference_is_never_fetched(ref: str) -> None:
    with pytest.raises(Rejected, match="never fetched") as caught:
        parse_catalog(one(), registry({"a.json": {"properties": {"x": {"$ref": ref}}}}))
    assert caught.value.pointer == "/properties/x/$ref"


def test_a_reference_may_not_leave_the_folder() -> None:
    with pytest.raises(Rejected, match=r"s/a\.json:1: /\$ref: .* points outside"):
        parse_catalog(one("s/a.json"), registry({"s/a.json": {"$ref": "../../etc/passwd"}}))


@pytest.mark.parametrize("ref", ["file:///etc/passwd", "FILE:///b.json#/x", "file:b.json"])
def test_a_reference_may_not_name_a_file_of_the_machine(ref: str) -> None:
    text = f'{{"properties": {{\n"x": {{"$ref": "{ref}"}}}}}}'
    with pytest.raises(Rejected, match=r"^a\.json:2: .* never read") as caught:
        parse_catalog(one(), registry({"a.json": text.encode(), "b.json": {}}))
    assert caught.value.pointer == "/properties/x/$ref"
    assert caught.value.hint


def test_a_reference_to_a_file_that_is_not_there_is_named() -> None:
    text = b'{"properties": {\n"x": {"$ref": "/c%20d.json"}}}'
    with pytest.raises(Unavailable, match=r"^a\.json:2: /properties/x/\$ref: c d\.json: "):
        parse_catalog(one(), registry({"a.json": text}))


def test_references_to_other_files_are_brought_in() -> None:
    files = {
        "s/a.json": {
            "$id": "https://example.com/s/a.json",
            "properties": {
                "m": {"$ref": "common/money.json#/definitions/money"},
                "n": {"$ref": "https://example.com/other"},
                "o": {"$ref": "#tag"},
                "self": {"$ref": "#"},
            },
            "definitions": {"t": {"$id": "#tag", "type": "null"}},
        },
        "s/common/money.json": {
            "definitions": {"money": {"allOf": [{"$ref": "#/definitions/base"}]}, "base": {}},
        },
        "b.json": {"$id": "https://example.com/other", "type": "string"},
    }
    manifest = json.dumps(
        {"schemas": [{"urn": "a", "schema": "s/a.json"}, {"urn": "b", "schema": "b.json"}]}
    )
    schema = self_contained(parse_catalog(manifest, registry(files)), "a")
    assert schema["properties"] == {
        "m": {"$ref": "#/definitions/s.common.money/definitions/money"},
        "n": {"$ref": "#/definitions/b"},
        "o": {"$ref": "#/definitions/t"},
        "self": {"$ref": "#"},
    }
    money = schema["definitions"]["s.common.money"]
    assert money["definitions"]["money"] == {
        "allOf": [{"$ref": "#/definitions/s.common.money/definitions/base"}]
    }
    assert schema["definitions"]["b"] == {"type": "string"}


def test_a_dangling_reference_is_rejected_with_its_pointer() -> None:
    files = {"a.json": {"items": {"$ref": "#/definitions/nope"}}}
    catalog = parse_catalog(one(), registry(files))
    with pytest.raises(Rejected) as caught:
        self_contained(catalog, "urn:a")
    assert caught.value.pointer == "/items/$ref"


def test_big_integers_in_a_schema_stay_exact() -> None:
    files = {"a.json": b'{"const": 123456789012345678901234567890}'}
    entry = parse_catalog(one(), registry(files)).entries["urn:a"]
    assert entry.schema["const"] == 123456789012345678901234567890
