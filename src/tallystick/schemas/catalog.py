"""A `Catalog` maps each URN to one JSON Schema, from files that git tracks.

    {"schemas": [{"urn": "urn:babel:orders:created", "schema": "schemas/orders-created.json",
                  "owner": "orders", "status": "active", "examples": ["messages/a.json"]}]}

`owner`, `status` and `examples` may be left out; any other member is rejected, because a misspelt
one would silently mean nothing. Paths are relative to the manifest and stay inside its folder: no
`..`, no absolute path, no symbolic link that leads out. Schemas are draft-07 unless `$schema`
says 2019-09 or 2020-12, and a `$ref` is resolved inside the folder (`tallystick.schemas.refs`).

`parse_catalog` is pure: it is given `read`, so that git history can feed it as well as a folder.
Every error names the file, the line and the pointer.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tallystick.core.errors import Rejected, Unavailable
from tallystick.schemas.refs import Document, Library, bundle, dialect_of, reach
from tallystick.schemas.values import line_index, line_of, parse_json

__all__ = [
    "MANIFEST",
    "Catalog",
    "Entry",
    "Read",
    "Row",
    "load_catalog",
    "parse_catalog",
    "parse_manifest",
    "parse_schema",
    "read_inside",
    "self_contained",
]

MANIFEST: Final = "registry.json"
_MEMBERS: Final = frozenset({"urn", "schema", "owner", "status", "examples"})

Read = Callable[[str], bytes]
"""Give the bytes of a file by its path inside the registry's folder."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the manifest, not yet read: `line` is where it stands."""

    urn: str
    path: str
    owner: str
    status: str
    examples: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One URN: the path and the text of its schema file, the schema in it, and who owns it."""

    urn: str
    path: str
    schema: Any
    text: str
    owner: str = ""
    status: str = ""
    examples: tuple[str, ...] = ()
    line: int = 1


@dataclass(frozen=True, slots=True)
class Catalog:
    """Every entry by URN, in the manifest's order; `documents` holds also what they refer to."""

    root: Path
    manifest: str
    entries: Mapping[str, Entry]
    documents: Mapping[str, Document] = field(default_factory=dict)


def load_catalog(path: Path) -> Catalog:
    """Read a registry from its manifest (or from the folder that holds `registry.json`)."""
    manifest = path / MANIFEST if path.is_dir() else path
    try:
        raw = manifest.read_bytes()
    except OSError as error:
        raise Unavailable(
            f"{manifest}: {error.strerror or error}",
            code="registry.missing",
            hint="name the manifest with --registry",
        ) from error
    root = manifest.parent
    return parse_catalog(raw, lambda inside: read_inside(root, inside), str(manifest), root)


def parse_catalog(
    manifest_text: bytes | str, read: Read, manifest: str = MANIFEST, root: Path = Path()
) -> Catalog:
    """Build a catalog from the manifest's text and a reader of the files beside it."""
    documents = Library()
    entries: dict[str, Entry] = {}
    for row in parse_manifest(manifest_text, manifest):
        entries[row.urn] = _read_entry(row, read, manifest, documents)
    pending = list(documents)
    while pending:
        document = documents[pending.pop()]
        for path in reach(document, documents):
            if path not in documents:
                raw = _fetch(read, path, f"{document.path} refers to {path}")
                documents[path] = Document(path, parse_schema(raw, path), raw.decode())
                pending.append(path)
    return Catalog(root, manifest, entries, documents)


def _read_entry(row: Row, read: Read, manifest: str, documents: dict[str, Document]) -> Entry:
    raw = _fetch(read, row.path, f"{manifest}:{row.line}: {row.urn}")
    known = documents.get(row.path)
    schema = parse_schema(raw, row.path) if known is None else known.schema
    text = raw.decode()
    documents[row.path] = Document(row.path, schema, text)
    return Entry(row.urn, row.path, schema, text, row.owner, row.status, row.examples, row.line)


