"""When a branch of a schema speaks: the documents it is for, seen at a glance.

Branches of `anyOf`, `oneOf`, `then` and `else` speak of some documents only. A case tells which: by
type, by listed values, and by tags. A tag is a member that is demanded or that lists its values;
who writes `kind: {const: paid}` means the paid ones, demanded or not. Two cases that are apart
share no document; that they are not apart means only that nothing told them apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from tallystick.schemas.containment.nodes import TYPES, freeze, type_of

__all__ = ["ANY", "Case", "are_apart", "case_of", "meet"]


@dataclass(frozen=True, slots=True)
class Case:
    """Types, listed values and tags of documents; the texts of tests that held or failed."""

    kinds: frozenset[str] = frozenset(TYPES)
    values: frozenset[Any] | None = None
    tags: frozenset[tuple[str, Case]] = frozenset()
    held: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()


ANY: Final = Case()


def case_of(part: dict[str, Any]) -> Case:
    """Give the types and the values that one subschema lists."""
    listed = [part["const"]] if "const" in part else part.get("enum")
    named = part.get("type", TYPES)
    types = [named] if isinstance(named, str) else named
    kinds = frozenset("number" if kind == "integer" else kind for kind in types)
    if listed is None:
        return Case(kinds)
    return Case(kinds & frozenset(map(type_of, listed)), frozenset(map(freeze, listed)))


def meet(one: Case, other: Case) -> Case:
    """Give the case of documents that belong to both."""
    if other in (ANY, one):
        return one
    values = one.values if other.values is None else other.values
    if one.values is not None and other.values is not None:
        values = one.values & other.values
    tags = dict(one.tags)
    for name, tag in other.tags:
        tags[name] = meet(tags.get(name, ANY), tag)
    return replace(
        one,
        kinds=one.kinds & other.kinds,
        values=values,
        tags=frozenset(tags.items()),
        held=one.held | other.held,
        failed=one.failed | other.failed,
    )


def are_apart(one: Case, other: Case) -> bool:
    """Tell whether two cases share no document; an impossible one is apart from itself."""
    if one.kinds.isdisjoint(other.kinds):
        return True
    if one.values is not None and other.values is not None and one.values.isdisjoint(other.values):
        return True
    if not one.held.isdisjoint(other.failed) or not one.failed.isdisjoint(other.held):
        return True
    tags = dict(other.tags)
    return any(name in tags and are_apart(tag, tags[name]) for name, tag in one.tags)
