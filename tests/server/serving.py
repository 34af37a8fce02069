"""A registry with every awkward subject, and the real server on a free loopback port."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "registry"
ORDERS = "urn:babel:orders:created"
USERS = "urn:babel:users:registered"
ODD = "urn:babel:pay/ments:100%:ödeme ?#"
MONEY = "urn:babel:shared:money"
TREE = "urn:babel:tree:node"
ANY = "urn:babel:any:thing"
TALLY = str(Path(sys.executable).parent / "tally")

SCHEMAS: dict[str, tuple[str, Any]] = {
    ODD: ("odd.json", {"type": "object", "properties": {"a/b": {"type": "integer"}}}),
    MONEY: ("money.json", {"type": "object", "properties": {"price": {
        "$ref": "common/amount.json#/definitions/amount"}}}),
    TREE: ("tree.json", {"type": "object", "properties": {"children": {
        "type": "array", "items": {"$ref": "#"}}, "name": {"type": "string"}}}),
    ANY: ("any.json", True),
}  # fmt: skip


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> int:
        return int(self.value["error_code"])


@dataclass(frozen=True)
class Served:
    """A running server; `ask` sends the path exactly as it is given."""

    url: str
    folder: Path
    process: subprocess.Popen[bytes]

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        host, port = self.url.removeprefix("http://").split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=30)
        try:
            raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            connection.putrequest(method, path, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            if raw is not None:
                connection.putheader("content-length", str(len(raw)))
            connection.endheaders(raw)
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, names, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        return self.ask("GET", path, **headers)

    def candidate(self, path: str, schema: Any, **more: Any) -> Reply:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        return self.ask("POST", path, {"schema": text, "schemaType": "JSON", **more})


def encode(subject: str) -> str:
    return quote(subject, safe="")


def write_registry(folder: Path) -> Path:
    """Write the examples and the awkward subjects into a folder."""
    (folder / "common").mkdir(parents=True)
    rows = []
    for row in json.loads((EXAMPLES / "registry.json").read_bytes())["schemas"]:
        name = Path(row["schema"]).name
        (folder / name).write_bytes((EXAMPLES / row["schema"]).read_bytes())
        rows.append({"urn": row["urn"], "schema": name, "owner": row["owner"], "status": "active"})
    for urn, (name, schema) in SCHEMAS.items():
        (folder / name).write_text(json.dumps(schema), encoding="utf-8")
        rows.append({"urn": urn, "schema": name})
    shared = {"definitions": {"amount": {"type": "integer", "minimum": 0}}}
    (folder / "common" / "amount.json").write_text(json.dumps(shared), encoding="utf-8")
    manifest = folder / "registry.json"
    manifest.write_text(json.dumps({"schemas": rows}, ensure_ascii=False), encoding="utf-8")
    return manifest


def start(folder: Path, *arguments: str) -> Served:
    """Start the command on a free port and wait until it says where it listens."""
    with (folder / "stderr.txt").open("wb") as log:
        process = subprocess.Popen(
            [TALLY, "schema", "serve", "--registry", folder, "--port", "0", "--json", *arguments],
            stdout=subprocess.PIPE,
            stderr=log,
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        process.wait()
        pytest.fail((folder / "stderr.txt").read_text(), pytrace=False)
    return Served(json.loads(line)["url"], folder, process)


def stop(served: Served) -> int:
    served.process.terminate()
    code = served.process.wait(timeout=30)
    assert served.process.stdout is not None
    served.process.stdout.close()
    return code