def parse_manifest(manifest_text: bytes | str, manifest: str = MANIFEST) -> tuple[Row, ...]:
    """Read the rows of a manifest; every fault names its line and its pointer."""
    raw = manifest_text.encode() if isinstance(manifest_text, str) else manifest_text
    value = parse_json(raw, manifest)
    text = raw.decode()
    if not isinstance(value, dict):
        raise _fault(text, manifest, "", "the manifest must be an object", "registry.shape")
    for name in value.keys() - {"schemas"}:
        raise _fault(text, manifest, f"/{name}", f"unknown member {name!r}", "registry.member")
    rows = value.get("schemas", [])
    if not isinstance(rows, list):
        raise _fault(text, manifest, "/schemas", "schemas must be a list", "registry.shape")
    lines = line_index(text)
    seen: dict[str, int] = {}
    out = []
    for at, item in enumerate(rows):
        row = _row(item, f"/schemas/{at}", text, manifest, lines[f"/schemas/{at}"])
        if row.urn in seen:
            message = f"the URN {row.urn!r} is declared already on line {seen[row.urn]}"
            raise _fault(text, manifest, f"/schemas/{at}/urn", message, "registry.twice")
        seen[row.urn] = row.line
        out.append(row)
    return tuple(out)


def _row(item: Any, pointer: str, text: str, manifest: str, line: int) -> Row:
    def fault(member: str, message: str) -> Rejected:
        return _fault(text, manifest, pointer + member, message, "registry.entry")

    if not isinstance(item, dict):
        raise fault("", "an entry must be an object")
    for name in item.keys() - _MEMBERS:
        raise fault(f"/{name}", f"unknown member {name!r}; known are {', '.join(sorted(_MEMBERS))}")
    for name in ("urn", "schema"):
        if not isinstance(item.get(name), str) or not item[name]:
            raise fault(f"/{name}" if name in item else "", f"{name} must be a non-empty string")
    for name in ("owner", "status"):
        if not isinstance(item.get(name, ""), str):
            raise fault(f"/{name}", f"{name} must be a string")
    examples = item.get("examples", [])
    if not isinstance(examples, list) or not all(isinstance(one, str) and one for one in examples):
        raise fault("/examples", "examples must be a list of paths")
    for place, path in [("/schema", item["schema"]), *(
        (f"/examples/{at}", one) for at, one in enumerate(examples)
    )]:  # fmt: skip
        if _leaves(path):
            raise fault(place, f"the path {path!r} leaves the registry's folder")
    return Row(
        item["urn"],
        os.path.normpath(item["schema"]).replace(os.sep, "/"),
        item.get("owner", ""),
        item.get("status", ""),
        tuple(examples),
        line,
    )


def _fault(text: str, manifest: str, pointer: str, message: str, code: str) -> Rejected:
    return Rejected(f"{manifest}:{line_of(text, pointer)}: {message}", code=code, pointer=pointer)


def _leaves(path: str) -> bool:
    parts = path.replace("\\", "/").split("/")
    return path.startswith(("/", "\\")) or ".." in parts or ":" in parts[0] or "\x00" in path


def parse_schema(raw: bytes, path: str) -> Any:
    """Read one schema file: an object or a boolean, of a dialect we know."""
    schema = parse_json(raw, path)
    if not isinstance(schema, dict | bool):
        raise Rejected(
            f"{path}:1: a schema is an object or a boolean", code="schema.shape", pointer=""
        )
    dialect_of(schema, path)
    return schema


def _fetch(read: Read, path: str, where: str) -> bytes:
    if _leaves(path):
        raise Rejected(f"{where}: {path!r} leaves the registry's folder", code="registry.path")
    try:
        return read(path)
    except OSError as error:
        raise Unavailable(
            f"{where}: {path}: {error.strerror or error}", code="registry.missing"
        ) from error


def read_inside(root: Path, path: str) -> bytes:
    """Read a regular file below `root`, links followed only as long as they stay below it."""
    real = os.path.realpath(root / path)
    home = os.path.realpath(root)
    if os.path.commonpath([home, real]) != home:
        raise Rejected(
            f"{path}: a symbolic link leads out of the registry's folder", code="registry.path"
        )
    with open(real, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise Rejected(f"{path}: not a regular file", code="registry.path")
        return file.read()


def self_contained(catalog: Catalog, urn: str) -> Any:
    """Give the schema of a URN with every foreign `$ref` brought in."""
    return bundle(catalog.documents[catalog.entries[urn].path], catalog.documents)
