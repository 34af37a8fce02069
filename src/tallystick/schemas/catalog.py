"""A `Catalog` maps each URN to one JSON Schema, from files that git tracks.

    {"schemas": [{"urn": "urn:babel:orders:created", "schema": "schemas/orders-created.json",
                  "owner": "orders", "status": "active", "examples": ["messages/a.json"]}]}

`owner`, `status` and `examples` are optional; any other member is rejected, because a misspelt
one would be ignored silently. Paths are relative to the manifest and stay inside its folder: no
`..`, no absolute path, no symbolic link that leads out. Schemas are draft-07 unless `$schema`
says 2019-09 or 2020-12, and a `$ref` is resolved inside the folder (`tallystick.schemas.refs`).

`parse_catalog` is pure: it is given `read`, so that git history can feed it as well as a folder.
Every error names the file, the line and the pointer.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from tallystick.core.errors import Rejected, Unavailable
from tallystick.schemas.bundle import Bundle, bundle
from tallystick.schemas.refs import Document, Library, check_dialects, complete, dialect_of
from tallystick.schemas.values import escape, line_index, line_of, parse_json

__all__ = [
    "MANIFEST",
    "Catalog",
    "Entry",
    "Place",
    "Read",
    "Row",
    "bundled",
    "load_catalog",
    "locate",
    "parse_catalog",
    "parse_manifest",
    "parse_schema",
    "read_inside",
    "read_manifest",
    "read_registry",
    "self_contained",
]

MANIFEST: Final = "registry.json"
_MEMBERS: Final = frozenset({"urn", "schema", "owner", "status", "examples"})
_HINT: Final = "`tally schema check` lists every problem of a registry"

Read = Callable[[str], bytes]
"""Give the bytes of a file by its path inside the registry's folder."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the manifest; its schema is not read yet. `line` and `at` are its place."""

    urn: str
    path: str
    owner: str
    status: str
    examples: tuple[str, ...]
    line: int
    at: int = 0


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


class Place(NamedTuple):
    """A file of the registry, the line and the pointer inside it."""

    file: str
    line: int
    pointer: str


@dataclass(frozen=True, slots=True)
class Catalog:
    """Every entry by URN, in the order of the manifest; `documents` has also the referenced files.

    `origin` is the prefix of file names that are not in the working tree (`v1:schemas/`).
    """

    root: Path
    manifest: str
    entries: Mapping[str, Entry]
    documents: Mapping[str, Document] = field(default_factory=dict)
    origin: str = ""


def load_catalog(path: Path) -> Catalog:
    """Read a registry from its manifest (or from the folder that holds `registry.json`)."""
    manifest, raw = read_registry(path)
    root = manifest.parent
    return parse_catalog(raw, lambda inside: read_inside(root, inside), str(manifest), root)


def read_registry(path: Path) -> tuple[Path, bytes]:
    """Find the manifest of a registry given as a file or as a folder, and read it."""
    manifest = path / MANIFEST if path.is_dir() else path
    try:
        return manifest, manifest.read_bytes()
    except OSError as error:
        raise Unavailable(
            f"{manifest}: {error.strerror or error}",
            code="registry.missing",
            hint="name the manifest with --registry",
        ) from error


def parse_catalog(
    manifest_text: bytes | str, read: Read, manifest: str = MANIFEST, root: Path = Path()
) -> Catalog:
    """Build a catalog from the manifest's text and a reader of the files beside it."""
    documents = Library()
    entries: dict[str, Entry] = {}
    for row in parse_manifest(manifest_text, manifest):
        entries[row.urn] = _read_entry(row, read, manifest, documents)

    def load(path: str, origin: Document, pointer: str) -> Document:
        raw = _fetch(read, path, f"{origin.path}:{line_of(origin.text, pointer)}: {pointer}")
        return Document(path, parse_schema(raw, path), raw.decode())

    for _, fault in complete(documents, load):
        raise fault
    return Catalog(root, manifest, entries, documents)


def _read_entry(row: Row, read: Read, manifest: str, documents: dict[str, Document]) -> Entry:
    raw = _fetch(read, row.path, f"{manifest}:{row.line}: {row.urn}")
    known = documents.get(row.path)
    schema = parse_schema(raw, row.path) if known is None else known.schema
    text = raw.decode()
    documents[row.path] = Document(row.path, schema, text)
    return Entry(row.urn, row.path, schema, text, row.owner, row.status, row.examples, row.line)


def parse_manifest(manifest_text: bytes | str, manifest: str = MANIFEST) -> tuple[Row, ...]:
    """Read the rows of a manifest; the first fault is raised, with its line and its pointer."""
    rows, faults = read_manifest(manifest_text, manifest)
    if faults:
        raise faults[0]
    return rows


