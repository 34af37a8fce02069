from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tallystick.core.errors import Refused
from tallystick.schemas.asyncapi import aim_references, export_asyncapi, message_ids
from tallystick.schemas.asyncapi_bindings import BINDINGS
from tallystick.schemas.catalog import Catalog, load_catalog, parse_catalog

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "registry"
PARSER = "@asyncapi/parser@3.6.3"
URN = "urn:babel:x:a"
MODERN = "https://json-schema.org/draft/2020-12/schema"


def registry(files: dict[str, Any], *urns: str) -> Catalog:
    """Give a catalog of files held in memory; the first file is the schema of every URN."""
    rows = [{"urn": urn, "schema": next(iter(files))} for urn in urns or (URN,)]
    manifest = json.dumps({"schemas": rows})
    return parse_catalog(manifest, lambda path: json.dumps(files[path]).encode())


@pytest.fixture(scope="session")
def official() -> Path:
    """Install the official parser once, into the cache; without node the test fails."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "tallystick" / PARSER.replace("/", "-")
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "done").exists():
            shutil.rmtree(home / "node_modules", ignore_errors=True)
            (home / "package.json").write_text('{"private": true}')
            options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(home)]
            command = [str(ROOT / "tools" / "retry"), "npm", "install", *options, PARSER]
            subprocess.run(command, check=True, cwd=home)
            (home / "done").touch()
    return home


def ask(official: Path, tmp_path: Path, *documents: Any) -> list[dict[str, Any]]:
    paths = []
    for at, document in enumerate(documents):
        paths.append(tmp_path / f"{at}.json")
        paths[-1].write_text(json.dumps(document))
    script = Path(__file__).parent / "asyncapi_parser.mjs"
    command = ["node", str(script), str(official), *map(str, paths)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    return [json.loads(line) for line in answer.stdout.splitlines()]


AWKWARD: dict[str, Any] = {
    "s/a.json": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://example.com/s/a.json",
        "title": "Awkward",
        "properties": {
            "self": {"$ref": "#"},
            "money": {"$ref": "money.json#/definitions/money", "x-gdpr-sensitive": "bank"},
            "any": True,
            "none": False,
            "local": {"allOf": [{"$ref": "#/definitions/local"}], "x-gdpr-sensitive": True},
            "big": {"maximum": 12345678901234567890123},
        },
        "definitions": {"local": {"type": "object", "additionalProperties": False}},
    },
    "s/money.json": {"definitions": {"money": {"allOf": [{"$ref": "#/definitions/base"}]},
                                     "base": {"type": "string"}}},
}  # fmt: skip


def test_the_official_parser_accepts_every_kind_of_schema(official: Path, tmp_path: Path) -> None:
    odd = "urn:example:a/b~c%20d"
    modern = {"$schema": MODERN, "prefixItems": [{"$ref": "#/$defs/x", "title": "X"}],
              "$defs": {"x": {"x-gdpr-sensitive": True}}}  # fmt: skip
    catalogs = [
        load_catalog(EXAMPLE),
        registry(AWKWARD),
        registry({"m.json": modern}),
        registry({"t.json": True}, URN, odd),
        registry({"f.json": False}),
        registry({"e.json": {}}, "urn:babel:orders:created.v2", "x"),
        parse_catalog('{"schemas": []}', lambda _: b""),
    ]
    documents = [export_asyncapi(one, spec=spec) for one in catalogs for spec in ("3.0", "3.1")]
    answers = ask(official, tmp_path, *documents)
    assert len(answers) == len(documents)
    for document, answer in zip(documents, answers, strict=True):
        assert answer["errors"] == []
        assert answer["valid"]
        assert sorted(answer["channels"]) == sorted(document["channels"])
        urns = [channel["address"] for channel in document["channels"].values()]
        assert sorted(answer["messages"]) == sorted(urns)
        assert sorted(answer["operations"]) == sorted(document["operations"])


def test_the_oracle_refuses_a_dangling_reference(official: Path, tmp_path: Path) -> None:
    document = export_asyncapi(registry({"a.json": {"type": "string"}}))
    document["components"]["schemas"]["urn_babel_x_a"] = {"$ref": "#/definitions/gone"}
    [answer] = ask(official, tmp_path, document)
    assert not answer["valid"]


def test_a_message_is_the_envelope_around_the_registered_schema() -> None:
    document = export_asyncapi(load_catalog(EXAMPLE))
    message = document["components"]["messages"]["urn_babel_users_registered"]
    payload = message["payload"]["properties"]
    assert payload["job"]["const"] == "urn:babel:users:registered"
    assert payload["data"] == {"$ref": "#/components/schemas/urn_babel_users_registered"}
    assert message["headers"] == {"$ref": "#/components/schemas/envelope.headers"}
    assert (message["title"], message["x-owner"]) == ("A user registered", "identity")
    schema = document["components"]["schemas"]["urn_babel_users_registered"]
    assert schema["properties"]["email"]["x-gdpr-sensitive"] == "email"


def test_references_lead_to_the_bundled_schema_and_marks_survive_beside_them() -> None:
    document = export_asyncapi(registry(AWKWARD))
    home = "#/components/schemas/urn_babel_x_a"
    found = document["components"]["schemas"]["urn_babel_x_a"]["properties"]
    assert found["self"] == {"$ref": home}
    assert found["money"] == {
        "x-gdpr-sensitive": "bank",
        "allOf": [{"$ref": f"{home}/definitions/s.money/definitions/money"}],
    }
    assert found["big"]["maximum"] == 12345678901234567890123


def test_a_literal_reference_is_refused_because_readers_would_follow_it() -> None:
    schema = {"properties": {"a": {"enum": [{"deep": [{"$ref": "#/definitions/x"}]}]}}}
    with pytest.raises(Refused, match="enum"):
        export_asyncapi(registry({"a.json": schema}))


def test_what_stands_beside_a_reference_counts_only_where_the_dialect_says_so() -> None:
    schema = {"$ref": "#/definitions/a", "minLength": 3, "title": "t", "definitions": {"a": {}}}
    assert aim_references(schema, "#/x") == {
        "title": "t", "definitions": {"a": {}}, "allOf": [{"$ref": "#/x/definitions/a"}],
    }  # fmt: skip
    assert aim_references(schema, "#/x", siblings=True)["minLength"] == 3


def test_bindings_stand_where_their_protocol_has_them() -> None:
    document = export_asyncapi(registry({"a.json": {}}, "urn:babel:orders:created"))
    channel = document["channels"]["urn:babel:orders:created"]["bindings"]
    assert set(channel) == set(BINDINGS)
    assert channel["kafka"] == {"topic": "urn.babel.orders.created", "bindingVersion": "0.5.0"}
    assert channel["sqs"]["queue"]["name"] == "urn-babel-orders-created"
    receive = document["operations"]["receive_urn_babel_orders_created"]
    assert receive["bindings"]["kafka"]["groupId"]["enum"] == ["babelqueue"]
    bare = export_asyncapi(registry({"a.json": {}}), bindings=())
    assert "bindings" not in json.dumps(bare)


def test_urns_that_share_a_key_are_refused() -> None:
    with pytest.raises(Refused, match="would get the same message name"):
        message_ids(["a:b", "a_b"])
    with pytest.raises(Refused):
        export_asyncapi(registry({"a.json": {}}, "urn:babel:x:a.b", "urn:babel:x:a_b"))
