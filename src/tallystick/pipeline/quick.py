"""A fast path to a verdict: a typed decoder compiled from the catalog, correct or undecided.

One tagged union reads the envelope and its data in one pass. It supports a subset of JSON Schema; a
schema with anything else is not in the union. If it accepts a message and writes the same bytes
back, the message is canonical and valid: every member is declared, none occurs twice, all are in
order. A message that it does not accept is undecided, not invalid, and goes to
`judge.judge_record`.

A float needs one more check, because the encoder does not always write it in canonical form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from tallystick.core.errors import Rejected
from tallystick.schemas.catalog import Catalog, self_contained
from tallystick.schemas.fast_pattern import translate
from tallystick.schemas.pii_names import name_kind
from tallystick.schemas.pii_walk import mark_of
from tallystick.schemas.refs import dialect_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Quick", "Shape", "compile_quick", "odd_float"]

_INT64: Final = 2**63
_Int64 = Annotated[int, msgspec.Meta(ge=-_INT64, le=_INT64 - 1)]
_SAID: Final = frozenset({
    "$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated",
    "readOnly", "writeOnly", "confluent:tags", "x-confluent-tags", "x-tags", "x-gdpr-sensitive",
})  # fmt: skip
_KEYWORDS: Final[Mapping[str, frozenset[str]]] = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "string": frozenset({"minLength", "maxLength", "pattern", "enum", "const"}),
    "integer": frozenset(
        {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "const"}
    ),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
    "boolean": frozenset(),
}
_LIMITS: Final = {
    "minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt",
    "minLength": "min_length", "maxLength": "max_length",
    "minItems": "min_length", "maxItems": "max_length",
}  # fmt: skip
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ODD_FLOAT: Final = re.compile(rb"[0-9][eE]|\.0[,}\]]|0\.00000").search


class _Unknown(Exception):
    """A keyword or a form that is not compiled."""


class Meta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """`meta` with the contract's own members and no other, in their order."""

    id: str
    queue: str
    lang: str
    schema_version: Literal[1]
    created_at: _Int64


@dataclass(frozen=True, slots=True)
class Shape:
    """What is known beforehand about the messages of one URN that the quick way accepts.

    `marked` are the places of marked fields with their category; `maskable` tells that masking
    them is all there is to mask, unless a value looks personal; `paths` are the declared ones.
    """

    urn: str
    has_float: bool
    marked: tuple[tuple[tuple[str, ...], str, str], ...]
    maskable: bool
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Quick:
    """The compiled union: `decode` raises on whatever is doubtful."""

    decode: Callable[[bytes], Any] | None
    encode: Callable[[Any], bytes]
    shapes: Mapping[type, Shape]


@dataclass(slots=True)
class _Found:
    has_float: bool
    marked: list[tuple[tuple[str, ...], str, str]]
    maskable: bool
    paths: list[str]


def compile_quick(catalog: Catalog) -> Quick:
    """Compile every schema of a catalog that lies in the subset."""
    kinds: dict[type, Shape] = {}
    for number, urn in enumerate(catalog.entries):
        schema = self_contained(catalog, urn)
        found = _Found(has_float=False, marked=[], maskable=True, paths=[])
        try:
            dialect_of(schema)
            if "$ref" in schema or not urn.strip() or mark_of(schema) is not None:
                continue
            data = _kind(schema, (), "", found, f"Data{number}")
        except (_Unknown, Rejected, TypeError):
            continue
        if not isinstance(data, type) or not issubclass(data, msgspec.Struct):
            continue
        fields: list[Any] = [
            ("trace_id", str), ("data", data), ("meta", Meta), ("attempts", _Int64),
        ]  # fmt: skip
        kind = msgspec.defstruct(
            f"Message{number}", fields, tag_field="job", tag=urn,
            forbid_unknown_fields=True, gc=False,
        )  # fmt: skip
        kinds[kind] = Shape(
            urn, found.has_float, tuple(found.marked), found.maskable, tuple(found.paths)
        )
    encode = msgspec.json.Encoder().encode
    if not kinds:
        return Quick(None, encode, kinds)
    union: Any = None
    for kind in kinds:
        union = kind if union is None else union | kind
    return Quick(msgspec.json.Decoder(union).decode, encode, kinds)


def odd_float(data: bytes) -> bool:
    """Tell whether a float may stand there in a form that is not the canonical one."""
    return _ODD_FLOAT(data) is not None


def _kind(node: Any, steps: tuple[str, ...], path: str, found: _Found, name: str) -> Any:
    """Give the type that accepts exactly what a schema accepts and its encoder writes back."""
    if not isinstance(node, dict):
        raise _Unknown
    types = node.get("type")
    nullable = isinstance(types, list) and len(types) == 2 and "null" in types
    if nullable:
        types = next((one for one in list(types or ()) if one != "null"), None)
    if not isinstance(types, str) or types not in _KEYWORDS:
        raise _Unknown
    if not node.keys() - {"type"} <= _KEYWORDS[types] | _SAID:
        raise _Unknown
    mark = mark_of(node)
    below = found
    if mark is not None:  # it covers all below it, so nothing there needs a look of its own
        found.marked.append((steps, path, mark))
        below = _Found(has_float=False, marked=[], maskable=True, paths=found.paths)
    if nullable and ("enum" in node or "const" in node):
        raise _Unknown
    kind: Any = _OF[types](node, steps, path, below, name)
    found.has_float |= below.has_float
    if types not in ("object", "array") and mark is None:
        _note_name(node, steps, types, found)
    return kind | None if nullable else kind


