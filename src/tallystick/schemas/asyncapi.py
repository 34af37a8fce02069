"""Export the registry as an AsyncAPI 3 catalog: channels, messages, operations, bindings.

A channel is a URN. Its message is the whole envelope: `job` is the URN and `data` has the
registered schema, with the `bq-` headers and the trace id as correlation id. One operation sends,
one receives. Each schema is once under `components/schemas`, local references point there, and
`x-gdpr-sensitive` stays where it was. A dialect other than draft-07 is named by `schemaFormat`.

Component keys allow fewer characters than URNs; two URNs that would get the same key are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tallystick.core.errors import Refused
from tallystick.schemas.asyncapi_bindings import BINDINGS
from tallystick.schemas.catalog import Catalog, Entry
from tallystick.schemas.check_names import message_id
from tallystick.schemas.refs import SUBSCHEMAS, dialect_of
from tallystick.schemas.validate import compile_entry
from tallystick.schemas.values import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["SPECS", "aim_references", "export_asyncapi", "message_ids"]

SPECS: Final = {"3.0": "3.0.0", "3.1": "3.1.0"}
_ANNOTATIONS: Final = frozenset(
    {"title", "description", "default", "examples", "readOnly", "writeOnly", "$comment",
     "definitions", "$defs"}
)  # fmt: skip
_MILLISECONDS: Final = {"type": "integer", "minimum": 0}
_COUNT: Final = {"type": "integer", "minimum": 0}
_WORD: Final = {"type": "string", "minLength": 1}
_ENVELOPE: Final[dict[str, Any]] = {
    "envelope.headers": {
        "type": "object",
        "description": "The envelope fields that a broker carries as headers, beside the body.",
        "properties": {
            "bq-job": _WORD, "bq-trace-id": _WORD, "bq-message-id": _WORD,
            "bq-schema-version": {"type": ["string", "integer"]}, "bq-source-lang": _WORD,
            "bq-attempts": {"type": ["string", "integer"]},
        },
    },
    "envelope.meta": {
        "type": "object",
        "required": ["id", "queue", "lang", "schema_version", "created_at"],
        "properties": {
            "id": {"type": "string", "format": "uuid"}, "queue": _WORD, "lang": {"type": "string"},
            "schema_version": {"type": "integer", "const": 1}, "created_at": _MILLISECONDS,
        },
    },
    "envelope.deadLetter": {
        "type": "object",
        "required": ["reason", "failed_at", "original_queue", "attempts"],
        "properties": {
            "reason": {"type": "string", "enum": ["failed", "unknown_urn", "poison"]},
            "error": {"type": ["string", "null"]}, "exception": {"type": ["string", "null"]},
            "failed_at": _MILLISECONDS, "original_queue": {"type": "string"}, "attempts": _COUNT,
            "lang": {"type": "string"},
        },
    },
}  # fmt: skip
"""Components shared by all messages; no key of a URN has a dot, so the names cannot collide."""


def message_ids(urns: Iterable[str]) -> dict[str, str]:
    """Give each URN its message key; raise `Refused` if two URNs get the same key."""
    ids: dict[str, str] = {}
    owners: dict[str, str] = {}
    for urn in urns:
        name = ids[urn] = message_id(urn)
        other = owners.setdefault(name, urn)
        if other != urn:
            raise Refused(
                f"{urn!r} and {other!r} would get the same message name {name!r}",
                code="asyncapi.collision",
                hint="rename one of the two URNs",
            )
    return ids


def export_asyncapi(
    catalog: Catalog,
    *,
    spec: str = "3.0",
    title: str = "BabelQueue Event Catalog",
    version: str = "1.0.0",
    bindings: Sequence[str] = tuple(BINDINGS),
) -> dict[str, Any]:
    """Build the whole document; URNs are in lexical order."""
    ids = message_ids(sorted(catalog.entries))
    channels: dict[str, Any] = {}
    operations: dict[str, Any] = {}
    messages: dict[str, Any] = {}
    schemas: dict[str, Any] = dict(_ENVELOPE) if ids else {}
    for urn, name in ids.items():
        entry = catalog.entries[urn]
        schema = compile_entry(catalog, urn)[0].schema
        dialect = dialect_of(schema, entry.path)
        place = f"#/components/schemas/{name}"
        if dialect == "draft-07":
            schemas[name] = aim_references(schema, place)
            payload = _payload(urn, place)
        else:
            schema_format = f"application/schema+json;version={dialect}"
            aimed = aim_references(schema, f"{place}/schema", siblings=True)
            schemas[name] = {"schemaFormat": schema_format, "schema": aimed}
            payload = {"schemaFormat": schema_format, "schema": _payload(urn, f"{place}/schema")}
        messages[name] = _message(entry, schema, payload, bindings)
        key = name if "%" in urn else urn  # readers decode a reference once too often
        channels[key] = {
            "address": urn,
            "messages": {name: {"$ref": f"#/components/messages/{name}"}},
            **_bindings("channel", urn, bindings),
        }
        operations.update(_operations(urn, key, name, bindings))
    return {
        "asyncapi": SPECS[spec],
        "info": {"title": title, "version": version},
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": operations,
        "components": {"messages": messages, "schemas": schemas},
    }


def _payload(urn: str, place: str) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["job", "trace_id", "data", "meta", "attempts"],
        "properties": {
            "job": {"type": "string", "const": urn},
            "trace_id": _WORD,
            "data": {"$ref": place},
            "meta": {"$ref": "#/components/schemas/envelope.meta"},
            "attempts": _COUNT,
            "dead_letter": {"$ref": "#/components/schemas/envelope.deadLetter"},
        },
    }


def _message(
    entry: Entry, schema: Any, payload: dict[str, Any], bindings: Sequence[str]
) -> dict[str, Any]:
    said = schema if isinstance(schema, dict) else {}
    texts = {key: said[key] for key in ("title", "description") if isinstance(said.get(key), str)}
    extensions = {"x-owner": entry.owner, "x-status": entry.status}
    return {
        "name": entry.urn,
        **texts,
        "contentType": "application/json",
        "correlationId": {"location": "$message.payload#/trace_id"},
        "headers": {"$ref": "#/components/schemas/envelope.headers"},
        "payload": payload,
        **_bindings("message", entry.urn, bindings),
        **{key: value for key, value in extensions.items() if value},
    }


def _operations(urn: str, key: str, name: str, bindings: Sequence[str]) -> dict[str, Any]:
    channel = f"#/channels/{escape(key)}"
    return {
        f"{action}_{name}": {
            "action": action,
            "channel": {"$ref": channel},
            "messages": [{"$ref": f"{channel}/messages/{name}"}],
            **_bindings(action, urn, bindings),
        }
        for action in ("send", "receive")
    }


def _bindings(place: str, urn: str, chosen: Sequence[str]) -> dict[str, Any]:
    """Give the bindings of a channel, a message, or an operation that sends or receives."""
    made = {
        protocol: {**rows[place](urn), "bindingVersion": version}
        for protocol, (version, rows) in BINDINGS.items()
        if protocol in chosen and place in rows
    }
    return {"bindings": made} if made else {}


def aim_references(schema: Any, place: str, *, siblings: bool = False) -> Any:
    """Copy a self-contained schema so that its references lead to `place` in the document.

    What stands beside a `$ref` would be lost to readers that replace it, so the reference moves
    into an `allOf`. Draft-07 gives no meaning to its siblings but annotations: `siblings` is for
    the dialects that do.
    """
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    copied = _copy(schema, place, siblings=siblings)
    return {key: value for key, value in copied.items() if key not in ("$id", "$schema")}


def _copy(node: Any, place: str, *, siblings: bool) -> Any:
    if not isinstance(node, dict):
        return node
    out: dict[str, Any] = {}
    for keyword, value in node.items():
        shape = SUBSCHEMAS.get(keyword)
        if keyword == "$ref" and isinstance(value, str):
            out[keyword] = place + value[1:]
        elif isinstance(value, dict) and shape in ("map", "map-or-names"):
            out[keyword] = {
                name: _copy(item, place, siblings=siblings) for name, item in value.items()
            }
        elif isinstance(value, list) and shape in ("list", "one-or-list"):
            out[keyword] = [_copy(item, place, siblings=siblings) for item in value]
        elif shape in ("one", "one-or-list"):
            out[keyword] = _copy(value, place, siblings=siblings)
        else:
            out[keyword] = _literal(keyword, value)
    if "$ref" not in out or len(out) == 1:
        return out
    kept = {key: value for key, value in out.items() if siblings or _annotates(key)}
    reference = {"$ref": kept.pop("$ref", out["$ref"])}
    return {**kept, "allOf": [*kept.pop("allOf", ()), reference]} if kept else reference


def _literal(keyword: str, value: Any) -> Any:
    """Check a literal value; a `$ref` in it is refused, because AsyncAPI tools would follow it."""
    pending = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, dict) and isinstance(node.get("$ref"), str):
            raise Refused(
                f"{keyword} contains a literal $ref, which AsyncAPI tools would follow",
                code="asyncapi.literal",
            )
        pending.extend(node.values() if isinstance(node, dict) else ())
        pending.extend(node if isinstance(node, list) else ())
    return value


def _annotates(keyword: str) -> bool:
    return keyword in _ANNOTATIONS or keyword.startswith("x-")
