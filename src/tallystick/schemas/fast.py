"""A quick yes: a schema as a msgspec type, whose every value surely conforms.

    fast = compile_fast(schema)         None: the schema is outside the subset, ask the validator
    fast.accepts(b'{"order_id": 1}')    True: surely valid; False: doubtful, ask the validator

The type may be narrower than the schema and never wider. A member that the schema does not name,
`1.0` for an integer, a pattern that needs backtracking: all of these are only doubtful. Keywords
outside the tables below make the whole schema exact-only. A member that stands twice counts by its
last value, as in any decoder; who must know writes the value again and compares (`stream`).

`fast.type` may be a part of another msgspec type: an envelope and its data are then read at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor
from typing import Annotated, Any, Final, Literal, Union
from urllib.parse import unquote

import msgspec

from tallystick.schemas.fast_pattern import FORMATS, translate
from tallystick.schemas.refs import dialect_of, find_pointer

__all__ = ["Fast", "compile_fast"]

_SAYS_NOTHING: Final = frozenset({
    "$comment", "$defs", "$schema", "default", "definitions", "deprecated", "description",
    "examples", "readOnly", "title", "type", "writeOnly",
})  # fmt: skip
_KEYWORDS: Final[dict[str, frozenset[str]]] = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "minItems", "maxItems", "uniqueItems"}),
    "string": frozenset({"minLength", "maxLength", "pattern", "format"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
    "integer": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
    "boolean": frozenset(),
    "null": frozenset(),
}
_LISTED: Final = frozenset({"enum", "const"})
_MOST_TYPES: Final = 500
_EXACT_FLOAT: Final = 2**53
_INT64: Final = 2**63


class _OutsideError(Exception):
    """The schema says something that the type cannot say."""


@dataclass(frozen=True, slots=True)
class Fast:
    """A type whose values conform to the schema, and the question whether bytes hold one."""

    type: Any
    accepts: Callable[[bytes], bool]

    def accepts_value(self, value: Any) -> bool:
        """Tell whether a decoded value surely conforms; False means doubtful."""
        try:
            msgspec.convert(value, self.type)
        except (msgspec.ValidationError, RecursionError, ValueError):
            return False
        return True


def compile_fast(schema: Any, *, formats: bool | None = None) -> Fast | None:
    """Compile a self-contained schema that the validator takes; None outside the subset."""
    dialect = dialect_of(schema)
    asserted = dialect == "draft-07" if formats is None else formats
    try:
        kind = _Reading(schema, dialect, asserted).read(schema)
        decode = msgspec.json.Decoder(kind).decode
    except (_OutsideError, TypeError, ValueError, ArithmeticError, RecursionError):
        return None

    def accepts(raw: bytes) -> bool:
        try:
            decode(raw)
        except (msgspec.DecodeError, RecursionError, ValueError):
            return False
        return True

    return Fast(kind, accepts)


class _Reading:
    """One schema on its way to a type; references are followed, never into themselves."""

    def __init__(self, root: Any, dialect: str, formats: bool) -> None:
        self.root = root
        self.dialect = dialect
        self.formats = formats
        self.known: dict[int, Any] = {}
        self.open: set[int] = set()

    def read(self, schema: Any) -> Any:
        """Give the type of a subschema."""
        if schema is True or schema == {}:
            return Any
        if not isinstance(schema, dict) or id(schema) in self.open:
            raise _OutsideError
        if id(schema) not in self.known:
            if len(self.known) > _MOST_TYPES:
                raise _OutsideError
            self.open.add(id(schema))
            self.known[id(schema)] = self.make(schema)
            self.open.discard(id(schema))
        return self.known[id(schema)]

    def make(self, schema: dict[str, Any]) -> Any:
        if "$ref" in schema:
            return self.follow(schema)
        named = schema.get("type")
        said = {key for key in schema.keys() - _SAYS_NOTHING if not key.startswith("x-")}
        if schema is self.root:
            said.discard("$id")
        if named is None:
            if not said:
                return Any
            if "properties" not in said and not said <= _LISTED:
                raise _OutsideError
            named = "object" if "properties" in said else list(_KEYWORDS)
        types = [named] if isinstance(named, str) else list(named)
        if not _KEYWORDS.keys() >= set(types):
            raise _OutsideError
        if said & _LISTED:
            if not said <= _LISTED:
                raise _OutsideError
            return _listed(schema, types)
        if not said <= frozenset[str]().union(*(_KEYWORDS[one] for one in types)):
            raise _OutsideError
        if len({"null", *types}) > 2 and said & {"pattern", "format"}:
            raise _OutsideError  # msgspec 0.22 spoils memory when a pattern meets a list here
        kinds = [one for one in types if one != "integer" or "number" not in types]
        parts = [self.typed(schema, one) for one in kinds]
        return Union[tuple(parts)]  # noqa: UP007 - made of a list

    def follow(self, schema: dict[str, Any]) -> Any:
        reference = schema["$ref"]
        beside = schema.keys() - _SAYS_NOTHING - {"$ref"}
        if not isinstance(reference, str) or not reference.startswith("#/"):
            raise _OutsideError
        if self.dialect != "draft-07" and (beside or "type" in schema):
            raise _OutsideError
        try:
            return self.read(find_pointer(self.root, unquote(reference[1:])))
        except KeyError:
            raise _OutsideError from None

    def typed(self, schema: dict[str, Any], kind: str) -> Any:
        if kind == "object":
            return self.record(schema)
        if kind == "array":
            return self.items(schema)
        if kind == "string":
            return self.text(schema)
        if kind == "number":
            return _integer(schema) | _float(schema)
        return _integer(schema) if kind == "integer" else {"boolean": bool, "null": None}[kind]

    def record(self, schema: dict[str, Any]) -> Any:
        """Make a struct of the properties; a name that is not among them is doubtful."""
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        if not all(name in properties for name in required):
            raise _OutsideError
        fields: list[Any] = []
        names: dict[str, str] = {}
        for at, (name, inner) in enumerate(properties.items()):
            if inner is False:
                if name in required:
                    raise _OutsideError
                continue
            kind = self.read(inner)
            names[f"f{at}"] = name
            fields.append(
                (f"f{at}", kind)
                if name in required
                else (f"f{at}", kind | msgspec.UnsetType, msgspec.UNSET)
            )
        return msgspec.defstruct(
            "Record", fields, rename=names, kw_only=True, forbid_unknown_fields=True, gc=False
        )

    def items(self, schema: dict[str, Any]) -> Any:
        if schema.get("uniqueItems", False) is not False or isinstance(schema.get("items"), list):
            raise _OutsideError
        inner = self.read(schema.get("items", True))
        limits = _limits(schema, {"minItems": "min_length", "maxItems": "max_length"})
        return _bounded(list[inner], limits)  # type: ignore[valid-type]

    def text(self, schema: dict[str, Any]) -> Any:
        limits: dict[str, Any] = _limits(
            schema, {"minLength": "min_length", "maxLength": "max_length"}
        )
        pattern = translate(schema["pattern"]) if "pattern" in schema else None
        if "format" in schema and self.formats:
            if pattern is not None:
                raise _OutsideError
            pattern = FORMATS.get(schema["format"], "")
        if pattern == "":
            raise _OutsideError
        if pattern is not None:
            limits["pattern"] = pattern
        return _bounded(str, limits)


def _bounded(kind: Any, limits: dict[str, Any]) -> Any:
    return Annotated[kind, msgspec.Meta(**limits)] if limits else kind


def _limits(schema: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    limits = {names[key]: schema[key] for key in names if key in schema}
    if not all(type(one) is int and 0 <= one < _INT64 for one in limits.values()):
        raise _OutsideError
    return limits


def _listed(schema: dict[str, Any], types: list[str]) -> Any:
    """Give the texts, whole numbers and nulls of a list; its other values are doubtful."""
    values = [schema["const"]] if "const" in schema else schema["enum"]
    if len(_LISTED & schema.keys()) != 1:
        raise _OutsideError
    kinds = {str: {"string"}, int: {"integer", "number"}, type(None): {"null"}}
    kept = [
        one
        for one in values
        if kinds.get(type(one), set()) & set(types)
        and (type(one) is not int or -_INT64 <= one < _INT64)
    ]
    if not kept:
        raise _OutsideError
    return Literal[tuple(kept)]


def _integer(schema: dict[str, Any]) -> Any:
    """Bound whole numbers; a bound between two of them is moved inwards."""
    low = [ceil(schema["minimum"])] if "minimum" in schema else []
    low += [floor(schema["exclusiveMinimum"]) + 1] if "exclusiveMinimum" in schema else []
    high = [floor(schema["maximum"])] if "maximum" in schema else []
    high += [ceil(schema["exclusiveMaximum"]) - 1] if "exclusiveMaximum" in schema else []
    limits = {**({"ge": max(low)} if low else {}), **({"le": min(high)} if high else {})}
    if not all(-_INT64 <= one < _INT64 for one in limits.values()):
        raise _OutsideError
    return _bounded(int, limits)


def _float(schema: dict[str, Any]) -> Any:
    names = {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt"}
    limits = {}
    for keyword, name in names.items():
        if keyword in schema:
            limit = schema[keyword]
            if isinstance(limit, int) and abs(limit) > _EXACT_FLOAT:
                raise _OutsideError
            limits[name] = float(limit)
    if {"ge", "gt"} <= limits.keys() or {"le", "lt"} <= limits.keys():
        raise _OutsideError
    return _bounded(float, limits)
