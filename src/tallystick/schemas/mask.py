"""Mask a message for a log: a value that is not proven harmless is masked, nothing else changes.

`plan_payload` and `plan_envelope` decide: they give the places to redact. `splice` cuts those out
of the bytes of the message, so that every other byte (white space, `1.10`, 9007199254740993) stays.

A value is harmless when a schema declares its place, no schema that may apply there marks it (or
anything above it), its type is one that the schemas name (`{}` names none), and neither its name
nor its text nor, for a number, its check digits betray personal data. Under `REFERENCE` (the
drop-in `bqschema`) only marks count: a marked value anywhere, and a value of the wrong shape where
marks lie below.

A masked string keeps its first character when it is long enough that this tells little: at least
`keep_from` characters. All else, and a member's name that is itself personal, becomes `***`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tallystick.schemas.mask_spans import Place, find_spans
from tallystick.schemas.pii_names import name_kind
from tallystick.schemas.pii_values import contains_personal, value_kind
from tallystick.schemas.pii_walk import (
    Spot,
    gather,
    item_spots,
    mark_of,
    member_spots,
    steps,
    types_of,
)
from tallystick.schemas.validate import is_envelope
from tallystick.schemas.values import same

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


__all__ = [
    "FAIL_CLOSED",
    "REFERENCE",
    "Policy",
    "Redaction",
    "mask_message",
    "plan_envelope",
    "plan_payload",
    "splice",
]

_STARS: Final = "***"
_TEXT: Final = {"type": "string"}
_INTEGER: Final = {"type": "integer"}
_QUOTED: Final = {"type": ["string", "null"], "x-gdpr-sensitive": True}
_ENVELOPE: Final[dict[str, Any]] = {
    "properties": {
        "job": _TEXT, "urn": _TEXT, "trace_id": _TEXT, "attempts": _INTEGER,
        "meta": {"type": "object", "properties": {
            "id": _TEXT, "queue": _TEXT, "lang": _TEXT, "schema_version": _INTEGER,
            "created_at": _INTEGER,
        }},
        "dead_letter": {"type": ["object", "null"], "properties": {
            "reason": _TEXT, "error": _QUOTED, "exception": _QUOTED, "failed_at": _INTEGER,
            "original_queue": _TEXT, "attempts": _INTEGER, "lang": _TEXT,
        }},
    }
}  # fmt: skip
"""What stands around `data`. The texts of an error may quote the payload, so they are marked."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How careful to be: whether what is not declared or looks personal goes, and what is short."""

    fail_closed: bool
    keep_from: int


FAIL_CLOSED: Final = Policy(fail_closed=True, keep_from=4)
REFERENCE: Final = Policy(fail_closed=False, keep_from=2)


@dataclass(frozen=True, slots=True)
class Redaction:
    """A place to redact: the value there, or the member's name (`is_name`), and the new text."""

    path: Place
    text: str
    is_name: bool = False


@dataclass(frozen=True, slots=True)
class _Seen:
    path: Place
    value: Any
    spots: tuple[Spot, ...]
    name: str
    parent: str
    declared: bool


def plan_payload(schema: Any, value: Any, policy: Policy = FAIL_CLOSED) -> tuple[Redaction, ...]:
    """Decide what to redact in a payload, given its self-contained schema."""
    return _plan(schema, (), value, policy)


def plan_envelope(
    schema: Any, message: Mapping[str, Any], policy: Policy = FAIL_CLOSED
) -> tuple[Redaction, ...]:
    """Decide what to redact in an envelope; under `REFERENCE` that is in `data` alone."""
    found = _plan(schema, ("data",), message.get("data"), policy)
    if policy.fail_closed:
        around = {name: item for name, item in message.items() if name != "data"}
        found += _plan(_ENVELOPE, (), around, policy)
    return found


def mask_message(raw: bytes, message: Any, schema: Any, policy: Policy = FAIL_CLOSED) -> bytes:
    """Mask the bytes of a message that has been read: an envelope, or else a bare payload."""
    plan = plan_envelope if is_envelope(message) else plan_payload
    return splice(raw, plan(schema, message, policy))


def _plan(schema: Any, path: Place, value: Any, policy: Policy) -> tuple[Redaction, ...]:
    found: list[Redaction] = []
    pending = [_Seen(path, value, gather(schema, [Spot("", schema)]), "", "", declared=True)]
    while pending:
        place = pending.pop()
        if _must_go(schema, place, policy):
            found.append(Redaction(place.path, _masked(place.value, policy)))
        elif isinstance(place.value, dict):
            pending.extend(_members(schema, place))
            found.extend(_names(schema, place) if policy.fail_closed else ())
        elif isinstance(place.value, list):
            pending.extend(
                _Seen((*place.path, at), item, below, place.name, place.parent, _declares(below))
                for at, item in enumerate(place.value)
                for below in (item_spots(schema, place.spots, at),)
            )
    return tuple(found)


