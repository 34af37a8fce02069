"""The case of a branch: a cheap description of the documents that the branch applies to.

Branches of `anyOf`, `oneOf`, `then` and `else` apply to some documents only. A case says which: by
type, by listed values, and by tags. A tag is a member that is demanded or that lists its values;
who writes `kind: {const: paid}` means the paid ones, demanded or not. Two cases that are apart
share no document; that they are not apart means only that nothing told them apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import unquote

from tallystick.schemas.containment.nodes import TYPES, freeze, type_of
from tallystick.schemas.refs import dialect_of, find_pointer

__all__ = ["ANY", "Case", "Cases", "are_apart", "meet"]


_DEEP: Final = 2
"""How far below its object a tag may stand."""


@dataclass(frozen=True, slots=True)
class Case:
    """Types, listed values and tags of documents; the texts of tests that held or failed."""

    kinds: frozenset[str] = frozenset(TYPES)
    values: frozenset[Any] | None = None
    tags: frozenset[tuple[str, Case]] = frozenset()
    held: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()


ANY: Final = Case()


class Cases:
    """The cases of one self-contained document; each is found once."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.hides = dialect_of(root) == "draft-07"
        self.known: dict[tuple[int, int], Case] = {}

    def of(self, schema: Any, depth: int = 0) -> Case:
        """Give the case of the documents of a schema, as far as it is plain."""
        known = self.known.get((id(schema), depth))
        if known is None:
            known = self.known[id(schema), depth] = self.look(schema, depth)
        return known

    def look(self, schema: Any, depth: int) -> Case:
        """Look at a schema through references and `allOf`."""
        if schema is False:
            return Case(frozenset())
        parts = list(self.joined(schema))
        members: dict[str, Case] = {}
        for part in parts if depth < _DEEP else ():
            for name, held in part.get("properties", {}).items():
                members[name] = meet(members.get(name, ANY), self.of(held, depth + 1))
        needed = {name for part in parts for name in part.get("required", ())}
        tags = {(name, one) for name, one in members.items()
                if one != ANY and (name in needed or one.values is not None)}  # fmt: skip
        found = Case(tags=frozenset(tags))
        for part in parts:
            found = meet(found, _listed(part))
        return found

    def joined(self, schema: Any) -> Iterator[dict[str, Any]]:
        """Give the subschemas that hold together with one, wherever it holds."""
        seen: set[int] = set()
        waiting = [schema]
        while waiting:
            part = waiting.pop()
            if not isinstance(part, dict) or id(part) in seen:
                continue
            seen.add(id(part))
            reference = part.get("$ref")
            if isinstance(reference, str):
                with suppress(KeyError):  # it leads nowhere, so it tells nothing
                    waiting.append(find_pointer(self.root, unquote(reference[1:])))
            if reference is None or not self.hides:
                yield part
                waiting += part.get("allOf", [])


def _listed(part: dict[str, Any]) -> Case:
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
