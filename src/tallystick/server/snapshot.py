"""A snapshot is one state of the served registry: every subject with its id and its answer.

A snapshot is a function of the files that were read. `load_snapshot` also gives those files with
their stamps, even if it fails, because only a change of one of them can change the outcome.
A registry that does not load, or holds a schema that does not compile, is never served.

Each schema file is served verbatim. A schema that refers to other files would be useless to
a client without these files, so it is served with its references brought in.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_OID, uuid5

import orjson

from tallystick.core.errors import TallystickError, Unavailable
from tallystick.schemas.catalog import (
    MANIFEST,
    Catalog,
    Entry,
    parse_catalog,
    read_inside,
)
from tallystick.schemas.ids import LOCK, assign_ids, parse_lock
from tallystick.schemas.validate import compile_entry
from tallystick.server.fields import list_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Loaded", "Snapshot", "Stamp", "Subject", "load_snapshot", "manifest_of", "stamp_of"]

Stamp = tuple[int, int, int, int] | None
"""The state of a file (changes with every write); None if the file is missing."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One URN: its id, the text served, the schema without foreign references, its full answer.

    `guid` is a name for the text alone. `reaches` are the other files that the schema refers to,
    directly or not.
    """

    urn: str
    id: int
    entry: Entry
    text: str
    schema: Any
    body: bytes
    guid: str
    reaches: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Every subject in lexical order, and by id; `unlocked` are those that `ids.lock` lacks.

    `shared` are the texts of files that belong to no subject, `listing` is the data of the catalog
    page, as JSON.
    """

    catalog: Catalog
    subjects: Mapping[str, Subject]
    by_id: Mapping[int, Subject]
    shared: Mapping[str, str]
    locked: bool
    unlocked: tuple[str, ...]
    listing: bytes


@dataclass(frozen=True, slots=True)
class Loaded:
    """The outcome of one attempt to load: a snapshot or an error, and the files that were read."""

    snapshot: Snapshot | None
    error: TallystickError | None
    stamps: Mapping[Path, Stamp]


def manifest_of(registry: Path) -> Path:
    """Name the manifest of a registry given as a file or as a folder."""
    return registry / MANIFEST if registry.is_dir() else registry


def stamp_of(path: Path) -> Stamp:
    """Give the stamp of a file without reading it."""
    try:
        seen = os.stat(path)  # noqa: PTH116 - one system call, several hundred times a second
    except OSError:
        return None
    return seen.st_mtime_ns, seen.st_ctime_ns, seen.st_size, seen.st_ino


def load_snapshot(registry: Path) -> Loaded:
    """Read the registry and its lock; an error is returned, not raised."""
    manifest = manifest_of(registry)
    root = manifest.parent
    stamps: dict[Path, Stamp] = {}

    def read(path: Path) -> bytes:
        stamps[path] = stamp_of(path)
        return path.read_bytes()

    def read_file(inside: str) -> bytes:
        stamps[root / inside] = stamp_of(root / inside)
        return read_inside(root, inside)

    try:
        lock = root / LOCK
        stamps[lock] = stamp_of(lock)
        locked = parse_lock(read(lock), str(lock)) if stamps[lock] else None
        catalog = parse_catalog(read(manifest), read_file, str(manifest), root)
        return Loaded(_build(catalog, locked), None, stamps)
    except TallystickError as error:
        return Loaded(None, error, stamps)
    except OSError as error:
        hint = "name the manifest with --registry"
        message = f"{error.filename or manifest}: {error.strerror or error}"
        return Loaded(None, Unavailable(message, code="registry.missing", hint=hint), stamps)


def _build(catalog: Catalog, locked: Mapping[str, int] | None) -> Snapshot:
    ids = assign_ids(catalog.entries, locked or {})
    subjects = {urn: _subject(catalog, urn, number) for urn, number in ids.items()}
    own = {entry.path for entry in catalog.entries.values()}
    return Snapshot(
        catalog,
        subjects,
        {subject.id: subject for subject in subjects.values()},
        {path: held.text for path, held in catalog.documents.items() if path not in own},
        locked is not None,
        tuple(urn for urn in ids if locked is not None and urn not in locked),
        orjson.dumps([_describe(subject) for subject in subjects.values()]),
    )


def _subject(catalog: Catalog, urn: str, number: int) -> Subject:
    entry = catalog.entries[urn]
    held, _ = compile_entry(catalog, urn)
    schema = held.schema
    text = entry.text if schema is entry.schema else json.dumps(schema, ensure_ascii=False)
    answer = {"subject": urn, "version": 1, "id": number, "schemaType": "JSON", "schema": text}
    reaches = tuple(path for path in held.homes.values() if path != entry.path)
    guid = str(uuid5(NAMESPACE_OID, text))
    return Subject(urn, number, entry, text, schema, orjson.dumps(answer), guid, reaches)


def _describe(subject: Subject) -> dict[str, Any]:
    schema = subject.schema if isinstance(subject.schema, dict) else {}
    return {
        "subject": subject.urn,
        "id": subject.id,
        "owner": subject.entry.owner,
        "status": subject.entry.status,
        "title": str(schema.get("title", "")),
        "description": str(schema.get("description", "")),
        "file": subject.entry.path,
        "fields": list_fields(subject.schema),
        "schema": subject.text,
    }
