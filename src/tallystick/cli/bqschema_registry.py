"""Read the registry like the reference tool: the file of each URN, with the same error texts.

Unknown members of the manifest are ignored, names match in upper and lower case, and paths may lead
anywhere. A schema is an object, or null, which accepts everything. References are resolved inside
the folder of the registry and nowhere else.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tallystick.cli.bqschema_json import DecodeError, decode, decode_object, kind_of, quote
from tallystick.core.errors import UsageError
from tallystick.schemas.catalog import parse_catalog, read_inside, self_contained
from tallystick.schemas.refs import check_dialects

__all__ = ["Registry", "fail", "load_registry", "read_file", "read_schema_file"]


@dataclass(frozen=True, slots=True)
class Registry:
    """The path of the manifest, and the path of each URN's schema, in lexical order."""

    folder: str
    paths: dict[str, str]

    def read(self, urn: str) -> Any:
        """Read the schema of a URN."""
        path = self.paths[urn]
        try:
            raw = read_file(os.path.normpath(os.path.join(self.folder, path)))  # noqa: PTH118
        except UsageError as error:
            reason = error.message.partition(": ")[2]
            raise fail(f"registry: read schema for {quote(urn)} ({path}): {reason}") from error
        return _schema(raw, f"registry: {quote(urn)}: ")

    def bundled(self, urn: str) -> Any:
        """Read the schema of a URN with all schemas that it refers to."""
        return bundle_file(Path(self.folder), self.paths[urn], self.read(urn))


def fail(message: str) -> UsageError:
    """Make the one error of the reference: a line on stderr and exit code 2."""
    return UsageError(message, code="bqschema")


def read_file(path: str) -> bytes:
    """Read a file, or fail in Go's words."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        verb = "read" if isinstance(error, IsADirectoryError) else "open"
        reason = (error.strerror or str(error)).lower()
        raise fail(f"read {path}: {verb} {path}: {reason}") from error


def load_registry(path: str) -> Registry:
    """Read a manifest."""
    try:
        raw = read_file(path)
    except UsageError as error:
        raise fail(f"registry: {error.message}") from error
    try:
        rows = _rows(decode(raw))
    except DecodeError as error:
        raise fail(f"registry: parse {path}: {error}") from error
    paths: dict[str, str] = {}
    for at, (urn, schema) in enumerate(rows):
        if not urn:
            raise fail(f"registry: entry {at} has an empty urn")
        if not schema:
            raise fail(f"registry: entry {quote(urn)} has an empty schema path")
        if urn in paths:
            raise fail(f"registry: urn {quote(urn)} is declared more than once")
        paths[urn] = schema
    ordered = sorted(paths, key=str.encode)
    return Registry(os.path.dirname(path), {urn: paths[urn] for urn in ordered})  # noqa: PTH120


def _rows(manifest: Any) -> list[tuple[str, str]]:
    if manifest is None:
        return []
    if not isinstance(manifest, dict):
        raise DecodeError(_mismatch(manifest, "value of type registry.manifest"))
    rows = _member(manifest, "schemas")
    if rows is None:
        return []
    if not isinstance(rows, list):
        raise DecodeError(_mismatch(rows, "struct field manifest.schemas of type []registry.Entry"))
    return [(_text(row, "urn"), _text(row, "schema")) for row in rows]


def _text(row: Any, name: str) -> str:
    if row is not None and not isinstance(row, dict):
        kind = "struct field manifest.schemas of type registry.Entry"
        raise DecodeError(_mismatch(row, kind))
    value = _member(row or {}, name)
    if value is not None and not isinstance(value, str):
        raise DecodeError(_mismatch(value, f"struct field Entry.schemas.{name} of type string"))
    return value or ""


def _member(row: dict[str, Any], name: str) -> Any:
    found = [value for key, value in row.items() if key.casefold() == name]
    return found[-1] if found else None


def _mismatch(value: Any, target: str) -> str:
    return f"json: cannot unmarshal {kind_of(value)} into Go {target}"


def read_schema_file(path: str) -> Any:
    """Read a schema that no registry names, for `compat`."""
    return _schema(read_file(path), "")


def _schema(raw: bytes, prefix: str) -> Any:
    try:
        return decode_object(raw) or {}
    except DecodeError as error:
        raise fail(f"{prefix}schema: parse: {error}") from error


def bundle_file(folder: Path, path: str, schema: Any) -> Any:
    """Include the schemas that a schema refers to; without references it stays unchanged."""
    check_dialects(schema, path)
    if '"$ref"' not in json.dumps(schema):
        return schema
    manifest = json.dumps({"schemas": [{"urn": "schema", "schema": path}]})
    catalog = parse_catalog(manifest, lambda name: read_inside(folder, name), path, folder)
    return self_contained(catalog, "schema")
