"""The operations that need only the snapshot: one function for each operation.

Every subject has exactly one version: version 1, which is also `latest`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import orjson

from tallystick import __version__
from tallystick.server.answers import JSON, Answer, Fault, give
from tallystick.server.metrics import CONTENT_TYPE, Metrics, render_metrics
from tallystick.server.openapi import build_openapi
from tallystick.server.page import load_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tallystick.server.pool import Pool
    from tallystick.server.reload import Store
    from tallystick.server.snapshot import Snapshot, Subject

__all__ = ["READS", "Call", "Service", "find_subject", "is_latest", "read_version"]


@dataclass(slots=True)
class Service:
    """Shared by the handlers: the registry, the workers, the level and the metrics."""

    store: Store
    pool: Pool
    level: str
    rules: str
    metrics: Metrics = field(default_factory=Metrics)

    @property
    def snapshot(self) -> Snapshot:
        """Give the registry that is served now."""
        return self.store.snapshot


@dataclass(frozen=True, slots=True)
class Call:
    """One request: decoded path segments, checked query parameters, body, accepted types."""

    path: Mapping[str, str]
    query: Mapping[str, Any]
    body: bytes = b""
    accept: str = ""


def find_subject(service: Service, call: Call) -> Subject:
    """Give the subject that the path names."""
    subject = service.snapshot.subjects.get(call.path["subject"])
    if subject is None:
        raise Fault(40401, call.path["subject"])
    return subject


def read_version(text: str) -> int:
    """Read a version as Confluent does: `latest` (in any case) and -1 mean the last one."""
    word = text.strip()
    if word.lower() == "latest" or word == "-1":
        return 1
    if word.isascii() and word.isdecimal() and len(word) <= 10 and 1 <= int(word) < 2**31:
        return int(word)
    raise Fault(42202, text)


def is_latest(text: str) -> bool:
    """Tell whether a version is `latest` or -1."""
    return text.strip().lower() in ("latest", "-1")


def _find_version(service: Service, call: Call) -> Subject:
    subject = find_subject(service, call)
    number = read_version(call.path["version"])
    if number != 1:
        raise Fault(40402, number)
    return subject


def _find_id(service: Service, call: Call) -> Subject:
    text = call.path["id"]
    plain = text.isascii() and text.isdecimal() and len(text) <= 10
    subject = service.snapshot.by_id.get(int(text)) if plain else None
    if subject is None:
        raise Fault(40403, f"{text} " if plain else "")
    return subject


def _cut(items: Sequence[Any], query: Mapping[str, Any]) -> Sequence[Any]:
    start, count = query["offset"], query["limit"]
    return items[start:] if count < 0 else items[start : start + count]


def _only_deleted(query: Mapping[str, Any]) -> bool:
    return bool(query.get("deletedOnly") or query.get("deleted_only"))


def _prefixed(service: Service, query: Mapping[str, Any]) -> Iterable[Subject]:
    """Give the subjects with a prefix; `:*:` is Confluent's word for every context."""
    prefix = query["subjectPrefix"].removeprefix(":*:")
    return (one for one in service.snapshot.subjects.values() if one.urn.startswith(prefix))


def _subjects(service: Service, call: Call) -> Answer:
    names = [] if _only_deleted(call.query) else [one.urn for one in _prefixed(service, call.query)]
    return give(_cut(names, call.query))


def _versions(service: Service, call: Call) -> Answer:
    find_subject(service, call)
    return give(_cut([] if _only_deleted(call.query) else [1], call.query))


def _version(service: Service, call: Call) -> Answer:
    return Answer(200, _find_version(service, call).body)


def _version_schema(service: Service, call: Call) -> Answer:
    return Answer(200, _find_version(service, call).text.encode())


def _referenced_by(service: Service, call: Call) -> Answer:
    _find_version(service, call)
    return give([])


def _schemas(service: Service, call: Call) -> Answer:
    bodies = [one.body for one in _prefixed(service, call.query)]
    return Answer(200, b"[" + b",".join(_cut(bodies, call.query)) + b"]")


def _schema(service: Service, call: Call) -> Answer:
    value: dict[str, Any] = {"schemaType": "JSON", "schema": _find_id(service, call).text}
    if call.query["fetchMaxId"]:
        value["maxId"] = max(service.snapshot.by_id)
    return give(value)


def _metadata(service: Service, call: Call) -> Answer:
    """Give the version if the pairs match its owner and status (Confluent's metadata)."""
    subject = find_subject(service, call)
    known = {"owner": subject.entry.owner, "status": subject.entry.status}
    asked = zip(call.query["key"], call.query["value"], strict=False)
    if any(known.get(key) != value for key, value in asked):
        raise Fault(40403, "")
    return Answer(200, subject.body)


