"""The fields of a schema for the catalog page: path, type, required, mark of personal data.

Paths are written as in the inventory: `profile.full_name`, `addresses[].line`; a member named
by a pattern is `{pattern}`, one of any other name `*`. The walk goes through `$ref`, combinators
and conditions. A schema that contains itself is listed once and not followed again, and one that
is reached twice at the same path is walked once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tallystick.schemas.refs import find_pointer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Field", "list_fields"]

_MOST: Final = 2_000
"""Maximum number of listed fields of a schema."""
_IN_PLACE: Final = ("allOf", "anyOf", "oneOf", "if", "then", "else")


@dataclass(frozen=True, slots=True)
class Field:
    """One field; `sensitive` is the category, `yes` when it has none, empty when unmarked."""

    path: str
    type: str
    required: bool
    sensitive: str
    description: str


@dataclass(frozen=True, slots=True)
class _Tree:
    """The whole schema, and the pairs of subschema and path that were walked already."""

    root: Any
    walked: set[tuple[int, str]]


def list_fields(schema: Any) -> tuple[Field, ...]:
    """List the fields of a self-contained schema, in the order in which they stand."""
    found: dict[str, Field] = {}
    for field in _walk(schema, _Tree(schema, set()), "", frozenset()):
        known = found.get(field.path)
        found[field.path] = field if known is None else _merge(known, field)
        if len(found) == _MOST:
            break
    return tuple(found.values())


def _merge(one: Field, other: Field) -> Field:
    types = dict.fromkeys([*one.type.split(" | "), *other.type.split(" | ")])
    return Field(
        one.path,
        " | ".join(name for name in types if name != "any") or "any",
        one.required or other.required,
        one.sensitive or other.sensitive,
        one.description or other.description,
    )


def _walk(node: Any, tree: _Tree, path: str, within: frozenset[int]) -> Iterator[Field]:
    """Give the fields below a schema; `within` holds the schemas we are already inside."""
    if not isinstance(node, dict) or id(node) in within or (id(node), path) in tree.walked:
        return
    tree.walked.add((id(node), path))
    within = within | {id(node)}
    target = _follow(node, tree.root)
    if target is not node:
        yield from _walk(target, tree, path, within)
    required = node.get("required", ())
    for name, item in _named(node, "properties"):
        yield from _member(item, tree, _join(path, name), within, required=name in required)
    for name, item in _named(node, "patternProperties"):
        yield from _member(item, tree, _join(path, f"{{{name}}}"), within)
    if isinstance(node.get("additionalProperties"), dict):
        yield from _member(node["additionalProperties"], tree, _join(path, "*"), within)
    for keyword in ("items", "prefixItems", "additionalItems"):
        for item in _as_list(node.get(keyword)):
            yield from _element(item, tree, f"{path}[]", within)
    for keyword in _IN_PLACE:
        for item in _as_list(node.get(keyword)):
            yield from _walk(item, tree, path, within)


def _member(
    schema: Any, tree: _Tree, path: str, within: frozenset[int], *, required: bool = False
) -> Iterator[Field]:
    target = _follow(schema, tree.root)
    yield Field(
        path,
        _type_of(target),
        required,
        _mark_of(schema) or _mark_of(target),
        _text(schema, "description") or _text(target, "description"),
    )
    yield from _walk(schema, tree, path, within)


def _element(schema: Any, tree: _Tree, path: str, within: frozenset[int]) -> Iterator[Field]:
    """Give the element of an array as a field only if it is marked or has no members."""
    target = _follow(schema, tree.root)
    mark = _mark_of(schema) or _mark_of(target)
    if mark:
        yield Field(path, _type_of(target), required=False, sensitive=mark, description="")
    yield from _walk(schema, tree, path, within)


def _follow(schema: Any, root: Any) -> Any:
    """Follow a `$ref`; give the schema itself if the reference cannot be resolved."""
    seen: set[int] = set()
    while isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
        if id(schema) in seen:
            return schema
        seen.add(id(schema))
        try:
            schema = find_pointer(root, schema["$ref"].removeprefix("#"))
        except KeyError:
            return schema
    return schema


def _named(node: dict[str, Any], keyword: str) -> list[tuple[str, Any]]:
    value = node.get(keyword)
    return list(value.items()) if isinstance(value, dict) else []


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _type_of(schema: Any) -> str:
    if schema is False:
        return "nothing"
    if not isinstance(schema, dict):
        return "any"
    named = schema.get("type")
    if isinstance(named, list):
        return " | ".join(str(one) for one in named)
    if isinstance(named, str):
        return named
    return "const" if "const" in schema else "enum" if "enum" in schema else "any"


def _mark_of(schema: Any) -> str:
    mark = schema.get("x-gdpr-sensitive") if isinstance(schema, dict) else None
    if mark is True:
        return "yes"
    return mark if isinstance(mark, str) else ""


def _text(schema: Any, keyword: str) -> str:
    value = schema.get(keyword) if isinstance(schema, dict) else None
    return value if isinstance(value, str) else ""
