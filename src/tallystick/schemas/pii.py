"""Find the fields with personal data: those with a mark, and those that should have one.

Marks are `x-gdpr-sensitive` (see `pii_walk`). A mark on an object or array covers all below it.
Paths are written as in `profile.full_name`, `addresses[].line`; a pattern of `patternProperties` as
`labels.{^x-}`, the rest of an object as `labels.*`, a place in a tuple as `pair[0]`.

A scalar without a mark is suspected by its name (`pii_names`), by `format: email`, or by its values
in the examples, the default and the messages of the manifest (`pii_values`). A boolean, an enum or
a constant is never personal data. If a pattern is given, it replaces these rules.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.errors import Unavailable
from tallystick.schemas.catalog import Catalog, locate, read_inside
from tallystick.schemas.pii_names import name_kind
from tallystick.schemas.pii_values import share_kind
from tallystick.schemas.pii_walk import (
    Spot,
    gather,
    item_spots,
    mark_of,
    member_spots,
    steps,
    types_of,
)
from tallystick.schemas.validate import compile_entry, is_envelope
from tallystick.schemas.values import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tallystick.schemas.bundle import Bundle
    from tallystick.schemas.catalog import Place

__all__ = ["Field", "Suspect", "audit", "fields_of", "inventory", "read_examples"]

_MANY: Final = 5_000
"""Past so many places every schema is entered once more at most, not once for each path to it."""

_FORMATS: Final = {"email": "email", "idn-email": "email"}
_SCALARS: Final = frozenset({"string", "integer", "number"})


@dataclass(frozen=True, slots=True)
class Field:
    """One place in the data of a URN: `category` is None without a mark, `covered` by one above."""

    path: str
    name: str
    parent: str
    spots: tuple[Spot, ...]
    category: str | None = None
    covered: bool = False

    @property
    def is_leaf(self) -> bool:
        """Whether a scalar may stand here; an object or an array alone is a container."""
        types = types_of(self.spots)
        return not types or not types <= {"object", "array"}


@dataclass(frozen=True, slots=True)
class Suspect:
    """A field that looks like personal data and has no mark: `reason` says why."""

    urn: str
    path: str
    category: str
    reason: str
    file: str
    line: int
    pointer: str


def fields_of(schema: Any) -> Iterator[Field]:
    """Give every place that a self-contained schema describes, the root first."""
    first = gather(schema, [Spot("", schema)])
    trail: frozenset[str] = frozenset()
    pending = deque([(_field("", "", "", first), trail)])  # wide first: short paths matter most
    count = 0
    known: set[tuple[str, bool]] = set()
    while pending:
        field, trail = pending.popleft()
        yield field
        pointers = {spot.pointer for spot in field.spots}
        keys = {(pointer, field.covered) for pointer in pointers}
        if pointers <= trail or (count > _MANY and keys <= known):
            continue  # a recursion: the places below have been given already
        known |= keys
        for step, below in steps(field.spots).items():
            named = step.removeprefix(".") if step[0] == "." and step != ".*" else field.name
            parent = field.name if named is not field.name else field.parent
            path = step.removeprefix(".") if not field.path else field.path + step
            covered = field.covered or field.category is not None
            child = _field(path, named, parent, gather(schema, below), covered=covered)
            pending.append((child, trail | pointers))
            count += 1


def _field(
    path: str, name: str, parent: str, spots: tuple[Spot, ...], *, covered: bool = False
) -> Field:
    marks = [mark for spot in spots if (mark := mark_of(spot.node)) is not None]
    category = next(filter(None, marks), "") if marks else None
    return Field(path, name, parent, spots, category, covered)


def inventory(schema: Any) -> dict[str, str]:
    """Give every marked path of a schema with its category, sorted."""
    marked: dict[str, str] = {}
    for field in fields_of(schema):
        if field.category is not None:
            marked[field.path] = marked.get(field.path) or field.category
    return dict(sorted(marked.items(), key=lambda item: item[0].encode()))


def audit(
    catalog: Catalog,
    examples: Mapping[str, Sequence[Any]] | None = None,
    matches: Callable[[str], bool] | None = None,
) -> tuple[Suspect, ...]:
    """Find the fields that look like personal data and have no mark, by URN and path."""
    found: dict[tuple[str, str], Suspect] = {}
    for urn in catalog.entries:
        held, _ = compile_entry(catalog, urn)
        schema = held.schema
        seen = _observe(schema, (examples or {}).get(urn, ())) if matches is None else {}
        for field in fields_of(schema):
            samples = seen.pop(field.path, (field.spots, []))[1]
            if field.category is not None or field.covered or not field.is_leaf:
                continue
            reason = _reason(field, samples, matches)
            if reason and (urn, field.path) not in found:
                place = _place(catalog, held, field.spots)
                kind, why = reason
                found[(urn, field.path)] = Suspect(urn, field.path, kind, why, *place)
        for path, (spots, samples) in seen.items():
            kind, hits = share_kind(samples)
            if kind:
                why = f"{hits} of {len(samples)} example values look like it"
                why += "" if spots else ", in a field that the schema does not declare"
                place = _place(catalog, held, spots)
                found[(urn, path)] = Suspect(urn, path, kind, why, *place)
    return tuple(found[key] for key in sorted(found))


def _place(catalog: Catalog, held: Bundle, spots: Sequence[Spot]) -> Place:
    return locate(catalog, held, spots[0].pointer if spots else "")


def _reason(
    field: Field, samples: Sequence[Any], matches: Callable[[str], bool] | None
) -> tuple[str, str] | None:
    """Give the kind of personal data of a field and the reason, or None."""
    if matches is not None:
        return ("", "its name matches the pattern") if field.name and matches(field.name) else None
    types = types_of(field.spots)
    nodes = [spot.node for spot in field.spots if spot.declares and isinstance(spot.node, dict)]
    if (types and types.isdisjoint(_SCALARS)) or any(
        "enum" in one or "const" in one for one in nodes
    ):
        return None
    for node in nodes:
        kind = _FORMATS.get(str(node.get("format")))
        if kind:
            return kind, f"its format is {node['format']}"
    named = name_kind(field.name, field.parent)
    if named and (not types or not types.isdisjoint(named.types)):
        return named.category, f"its name means {named.category}"
    own = [value for node in nodes for value in _own_values(node)]
    category, hits = share_kind([*samples, *own])
    if category:
        return category, f"{hits} of {len(samples) + len(own)} example values look like it"
    return None


def _own_values(node: dict[str, Any]) -> list[Any]:
    examples = node.get("examples")
    values = list(examples) if isinstance(examples, list) else []
    return [
        *values,
        *([node["default"]] if isinstance(node.get("default"), str | int | float) else []),
    ]


def _observe(schema: Any, payloads: Sequence[Any]) -> dict[str, tuple[tuple[Spot, ...], list[Any]]]:
    """Collect the scalars of example payloads by path, with the schemas that describe them."""
    seen: dict[str, tuple[tuple[Spot, ...], list[Any]]] = {}
    first = gather(schema, [Spot("", schema)])
    pending: list[tuple[str, Any, tuple[Spot, ...]]] = [("", one, first) for one in payloads]
    while pending:
        path, value, spots = pending.pop()
        if any(mark_of(spot.node) is not None for spot in spots):
            continue
        if isinstance(value, dict):
            for name, item in value.items():
                below = member_spots(schema, spots, name)
                pending.append((f"{path}.{name}" if path else name, item, below))
        elif isinstance(value, list):
            for at, item in enumerate(value):
                pending.append((f"{path}[]", item, item_spots(schema, spots, at)))
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            seen.setdefault(path, (spots, []))[1].append(value)
    return seen


def read_examples(catalog: Catalog) -> dict[str, list[Any]]:
    """Read the payloads of the messages that the manifest names, by URN."""
    payloads: dict[str, list[Any]] = {}
    for urn, entry in catalog.entries.items():
        for path in entry.examples:
            try:
                raw = read_inside(catalog.root, path)
            except OSError as error:
                place = f"{catalog.manifest}:{entry.line}"
                raise Unavailable(
                    f"{place}: {path}: {error.strerror}", code="example.missing"
                ) from error
            message = parse_json(raw, path)
            payload = message["data"] if is_envelope(message) else message
            payloads.setdefault(urn, []).append(payload)
    return payloads