def _find_guid(service: Service, call: Call) -> list[Subject]:
    guid = call.path["guid"].lower()
    found = [one for one in service.snapshot.subjects.values() if one.guid == guid]
    if not found:
        raise Fault(40403, "")
    return found


def _schema_by_guid(service: Service, call: Call) -> Answer:
    subject = _find_guid(service, call)[0]
    return give({"schemaType": "JSON", "schema": subject.text, "guid": subject.guid})


def _guid_ids(service: Service, call: Call) -> Answer:
    return give([one.id for one in _find_guid(service, call)])


def _schema_text(service: Service, call: Call) -> Answer:
    return Answer(200, _find_id(service, call).text.encode())


def _schema_subjects(service: Service, call: Call) -> Answer:
    return give(_cut([_find_id(service, call).urn], call.query))


def _schema_versions(service: Service, call: Call) -> Answer:
    pair = {"subject": _find_id(service, call).urn, "version": 1}
    return give(_cut([pair], call.query))


def _config(service: Service, _: Call) -> Answer:
    return give({"compatibilityLevel": service.level})


def _subject_config(service: Service, call: Call) -> Answer:
    if not call.query["defaultToGlobal"]:
        find_subject(service, call)
    return _config(service, call)


def _mode(_: Service, __: Call) -> Answer:
    return give({"mode": "READONLY"})


def _subject_mode(service: Service, call: Call) -> Answer:
    known = call.path["subject"] in service.snapshot.subjects
    if not known and not call.query["defaultToGlobal"]:
        raise Fault(40409, call.path["subject"])
    return _mode(service, call)


def _refuse(_: Service, __: Call) -> Answer:
    raise Fault(42205)


def _page(_: Service, call: Call) -> Answer:
    """Give the page; a client that asks for JSON gets an empty object, as from Confluent."""
    if "json" in call.accept and "text/html" not in call.accept:
        return give({})
    return load_page()


def _catalog(service: Service, _: Call) -> Answer:
    body = {
        "level": service.level,
        "stale": service.store.error,
        "subjects": orjson.Fragment(service.snapshot.listing),
    }
    return give(body, kind=JSON)


def _health(service: Service, _: Call) -> Answer:
    store = service.store
    return give(
        {
            "status": "stale" if store.error else "ok",
            "error": store.error,
            "subjects": len(store.snapshot.subjects),
            "loaded_at": datetime.fromtimestamp(store.loaded_at, UTC).isoformat(),
            "compatibility": service.level,
            "rules": service.rules,
            "ids_locked": store.snapshot.locked,
            "ids_not_in_lock": store.snapshot.unlocked,
        },
        kind=JSON,
    )


def _metrics(service: Service, _: Call) -> Answer:
    text = render_metrics(service.metrics, service.store, service.pool)
    return Answer(200, text.encode(), CONTENT_TYPE)


def _openapi(service: Service, _: Call) -> Answer:
    examples: dict[str, Any] = {"version": "latest", "namespace": "-", "name": "orders"}
    first = next(iter(service.snapshot.subjects.values()), None)
    if first is not None:
        examples |= {"subject": first.urn, "id": str(first.id), "guid": first.guid,
                     "schema": first.text}  # fmt: skip
    return give(build_openapi(examples), kind=JSON)


_SCOPE: Final = {"path": [], "clusters": {"schema-registry-cluster": "tallystick"}}

READS: Final[dict[str, Callable[[Service, Call], Answer]]] = {
    "page": _page,
    "subjects": _subjects,
    "versions": _versions,
    "version": _version,
    "version_schema": _version_schema,
    "referenced_by": _referenced_by,
    "schemas": _schemas,
    "types": lambda _, __: give(["JSON"]),
    "schema": _schema,
    "schema_text": _schema_text,
    "schema_subjects": _schema_subjects,
    "schema_versions": _schema_versions,
    "metadata": _metadata,
    "schema_by_guid": _schema_by_guid,
    "guid_ids": _guid_ids,
    "associations": lambda _, __: give([]),
    "config": _config,
    "subject_config": _subject_config,
    "mode": _mode,
    "subject_mode": _subject_mode,
    "contexts": lambda _, call: give(_cut(["."], call.query)),
    "metadata_id": lambda _, __: give({"id": "", "scope": _SCOPE}),
    "metadata_version": lambda _, __: give({"version": __version__, "commitId": ""}),
    "delete_subject": _refuse,
    "delete_version": _refuse,
    "set_config": _refuse,
    "delete_config": _refuse,
    "set_subject_config": _refuse,
    "delete_subject_config": _refuse,
    "set_mode": _refuse,
    "delete_mode": _refuse,
    "set_subject_mode": _refuse,
    "delete_subject_mode": _refuse,
    "catalog": _catalog,
    "health": _health,
    "metrics": _metrics,
    "openapi": _openapi,
}
"""The operations that need no worker."""