def _members(schema: Any, place: _Seen) -> list[_Seen]:
    return [
        _Seen((*place.path, name), item, below, name, place.name, _declares(below))
        for name, item in place.value.items()
        for below in (member_spots(schema, place.spots, name),)
    ]


def _declares(spots: Sequence[Spot]) -> bool:
    return any(spot.declares for spot in spots)


def _must_go(schema: Any, place: _Seen, policy: Policy) -> bool:
    value, spots = place.value, place.spots
    if any(mark_of(spot.node) is not None for spot in spots):
        return True
    types = types_of(spots)
    fits = not types.isdisjoint(_types_of_value(value))
    opaque = isinstance(value, str) and any(map(_is_encoded, spots))
    if not policy.fail_closed:
        return (opaque or (bool(types) and not fits)) and _has_marks(schema, spots)
    if not place.declared:
        return True
    if value is None or _is_listed(spots, value):
        return False
    if not types and isinstance(value, dict | list):
        return False  # what is in it is judged by itself, and nothing declares it
    if opaque or not fits:
        return True
    if isinstance(value, bool | dict | list):
        return False
    named = name_kind(place.name, place.parent)
    if named and not named.types.isdisjoint(_types_of_value(value)):
        return True
    return contains_personal(value) if isinstance(value, str) else bool(value_kind(value))


def _types_of_value(value: Any) -> frozenset[str]:
    if isinstance(value, bool):
        return frozenset({"boolean"})
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return frozenset({"integer", "number"})
    name = {float: "number", str: "string", dict: "object", list: "array"}.get(type(value), "null")
    return frozenset({name})


def _is_encoded(spot: Spot) -> bool:
    """Tell whether a schema says that a string holds another document."""
    return isinstance(spot.node, dict) and any(word.startswith("content") for word in spot.node)


def _is_listed(spots: Sequence[Spot], value: Any) -> bool:
    """Tell whether the schemas write the value out themselves: then it tells nothing new."""
    for spot in spots:
        node = spot.node
        if spot.declares and isinstance(node, dict):
            listed = node.get("enum")
            options = [*(listed if isinstance(listed, list) else ()),
                       *([node["const"]] if "const" in node else ())]  # fmt: skip
            if any(same(value, option) for option in options):
                return True
    return False


def _has_marks(schema: Any, spots: Sequence[Spot]) -> bool:
    seen: set[str] = set()
    pending = list(spots)
    while pending:
        spot = pending.pop()
        if spot.pointer in seen:
            continue
        seen.add(spot.pointer)
        if mark_of(spot.node) is not None:
            return True
        pending.extend(gather(schema, [spot]))
        pending.extend(below for group in steps([spot]).values() for below in group)
    return False


def _masked(value: Any, policy: Policy) -> str:
    if isinstance(value, str) and len(value) >= policy.keep_from:
        return value[0] + _STARS
    return _STARS


def _names(schema: Any, place: _Seen) -> list[Redaction]:
    """Mask the names of members that are personal data themselves: a map keyed by e-mail."""
    marked = any(
        mark_of(spot.node) is not None
        for below in (steps(place.spots).get("{keys}", []),)
        for spot in gather(schema, below)
    )
    written = {
        name
        for spot in place.spots
        if isinstance(spot.node, dict) and isinstance(spot.node.get("properties"), dict)
        for name in spot.node["properties"]
    }
    found: list[Redaction] = []
    for name in place.value:
        if name not in written and (marked or contains_personal(name)):
            number = len(found) + 1
            text = _STARS if number == 1 else f"{_STARS}{number}"
            while text in place.value:
                text += "*"
            found.append(Redaction((*place.path, name), text, is_name=True))
    return found


def splice(raw: bytes, redactions: Sequence[Redaction]) -> bytes:
    """Cut the redactions out of a JSON text; every other byte stays as it came."""
    text = raw.decode()
    where = find_spans(text)
    cuts = sorted(
        (*(where[one.path][2:] if one.is_name else where[one.path][:2]), one.text)
        for one in redactions
    )
    out, done = [], 0
    for start, end, stars in cuts:
        out += [text[done:start], json.dumps(stars, ensure_ascii=False)]
        done = end
    return "".join([*out, text[done:]]).encode()