def _note_name(node: Any, steps: tuple[str, ...], types: str, found: _Found) -> None:
    """Leave a field that its name betrays and nobody marked to the exact masker."""
    names = [step for step in steps if step != "[]"]
    named = name_kind(names[-1] if names else "", names[-2] if len(names) > 1 else "")
    if named and "enum" not in node and "const" not in node:
        found.maskable = found.maskable and types not in named.types and types != "number"


def _object(node: Any, steps: tuple[str, ...], path: str, found: _Found, name: str) -> Any:
    properties = node.get("properties")
    required = node.get("required", [])
    if not isinstance(properties, dict) or not set(required) <= set(properties):
        raise _Unknown
    fields: list[Any] = []
    for member in sorted(properties):
        if not _NAME.fullmatch(member) or member.startswith("__"):
            raise _Unknown
        here = f"{path}.{member}" if path else member
        found.paths.append(here)
        kind = _kind(properties[member], (*steps, member), here, found, f"{name}_{member}")
        if member in required:
            fields.append((member, kind))
        else:
            fields.append((member, kind | UnsetType, msgspec.field(default=UNSET)))
    return msgspec.defstruct(
        name, [(f"f_{one[0]}", *one[1:]) for one in fields],
        rename={f"f_{one[0]}": one[0] for one in fields},
        forbid_unknown_fields=True, kw_only=True, gc=False,
    )  # fmt: skip


def _array(node: Any, steps: tuple[str, ...], path: str, found: _Found, name: str) -> Any:
    if not isinstance(node.get("items"), dict):
        raise _Unknown
    kind: Any = list.__class_getitem__(
        _kind(node["items"], (*steps, "[]"), f"{path}[]", found, name)
    )
    limits = _limits(node, int)
    return Annotated[kind, msgspec.Meta(**limits)] if limits else kind


def _string(node: Any, *_: Any) -> Any:
    listed = _listed(node, str)
    if listed is not None:
        return listed
    limits = _limits(node, int)
    if "pattern" in node:
        limits["pattern"] = translate(node["pattern"])
        if not limits["pattern"]:
            raise _Unknown
    return Annotated[str, msgspec.Meta(**limits)] if limits else str


def _integer(node: Any, *_: Any) -> Any:
    listed = _listed(node, int)
    if listed is not None:
        return listed
    return _whole(_limits(node, int))


def _whole(limits: dict[str, Any]) -> Any:
    """Give the type of whole numbers in 64 bits: a longer one may be too long for the contract."""
    if not limits.keys() & {"ge", "gt"}:
        limits = {**limits, "ge": -_INT64}
    if not limits.keys() & {"le", "lt"}:
        limits = {**limits, "le": _INT64 - 1}
    return Annotated[int, msgspec.Meta(**limits)]


def _number(node: Any, _steps: Any, _path: str, found: _Found, _name: str) -> Any:
    found.has_float = True
    whole = _limits(node, int)
    if any(abs(one) > 2**53 for one in whole.values()):
        raise _Unknown
    real: dict[str, Any] = {name: float(one) for name, one in whole.items()}
    return _whole(whole) | (Annotated[float, msgspec.Meta(**real)] if real else float)


def _boolean(*_: Any) -> Any:
    return bool


_OF: Final[Mapping[str, Callable[..., Any]]] = {
    "object": _object, "array": _array, "string": _string, "integer": _integer,
    "number": _number, "boolean": _boolean,
}  # fmt: skip


def _limits(node: Any, kind: type) -> dict[str, Any]:
    limits: dict[str, Any] = {_LIMITS[word]: node[word] for word in _LIMITS if word in node}
    if any(type(one) is not kind or not _fits(one) for one in limits.values()):
        raise _Unknown
    if {"ge", "gt"} <= limits.keys() or {"le", "lt"} <= limits.keys():
        raise _Unknown
    return limits


def _fits(number: Any) -> bool:
    return bool(-_INT64 < number < _INT64)


def _listed(node: Any, kind: type) -> Any:
    if "enum" not in node and "const" not in node:
        return None
    if "enum" in node and "const" in node:
        raise _Unknown
    if node.keys() & _LIMITS.keys() or "pattern" in node:
        raise _Unknown
    values = node["enum"] if "enum" in node else [node["const"]]
    if not values or any(type(one) is not kind for one in values):
        raise _Unknown
    if kind is int and any(abs(one) >= _INT64 for one in values):
        raise _Unknown
    return Literal[tuple(dict.fromkeys(values))]