def read_manifest(
    manifest_text: bytes | str, manifest: str = MANIFEST
) -> tuple[tuple[Row, ...], tuple[Rejected, ...]]:
    """Read the valid rows of a manifest and every fault; only invalid JSON raises an error."""
    raw = manifest_text.encode() if isinstance(manifest_text, str) else manifest_text
    value = parse_json(raw, manifest)
    lines = line_index(raw.decode())
    faults: list[Rejected] = []

    def fault(pointer: str, message: str, code: str) -> None:
        place = pointer
        while place not in lines and place:
            place = place.rpartition("/")[0]
        said = f"{manifest}:{lines.get(place, 1)}: {message}"
        faults.append(Rejected(said, code=code, pointer=pointer, hint=_HINT))

    if not isinstance(value, dict):
        fault("", "the manifest must be an object", "registry.shape")
        return (), tuple(faults)
    for name in sorted(value.keys() - {"schemas"}):
        fault(f"/{escape(name)}", f"unknown member {name!r}", "registry.member")
    items = value.get("schemas", [])
    if not isinstance(items, list):
        fault("/schemas", "schemas must be a list", "registry.shape")
        return (), tuple(faults)
    seen: dict[str, int] = {}
    rows = []
    for at, item in enumerate(items):
        pointer = f"/schemas/{at}"
        found = list(_row_faults(item))
        for place, message in found:
            fault(pointer + place, message, "registry.entry")
        urn = item.get("urn") if isinstance(item, dict) else None
        if isinstance(urn, str) and urn in seen:
            message = f"the URN {urn!r} is already declared on line {seen[urn]}"
            fault(f"{pointer}/urn", message, "registry.twice")
            continue
        if isinstance(urn, str):
            seen[urn] = lines[pointer]
        if not found:
            rows.append(_row(item, lines[pointer], at))
    return tuple(rows), tuple(faults)


def _row_faults(item: Any) -> Iterator[tuple[str, str]]:
    """Give each thing that is wrong with a row: its place inside the row, and what it is."""
    if not isinstance(item, dict):
        yield "", "an entry must be an object"
        return
    for name in sorted(item.keys() - _MEMBERS):
        known = ", ".join(sorted(_MEMBERS))
        yield f"/{escape(name)}", f"unknown member {name!r}; known members: {known}"
    for name in ("urn", "schema"):
        if not isinstance(item.get(name), str) or not item[name]:
            yield f"/{name}" if name in item else "", f"{name} must be a non-empty string"
    for name in ("owner", "status"):
        if not isinstance(item.get(name, ""), str):
            yield f"/{name}", f"{name} must be a string"
    examples = item.get("examples", [])
    if not isinstance(examples, list) or not all(isinstance(one, str) and one for one in examples):
        yield "/examples", "examples must be a list of paths"
        examples = []
    paths = [("/schema", item.get("schema"))]
    paths += [(f"/examples/{at}", one) for at, one in enumerate(examples)]
    for place, path in paths:
        if isinstance(path, str) and _leaves(path):
            yield place, f"the path {path!r} points outside the registry folder"


def _row(item: dict[str, Any], line: int, at: int) -> Row:
    return Row(
        item["urn"],
        os.path.normpath(item["schema"]).replace(os.sep, "/"),
        item.get("owner", ""),
        item.get("status", ""),
        tuple(item.get("examples", [])),
        line,
        at,
    )


def _leaves(path: str) -> bool:
    parts = path.replace("\\", "/").split("/")
    return path.startswith(("/", "\\")) or ".." in parts or ":" in parts[0] or "\x00" in path


def parse_schema(raw: bytes, path: str) -> Any:
    """Read one schema file: an object or a boolean, of one supported dialect."""
    schema = parse_json(raw, path)
    if not isinstance(schema, dict | bool):
        raise Rejected(
            f"{path}:1: a schema must be an object or a boolean",
            code="schema.shape",
            pointer="",
            hint="is this the right file? The smallest schema is {}",
        )
    dialect_of(schema, path)
    at_root = isinstance(schema, dict) and "$schema" in schema
    if raw.count(b"$schema") > at_root:
        check_dialects(schema, path, raw.decode())
    return schema


def _fetch(read: Read, path: str, where: str) -> bytes:
    if _leaves(path):
        raise Rejected(
            f"{where}: {path!r} points outside the registry folder",
            code="registry.path",
            hint=_HINT,
        )
    try:
        return read(path)
    except OSError as error:
        raise Unavailable(
            f"{where}: {path}: {error.strerror or error}", code="registry.missing", hint=_HINT
        ) from error


def read_inside(root: Path, path: str) -> bytes:
    """Read a regular file below `root`, links followed only as long as they stay below it."""
    real = os.path.realpath(root / path)
    home = os.path.realpath(root)
    if os.path.commonpath([home, real]) != home:
        raise Rejected(
            f"{path}: a symbolic link points outside the registry folder",
            code="registry.path",
            hint=_HINT,
        )
    with open(real, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise Rejected(f"{path}: not a regular file", code="registry.path", hint=_HINT)
        return file.read()


def bundled(catalog: Catalog, urn: str) -> Bundle:
    """Give the schema of a URN with every foreign `$ref` brought in, and what came from where."""
    return bundle(catalog.documents[catalog.entries[urn].path], catalog.documents)


def self_contained(catalog: Catalog, urn: str) -> Any:
    """Give the schema of a URN with every foreign `$ref` brought in."""
    return bundled(catalog, urn).schema


def locate(catalog: Catalog, held: Bundle, pointer: str) -> Place:
    """Give the file, line and pointer of a place in a bundled schema."""
    file, inside = held.home_of(pointer)
    line = line_of(catalog.documents[file].text, inside)
    return Place(f"{catalog.origin}{file}", line, inside)
