"""The OpenAPI 3.1 document of the REST API, built from the table of operations.

Its examples come from the served registry, so every example works.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tallystick import __version__
from tallystick.server.answers import JSON, REGISTRY_JSON
from tallystick.server.levels import LEVELS, RULES
from tallystick.server.operations import OPERATIONS, PARAMETERS, Operation

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["build_openapi"]

_STRING: Final[dict[str, Any]] = {"type": "string"}
_GUID: Final = {"type": "string", "format": "uuid"}
_NUMBER: Final = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}


def _object(optional: tuple[str, ...] = (), /, **members: Any) -> dict[str, Any]:
    required = [name for name in members if name not in optional]
    return {
        "type": "object",
        "required": required,
        "properties": members,
        "additionalProperties": False,
    }


def _list(item: Any) -> dict[str, Any]:
    return {"type": "array", "items": item}


_VERSION: Final = _object(
    subject=_STRING, version=_NUMBER, id=_NUMBER, schemaType={"const": "JSON"}, schema=_STRING
)
_FIELD: Final = _object(
    path=_STRING, type=_STRING, required={"type": "boolean"}, sensitive=_STRING, description=_STRING
)
_CHANGE: Final = _object(
    pointer=_STRING,
    rule=_STRING,
    effect={"enum": ["breaking", "compatible", "unknown"]},
    message=_STRING,
)

_SCHEMAS: Final[dict[str, tuple[str, Any]]] = {
    "Nothing": ("", None),
    "Page": ("text/html", _STRING),
    "Text": ("text/plain", _STRING),
    "Document": (JSON, {"type": "object"}),
    "Names": (REGISTRY_JSON, _list(_STRING)),
    "Numbers": (REGISTRY_JSON, _list(_NUMBER)),
    "Version": (REGISTRY_JSON, _VERSION),
    "Versions": (REGISTRY_JSON, _list(_VERSION)),
    "Schema": (REGISTRY_JSON, {"type": ["object", "boolean"]}),
    "FoundVersion": (REGISTRY_JSON, _object(**_VERSION["properties"], guid=_GUID)),
    "GuidSchema": (REGISTRY_JSON, _object(
        schemaType={"const": "JSON"}, schema=_STRING, guid=_GUID)),
    "Associations": (REGISTRY_JSON, _list({"type": "object"})),
    "Id": (REGISTRY_JSON, _object(id=_NUMBER, guid=_GUID)),
    "IdentifiedSchema": (REGISTRY_JSON, _object(
        ("maxId",), schemaType={"const": "JSON"}, schema=_STRING, maxId=_NUMBER)),
    "SubjectVersions": (REGISTRY_JSON, _list(_object(subject=_STRING, version=_NUMBER))),
    "Compatibility": (REGISTRY_JSON, _object(
        ("messages",), is_compatible={"type": "boolean"}, messages=_list(_STRING))),
    "Config": (REGISTRY_JSON, _object(compatibilityLevel={"enum": list(LEVELS)})),
    "Mode": (REGISTRY_JSON, _object(mode={"const": "READONLY"})),
    "Scope": (REGISTRY_JSON, _object(id=_STRING, scope=_object(
        path=_list(_STRING), clusters={"type": "object"}))),
    "ServerVersion": (REGISTRY_JSON, _object(version=_STRING, commitId=_STRING)),
    "Catalog": (JSON, _object(level={"enum": list(LEVELS)}, stale=_STRING, subjects=_list(_object(
        subject=_STRING, id=_NUMBER, owner=_STRING, status=_STRING, title=_STRING,
        description=_STRING, file=_STRING, fields=_list(_FIELD), schema=_STRING)))),
    "Comparison": (JSON, _object(
        verdict={"enum": ["compatible", "breaking", "unknown"]}, level={"enum": list(LEVELS)},
        identical={"type": "boolean"}, changes=_list(_CHANGE), witness=_STRING,
        direction={"enum": ["", "backward", "forward"]}, reason=_STRING)),
    "Health": (JSON, _object(
        status={"enum": ["ok", "stale"]}, error=_STRING, compatibility={"enum": list(LEVELS)},
        rules={"enum": list(RULES)}, subjects={"type": "integer", "minimum": 0},
        loaded_at={**_STRING, "format": "date-time"},
        ids_locked={"type": "boolean"}, ids_not_in_lock=_list(_STRING))),
}  # fmt: skip

_CANDIDATE: Final = {
    "type": "object",
    "required": ["schema"],
    "properties": {
        "schema": {**_STRING, "description": "The candidate schema: a JSON Schema as a string"},
        "schemaType": {"enum": ["JSON", "AVRO", "PROTOBUF", None], "default": "JSON"},
        "references": {"type": ["array", "null"], "maxItems": 0},
    },
}
_PATH_PARAMETERS: Final = {
    "subject": "The URN, percent-encoded",
    "version": "A version number, `latest` or -1 (the latest)",
    "id": "The id of a schema",
    "guid": "The GUID of a schema",
    "namespace": "The name of a Kafka cluster, or `-` for any",
    "name": "The name of a topic",
}


def build_openapi(examples: Mapping[str, Any]) -> dict[str, Any]:
    """Build the whole document; `examples` has a value for each path parameter, and `schema`."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(
            operation, examples
        )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tallystick schema registry",
            "version": __version__,
            "description": "A schema registry kept in git, served read-only with Confluent's API.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": {
                "Error": _object(error_code={"type": "integer"}, message=_STRING),
                "Candidate": _CANDIDATE,
                **{name: schema for name, (kind, schema) in _SCHEMAS.items() if kind},
            }
        },
    }


def _operation(operation: Operation, examples: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": _parameters(operation, examples),
        "responses": _responses(operation),
    }
    if operation.body:
        media: dict[str, Any] = {"schema": {"$ref": "#/components/schemas/Candidate"}}
        if "schema" in examples:
            media["example"] = {"schema": examples["schema"], "schemaType": "JSON"}
        kinds = {REGISTRY_JSON: media, JSON: media}
        out["requestBody"] = {"required": True, "content": kinds}
    return out


def _parameters(operation: Operation, examples: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = re.findall(r"\{(\w+)\}", operation.path)
    return [
        {"name": name, "in": "path", "required": True, "schema": {**_STRING, "minLength": 1},
         "description": _PATH_PARAMETERS[name],
         **({"example": examples[name]} if name in examples else {})}
        for name in names
    ] + [
        {"name": name, "in": "query", "required": False, "schema": PARAMETERS[name][0]}
        for name in operation.query
    ]  # fmt: skip


def _responses(operation: Operation) -> dict[str, Any]:
    out: dict[str, Any] = {}
    kind = _SCHEMAS[operation.gives][0]
    if kind:
        reference = {"$ref": f"#/components/schemas/{operation.gives}"}
        content: dict[str, Any] = {kind: {"schema": reference}}
        if operation.name == "page":
            content[REGISTRY_JSON] = {"schema": {"type": "object", "maxProperties": 0}}
        out["200"] = {"description": "Success", "content": content}
    codes = sorted({*operation.errors, *((400,) if operation.query else ())})
    by_status: dict[int, list[int]] = {}
    for code in codes:
        by_status.setdefault(code if code < 1000 else code // 100, []).append(code)
    error = {REGISTRY_JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}
    for status, several in by_status.items():
        words = ", ".join(map(str, several))
        out[str(status)] = {"description": f"error_code {words}", "content": error}
    return out
