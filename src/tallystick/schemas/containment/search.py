"""Find values that satisfy a query, and tell whether there are no others.

A finite list of candidates (`enum`, `const`) is simply tried. Otherwise the query is split for each
JSON type (`expand`), and each member of the union is solved separately. Every returned value was
checked against the whole query.

If a query appears again inside its own search, its result there is "no value", because a smallest
witness never contains itself. A result that depends on this is not kept, unless the result of the
outer query is "no value" too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tallystick.schemas.containment.arrays import solve_array
from tallystick.schemas.containment.evaluate import frozen, satisfies
from tallystick.schemas.containment.expand import leaves
from tallystick.schemas.containment.keywords import Clause, clauses
from tallystick.schemas.containment.nodes import (
    TYPES,
    Key,
    Node,
    Sample,
    Space,
    distinct,
    freeze,
    type_of,
)
from tallystick.schemas.containment.objects import solve_object
from tallystick.schemas.containment.scalars import solve_number, solve_string

__all__ = ["inhabit", "make_space"]

Atoms = list[tuple[Any, ...]]
_EMPTY: Final = Sample((), complete=True)


def make_space(
    budget: int, clock: Callable[[], float] | None = None, deadline: float = 0.0
) -> Space:
    """Open a space for queries; it ends when the budget or the time is used up."""
    space = Space(budget, clock=clock, deadline=deadline)
    space.inhabit = lambda key, want: inhabit(space, key, want)
    return space


def inhabit(space: Space, key: Key, want: int) -> Sample:
    """Return up to `want` different values that satisfy the query."""
    key = frozenset(literal for literal in key if not _is_free(literal))
    if any((node, not sign) in key for node, sign in key):
        return _EMPTY
    known = space.answers.get(key)
    if known is not None:
        asked, sample = known
        if sample.complete or asked >= want:
            return Sample(sample.values[:want], sample.complete and len(sample.values) <= want)
    if key in space.open:
        return Sample((), complete=True, assumed=frozenset((key,)))
    space.spend(1)
    space.open.add(key)
    try:
        sample = _answer(space, key, want)
    finally:
        space.open.discard(key)
    if key in sample.assumed:
        rest = sample.assumed - {key}
        sample = Sample(sample.values, sample.complete and not sample.values, rest)
    if not sample.assumed or len(sample.values) >= want:
        space.answers[key] = (want, Sample(sample.values, sample.complete and not sample.assumed))
    return sample


def _is_free(literal: tuple[Node, bool]) -> bool:
    node, sign = literal
    return (node.value is True or node.value == {}) if sign else node.value is False


def _answer(space: Space, key: Key, want: int) -> Sample:
    listed = _listed(key)
    if listed is not None:
        return _tried(space, key, listed, want)
    found: list[Any] = []
    complete = True
    assumed: frozenset[Key] = frozenset()
    for kind in TYPES:
        for atoms in leaves(space, key, kind):
            space.spend(1)
            sample = _solve(space, key, atoms, kind, want)
            good = [value for value in sample.values if satisfies(space, key, value)]
            complete = complete and sample.complete and len(good) == len(sample.values)
            assumed |= sample.assumed
            found = distinct([*found, *good]) if good else found
            if len(found) >= want:
                return Sample(tuple(found[:want]), complete=False)
    return Sample(tuple(found), complete, assumed)


def _listed(key: Key) -> list[Any] | None:
    """Give the shortest list of candidates that a literal of the question names outright."""
    best: list[Any] | None = None
    for node, sign in key:
        schema = node.value
        if not sign or not isinstance(schema, dict):
            continue
        if "$ref" in schema and node.source.dialect == "draft-07":
            continue
        listed = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(listed, list) and (best is None or len(listed) < len(best)):
            best = listed
    return best


def _tried(space: Space, key: Key, listed: list[Any], want: int) -> Sample:
    """Try each candidate; where both sides are lists, sets tell at once."""
    by_kind: dict[str, dict[Any, Any]] = {}
    for value in reversed(listed):
        by_kind.setdefault(type_of(value), {})[freeze(value)] = value
    found = []
    for kind, candidates in by_kind.items():
        left, asked = _sift(space, key, kind, candidates)
        for value in reversed(left.values()):
            if satisfies(space, asked, value):
                found.append(value)
                if len(found) > want:
                    return Sample(tuple(found[:want]), complete=False)
    return Sample(tuple(found), complete=True)


def _sift(
    space: Space, key: Key, kind: str, candidates: dict[Any, Any]
) -> tuple[dict[Any, Any], Key]:
    """Drop what lists of values rule out; give what is left, and what is still to be asked."""
    asked = set()
    for node, sign in key:
        demands = clauses(space, node, True, kind)
        lists = [frozen(clause[0][0][1]) for clause in demands if _is_list(clause)]
        is_whole = len(lists) == len(demands)
        if lists and (sign or is_whole):
            common = frozenset.intersection(*lists)
            candidates = {
                mark: value for mark, value in candidates.items() if (mark in common) is sign
            }
        if not is_whole or not lists:
            asked.add((node, sign))
    return candidates, frozenset(asked)


def _is_list(clause: Clause) -> bool:
    """Tell whether a clause is nothing but a list of values."""
    return len(clause) == 1 and len(clause[0]) == 1 and clause[0][0][0] == "in"


def _solve(space: Space, key: Key, atoms: Atoms, kind: str, want: int) -> Sample:
    listed = [atom[1] for atom in atoms if atom[0] == "in"]
    if listed:
        mine = [value for value in min(listed, key=len) if type_of(value) == kind]
        return _tried(space, key, mine, want)
    return _SOLVERS[kind](space, atoms, want)


def _few(values: tuple[Any, ...]) -> Callable[[Space, Atoms, int], Sample]:
    """Make the solver of a type with few values."""

    def solve(_: Space, atoms: Atoms, want: int) -> Sample:
        out = {freeze(value) for atom in atoms if atom[0] == "out" for value in atom[1]}
        kept = tuple(value for value in values if freeze(value) not in out)
        return Sample(kept[:want], len(kept) <= want)

    return solve


_SOLVERS: Final[dict[str, Callable[[Space, Atoms, int], Sample]]] = {
    "null": _few((None,)),
    "boolean": _few((False, True)),
    "number": solve_number,
    "string": solve_string,
    "array": solve_array,
    "object": solve_object,
}
