"""The table of the REST API, one row for each operation; routes, OpenAPI and metrics use it.

Confluent's paths and query parameters, as far as a registry in git can answer them, plus our own
(`/catalog.json`, `/catalog/{subject}/compare`, `/healthz`, `/metrics`, `/openapi.json`, `/`).
Writes are in the table too: they are rejected with 42205, not with 404.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tallystick.server.answers import Fault

__all__ = ["OPERATIONS", "PARAMETERS", "Operation", "read_query"]

_BOOLEAN: Final = {"type": "string", "pattern": "^([tT][rR][uU][eE]|[fF][aA][lL][sS][eE])$"}
_WHOLE: Final = {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}
_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": {"type": "string"}}

PARAMETERS: Final[dict[str, tuple[dict[str, Any], Any]]] = {
    "subjectPrefix": (_TEXT, ""),
    "subject": (_TEXT, ""),
    "resourceType": (_TEXT, ""),
    "associationType": (_TEXTS, ()),
    "key": (_TEXTS, ()),
    "value": (_TEXTS, ()),
    "offset": ({**_WHOLE, "minimum": 0}, 0),
    "limit": (_WHOLE, -1),
    "deleted": (_BOOLEAN, False),
    "deletedOnly": (_BOOLEAN, False),
    "deleted_only": (_BOOLEAN, False),
    "latestOnly": (_BOOLEAN, False),
    "normalize": (_BOOLEAN, False),
    "verbose": (_BOOLEAN, False),
    "defaultToGlobal": (_BOOLEAN, False),
    "fetchMaxId": (_BOOLEAN, False),
    "permanent": (_BOOLEAN, False),
    "force": (_BOOLEAN, False),
}
"""Every query parameter: its schema and its default."""

_PAGE: Final = ("offset", "limit")
_DELETED: Final = ("deleted", "deletedOnly", "deleted_only")
_BODY: Final = (42201, 42209, 429)


@dataclass(frozen=True, slots=True)
class Operation:
    """One method on one path; `gives` names the schema of its answer, `errors` its codes."""

    method: str
    path: str
    name: str
    summary: str
    gives: str
    query: tuple[str, ...] = ()
    errors: tuple[int, ...] = ()
    body: bool = False


def _write(method: str, path: str, name: str, *query: str) -> Operation:
    return Operation(method, path, name, "Always rejected: the registry is read-only over REST",
                     "Nothing", query, (42205,))  # fmt: skip


_S: Final = "/subjects/{subject}"
_V: Final = "/subjects/{subject}/versions"
_C: Final = "/compatibility/subjects/{subject}/versions"

OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation("GET", "/", "page", "The catalog page", "Page"),
    Operation("GET", "/subjects", "subjects", "List the subjects: the URNs of the registry",
              "Names", ("subjectPrefix", *_DELETED, *_PAGE)),
    Operation("POST", _S, "lookup", "Find the version of a subject that holds this schema",
              "FoundVersion", ("normalize", "deleted"), (40401, 40403, *_BODY), body=True),
    Operation("GET", _S + "/metadata", "metadata",
              "Get the latest version with the given owner and status", "Version",
              ("key", "value", "deleted"), (40401, 40403)),
    Operation("GET", _V, "versions", "List the versions of a subject", "Numbers",
              (*_DELETED, *_PAGE), (40401,)),
    Operation("POST", _V, "register", "Get the id of a registered schema; reject any other schema",
              "Id", ("normalize", "force"), (42205, *_BODY), body=True),
    Operation("GET", _V + "/{version}", "version", "Get one version", "Version", ("deleted",),
              (40401, 40402, 42202)),
    Operation("GET", _V + "/{version}/schema", "version_schema", "Get only the schema", "Schema",
              ("deleted",), (40401, 40402, 42202)),
    Operation("GET", _V + "/{version}/referencedby", "referenced_by",
              "List the ids that refer to this version (always empty)", "Numbers",
              ("deleted", *_PAGE), (40401, 40402, 42202)),
    Operation("GET", "/schemas", "schemas", "List every schema", "Versions",
              ("subjectPrefix", "deleted", "latestOnly", *_PAGE)),
    Operation("GET", "/schemas/types", "types", "List the schema types", "Names"),
    Operation("GET", "/schemas/ids/{id}", "schema", "Get a schema by its id", "IdentifiedSchema",
              ("subject", "fetchMaxId"), (40403,)),
    Operation("GET", "/schemas/ids/{id}/schema", "schema_text", "Get only the schema", "Schema",
              ("subject",), (40403,)),
    Operation("GET", "/schemas/ids/{id}/subjects", "schema_subjects", "List the subjects of an id",
              "Names", ("subject", "deleted", *_PAGE), (40403,)),
    Operation("GET", "/schemas/ids/{id}/versions", "schema_versions",
              "List the versions of an id", "SubjectVersions",
              ("subject", "deleted", *_PAGE), (40403,)),
    Operation("GET", "/schemas/guids/{guid}", "schema_by_guid", "Get a schema by its GUID",
              "GuidSchema", (), (40403,)),
    Operation("GET", "/schemas/guids/{guid}/ids", "guid_ids", "List the ids of a GUID",
              "Numbers", (), (40403,)),
    Operation("POST", _C + "/{version}", "compatibility", "Check a candidate against one version",
              "Compatibility", ("normalize", "verbose"), (40402, 42202, *_BODY), body=True),
    Operation("POST", _C, "compatibility_all", "Check a candidate against every version",
              "Compatibility", ("normalize", "verbose"), _BODY, body=True),
    Operation("GET", "/config", "config", "Get the compatibility level", "Config",
              ("defaultToGlobal",)),
    Operation("GET", "/config/{subject}", "subject_config", "Get the level of a subject",
              "Config", ("defaultToGlobal",), (40401,)),
    Operation("GET", "/mode", "mode", "Get the mode: READONLY", "Mode", ("defaultToGlobal",)),
    Operation("GET", "/mode/{subject}", "subject_mode", "Get the mode of a subject", "Mode",
              ("defaultToGlobal",), (40409,)),
    Operation("GET", "/contexts", "contexts", "List the contexts: the default", "Names", _PAGE),
    Operation("GET", "/associations/resources/{namespace}/{name}", "associations",
              "List the subjects of a topic (always empty)", "Associations",
              ("resourceType", "associationType", *_PAGE)),
    Operation("GET", "/v1/metadata/id", "metadata_id", "Get the name of this cluster", "Scope"),
    Operation("GET", "/v1/metadata/version", "metadata_version", "Get the version of the server",
              "ServerVersion"),
    _write("DELETE", _S, "delete_subject", "permanent"),
    _write("DELETE", _V + "/{version}", "delete_version", "permanent"),
    _write("PUT", "/config", "set_config"),
    _write("DELETE", "/config", "delete_config"),
    _write("PUT", "/config/{subject}", "set_subject_config"),
    _write("DELETE", "/config/{subject}", "delete_subject_config"),
    _write("PUT", "/mode", "set_mode", "force"),
    _write("DELETE", "/mode", "delete_mode"),
    _write("PUT", "/mode/{subject}", "set_subject_mode", "force"),
    _write("DELETE", "/mode/{subject}", "delete_subject_mode"),
    Operation("GET", "/catalog.json", "catalog", "The data of the catalog page", "Catalog"),
    Operation("POST", "/catalog/{subject}/compare", "compare",
              "Check a candidate; list its changes and a witness", "Comparison", (),
              (40401, *_BODY), body=True),
    Operation("GET", "/healthz", "health", "Tell whether the registry files are valid", "Health"),
    Operation("GET", "/metrics", "metrics", "Metrics for Prometheus", "Text"),
    Operation("GET", "/openapi.json", "openapi", "This document", "Document"),
)  # fmt: skip


def read_query(operation: Operation, given: list[tuple[str, str]]) -> dict[str, Any]:
    """Read the parameters that an operation knows; others are ignored, as Confluent does."""
    query = {name: PARAMETERS[name][1] for name in operation.query}
    for name, text in given:
        if name in query:
            value = _read_value(name, text)
            query[name] = (*query[name], value) if PARAMETERS[name][0] is _TEXTS else value
    return query


def _read_value(name: str, text: str) -> Any:
    schema = PARAMETERS[name][0]
    if schema is _TEXT or schema is _TEXTS:
        return text
    if schema is _BOOLEAN:
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        raise Fault(400, f"The query parameter '{name}' must be true or false")
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) < 12:
        number = int(text)
        if schema["minimum"] <= number <= schema["maximum"]:
            return number
    raise Fault(
        400, f"The query parameter '{name}' must be an integer of at least {schema['minimum']}"
    )
