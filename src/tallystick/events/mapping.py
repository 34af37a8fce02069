"""Convert a message to an event and an event to a message, both without loss.

| message | event |
|---|---|
| `job` (the URN) | `type` |
| `meta.id` | `id` |
| `meta.created_at` (ms) | `time` |
| `meta.queue` | extension `queue`; `source` is `/queues/` and its name |
| `meta.lang`, `meta.schema_version` | extensions `lang`, `schemaversion` |
| `trace_id`, `attempts` | extensions `traceid`, `attempts` |
| `data` | `data` under `application/json` |
| all other differences | extension `envelope`, as JSON |

An event may have parts that a message has no place for: a subject, other data, no time. They go
into `meta.ext.cloudevents` and are restored: `attributes` that differ from the table (null: unset),
and `data` if it is not a JSON object.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import quote

from tallystick.core.canonical import canonical, canonical_message
from tallystick.core.envelope import Envelope, decode
from tallystick.core.errors import Refused, Rejected
from tallystick.events.event import CORE, Event, make_of
from tallystick.events.neutral import (
    data_from_neutral,
    data_to_neutral,
    value_from_neutral,
    value_to_neutral,
)
from tallystick.events.payload import ABSENT, IMPLIED, read_json
from tallystick.events.timestamp import Timestamp
from tallystick.events.values import check

__all__ = ["to_envelope", "to_event"]

_REST: Final = "envelope"
_VENDOR: Final = "cloudevents"
_TOP: Final = {"trace_id": "traceid", "attempts": "attempts"}
_META: Final = {"queue": "queue", "lang": "lang", "schema_version": "schemaversion"}
_TYPES: Final = {"attempts": int, "schema_version": int}
_FALLBACK: Final = {"queue": "default", "lang": "python", "schema_version": 1, "attempts": 0}
_NOT_PLAIN: Final = re.compile("[^\x20-\x7e]")


def to_event(envelope: Envelope) -> Event:
    """Convert a message to an event; raise `Refused` without an id or with an invalid name."""
    document = envelope.document
    foreign = _foreign(document)
    if foreign is not None:
        try:
            event = _restored(_without_foreign(document), foreign)
            if _same_message(to_envelope(event).document, document):
                return event
        except (Refused, Rejected):  # not what we write there: then it is a member like others
            foreign = None
    return _plain_event(document)


def to_envelope(event: Event) -> Envelope:
    """Convert an event to a message."""
    document = _as_read(_document(event, _rest(event.extensions.get(_REST))))
    difference = _differences(event, _plain_event(document))
    if difference and not isinstance(document["meta"].get("ext", {}), dict):
        document = _as_read(_document(event, {}))  # no place beside that `ext`
        difference = _differences(event, _plain_event(document))
    if difference:
        document = _with_foreign(document, difference)
    return decode(canonical_message(document))


def _as_read(document: dict[str, Any]) -> dict[str, Any]:
    """Give a message as its reader will see it: with the URN trimmed."""
    try:
        return decode(canonical_message(document)).document
    except Rejected as error:
        raise Refused(
            f"type: cannot be the URN of a message: {error.message}",
            code=error.code,
            pointer="/type",
        ) from None


def _same_message(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    return canonical_message(ours) == canonical_message(theirs)


def _plain_event(document: dict[str, Any]) -> Event:
    """Map by the table: what maps exactly is an attribute, all else is the rest."""
    meta = document.get("meta")
    members = dict(meta) if isinstance(meta, dict) else {}
    top = {name: value for name, value in document.items() if name not in ("job", "meta")}
    attributes: dict[str, Any] = {"specversion": "1.0", "type": document["job"]}
    attributes["id"] = members.pop("id", None)
    absent = [name for name in (*_TOP, "data") if name not in top]
    absent += [name for name in (*_META, "created_at") if name not in members]
    for place, table in ((top, _TOP), (members, _META)):
        for name, extension in table.items():
            value = place.get(name)
            if type(value) is _TYPES.get(name, str) and not check(value):
                attributes[extension] = place.pop(name)
    queue = attributes.get("queue", "")
    attributes["source"] = f"/queues/{quote(queue, safe='')}"
    time = _time(members.get("created_at"))
    if time is not None:
        attributes["time"] = time
        del members["created_at"]
    data: Any = ABSENT
    if isinstance(top.get("data"), dict):
        data = top.pop("data")
        attributes["datacontenttype"] = IMPLIED
    rest = {"absent": absent, "meta": members, "top": top}
    if any(rest.values()):
        attributes[_REST] = _plain_text({name: part for name, part in rest.items() if part})
    return make_of(attributes, data)


def _time(created_at: Any) -> Timestamp | None:
    if type(created_at) is not int or created_at < 0:
        return None
    try:
        return Timestamp.of_nanoseconds(created_at * 1_000_000)
    except Refused:
        return None


def _plain_text(rest: Any) -> str:
    """Write JSON in its canonical order and printable ASCII, which every String can hold."""
    return _NOT_PLAIN.sub(_escape, canonical(rest).decode())


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


def _document(event: Event, rest: dict[str, Any]) -> dict[str, Any]:
    """Map back by the table; what an event does not say gets a plain value."""
    extensions = event.extensions
    absent = rest.get("absent", [])
    meta: dict[str, Any] = {"id": event.id}
    document: dict[str, Any] = {"job": event.type}
    for place, table in ((document, _TOP), (meta, _META)):
        for name, extension in table.items():
            value = extensions.get(extension)
            if type(value) is _TYPES.get(name, str):
                place[name] = value
            else:
                place[name] = _FALLBACK.get(name, event.id)
    meta["created_at"] = max(event.time.milliseconds, 0) if event.time else 0
    document["data"] = event.data if _is_object(event) else {}
    for name in absent:
        document.pop(name, None)
        meta.pop(name, None)
    document |= rest.get("top", {})
    return {**document, "meta": meta | rest.get("meta", {})}


def _is_object(event: Event) -> bool:
    return isinstance(event.data, dict) and event.datacontenttype in (None, IMPLIED)


def _rest(text: Any) -> dict[str, Any]:
    """Read the rest of a message; what we did not write is none."""
    if not isinstance(text, str):
        return {}
    try:
        rest = read_json(text.encode())
    except Rejected:
        return {}
    kinds = {"absent": list, "meta": dict, "top": dict}
    fits = isinstance(rest, dict) and all(
        name in kinds and isinstance(part, kinds[name]) for name, part in rest.items()
    )
    if not fits or {"job", "meta"} & rest.get("top", {}).keys() or "id" in rest.get("meta", {}):
        return {}
    return rest  # type: ignore[no-any-return]


def _differences(event: Event, plain: Event) -> dict[str, Any]:
    """Give what the table does not bring back."""
    ours, theirs = event.attributes, plain.attributes
    changed: dict[str, Any] = {}
    for name in (*ours, *theirs):
        mine, other = ours.get(name), theirs.get(name)
        if type(mine) is not type(other) or str(mine) != str(other):
            changed[name] = _attribute_to_neutral(name, mine)
    difference: dict[str, Any] = {"attributes": changed} if changed else {}
    if event.data is ABSENT:
        if plain.data is not ABSENT:
            difference["data"] = None
    elif not _is_object(event):
        difference["data"] = data_to_neutral(event)
    return difference


def _attribute_to_neutral(name: str, value: Any) -> Any:
    if value is None:
        return None
    return str(value) if name in CORE else value_to_neutral(value)


def _restored(document: dict[str, Any], difference: dict[str, Any]) -> Event:
    plain = _plain_event(document)
    attributes: dict[str, Any] = plain.attributes
    for name, value in difference.get("attributes", {}).items():
        attributes[name] = (
            value if value is None or name in CORE else value_from_neutral(name, value)
        )
    data = plain.data
    if "data" in difference:
        data = data_from_neutral(difference["data"], attributes)
    return make_of(attributes, data)


def _foreign(document: dict[str, Any]) -> dict[str, Any] | None:
    """Give what an event left in `meta.ext.cloudevents`, if it looks like that."""
    value: Any = document
    for name in ("meta", "ext", _VENDOR):
        value = value.get(name) if isinstance(value, dict) else None
    if not isinstance(value, dict) or not value or value.keys() - {"attributes", "data"}:
        return None
    return value if isinstance(value.get("attributes", {}), dict) else None


def _without_foreign(document: dict[str, Any]) -> dict[str, Any]:
    meta = dict(document["meta"])
    meta["ext"] = {name: value for name, value in meta["ext"].items() if name != _VENDOR}
    if not meta["ext"]:
        del meta["ext"]
    return {**document, "meta": meta}


def _with_foreign(document: dict[str, Any], difference: dict[str, Any]) -> dict[str, Any]:
    meta = document["meta"]
    return {**document, "meta": {**meta, "ext": {**meta.get("ext", {}), _VENDOR: difference}}}
