"""Split a query, for one JSON type, into a union of simple constraints.

Literals are split until only atoms remain. Required literals are added at once. Among choices,
literals that must hold come before literals that must not, and few alternatives before many. A
branch ends as soon as it has a literal and its negation. Before the search branches on the breaches
of a node while other choices are open, it checks whether the node could hold here at all. If not,
the node is already violated, and there is no choice. This keeps unions that have a tag from
multiplying. If one member would have to violate a constraint and cannot, that is not an
alternative: so a wide object is not solved once for each of its properties.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tallystick.schemas.containment.evaluate import in_class
from tallystick.schemas.containment.keywords import Clause, clauses
from tallystick.schemas.containment.nodes import Circular, Key, Literal, Node, Space

__all__ = ["leaves"]

Leaf = list[tuple[Any, ...]]
_MANY: Final = 3
"""From this number of violated nodes on, each node is first examined alone."""


def leaves(space: Space, key: Key, kind: str) -> Iterator[Leaf]:
    """Give the members of the union, each as a list of atoms."""
    start = [(literal, frozenset[Node]()) for literal in sorted(key)]
    yield from _walk(space, kind, start, [], {}, [])


def _walk(
    space: Space,
    kind: str,
    todo: list[tuple[Literal, frozenset[Node]]],
    atoms: Leaf,
    seen: dict[Literal, None],
    choices: list[tuple[Clause, Literal, frozenset[Node]]],
) -> Iterator[Leaf]:
    while todo:
        literal, path = todo.pop()
        node, sign = literal
        if node in path:
            raise Circular("a reference refers to itself at the same place")
        if literal in seen:
            continue
        if (node, not sign) in seen:
            return
        space.spend(1)
        seen[literal] = None
        inner = path | {node}
        for clause in clauses(space, node, sign, kind):
            if not clause:
                return
            if len(clause) == 1:
                _take(clause[0], inner, todo, atoms)
            elif [] not in clause:
                choices.append((clause, literal, inner))
    choices = _narrow(choices, seen)
    if any(not clause for clause, _, _ in choices):
        return
    for at, (clause, _, path) in enumerate(choices):
        if len(clause) == 1:
            _take(clause[0], path, todo, atoms)
            if not _contradicts(atoms):
                yield from _walk(space, kind, todo, atoms, seen, choices[:at] + choices[at + 1 :])
            return
    if not choices:
        yield atoms
        return
    if _is_covered(space, kind, seen, choices):
        return
    choices.sort(key=lambda choice: (not choice[1][1], len(choice[0])))
    clause, literal, path = choices[0]
    others = frozenset(one for one in seen if one[1] and one[0] not in path)
    if len(choices) > 1 and not literal[1] and _is_broken(space, literal[0], kind, others):
        yield from _walk(space, kind, [], atoms, seen, choices[1:])
        return
    held = _Held(atoms) if kind == "object" else None
    for alternative in clause:
        if held and any(held.refutes(space, item) for item in alternative):
            continue
        more: list[tuple[Literal, frozenset[Node]]] = []
        grown = list(atoms)
        _take(alternative, path, more, grown)
        if _contradicts(grown):
            continue
        yield from _walk(space, kind, more, grown, dict(seen), choices[1:])


class _Held:
    """What every member of an object is held to already, found by the member's name."""

    def __init__(self, atoms: Leaf) -> None:
        each = [atom[1:] for atom in atoms if atom[0] == "each"]
        self.by_class = [pair for pair in each if pair[0][0] != "name"]
        self.by_name: dict[str, list[Literal]] = {}
        for names, literal in each:
            if names[0] == "name":
                self.by_name.setdefault(names[1], []).append(literal)

    def refutes(self, space: Space, item: tuple[Any, ...]) -> bool:
        """Tell whether an item asks for a member that cannot be, whatever else is asked."""
        if item[0] != "some" or item[1][0] != "name":
            return False
        name = item[1][1]
        classed = (literal for names, literal in self.by_class if in_class(names, name))
        key = frozenset((*self.by_name.get(name, ()), *classed, item[2]))
        sample = space.inhabit(key, 1)
        return not sample.values and sample.complete and not sample.assumed


def _take(
    alternative: list[Any],
    path: frozenset[Node],
    todo: list[tuple[Literal, frozenset[Node]]],
    atoms: Leaf,
) -> None:
    for item in alternative:
        if isinstance(item[0], str):
            atoms.append(item)
        else:
            todo.append((item, path))


def _narrow(
    choices: list[tuple[Clause, Literal, frozenset[Node]]], seen: dict[Literal, None]
) -> list[tuple[Clause, Literal, frozenset[Node]]]:
    """Drop alternatives that are dead already, and choices that are settled already."""
    out = []
    for clause, literal, path in choices:
        alive = []
        settled = False
        for alternative in clause:
            literals = [item for item in alternative if not isinstance(item[0], str)]
            if any((node, not sign) in seen for node, sign in literals):
                continue
            alive.append(alternative)
            if len(literals) == len(alternative) and all(item in seen for item in literals):
                settled = True
        if not settled:
            out.append((alive, literal, path))
    return out


def _is_broken(space: Space, node: Node, kind: str, holding: Key) -> bool:
    """Tell whether a node cannot hold beside what holds already, its own origin aside."""
    if not holding:
        return False
    typed = space.node({"type": kind}, node.source)
    sample = space.inhabit(holding | {(node, True), (typed, True)}, 1)
    return not sample.values and sample.complete and not sample.assumed


def _is_covered(
    space: Space,
    kind: str,
    seen: dict[Literal, None],
    choices: list[tuple[Clause, Literal, frozenset[Node]]],
) -> bool:
    """Tell whether one of several nodes that must be broken holds by what holds already.

    So a member of a union is set against each member of another before all of them multiply.
    What must hold is taken without the unions themselves: less is asked, and nothing is lost.
    """
    broken = [literal for _, literal, _ in choices if not literal[1]]
    if len(broken) < _MANY or any(literal[1] for _, literal, _ in choices):
        return False
    holding = frozenset(
        literal for literal in seen if literal[1] and _is_definite(space, literal[0], kind)
    )
    if not holding:
        return False
    typed = (space.node({"type": kind}, broken[0][0].source), True)
    for literal in broken:
        sample = space.inhabit(holding | {literal, typed}, 1)
        if not sample.values and sample.complete and not sample.assumed:
            return True
    return False


def _is_definite(space: Space, node: Node, kind: str) -> bool:
    return all(len(clause) < 2 for clause in clauses(space, node, True, kind))


def _contradicts(atoms: Leaf) -> bool:
    """See the contradictions that need no solver."""
    lacks = {atom[1] for atom in atoms if atom[0] == "lacks"}
    return bool(lacks) and any(atom[0] == "has" and atom[1] in lacks for atom in atoms)
