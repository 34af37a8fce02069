"""Place the boxes and arrows of a graph in layers from left to right; cycles are allowed.

An arrow that closes a cycle is reversed for the layering and drawn backwards. Every other arrow
goes to a later layer; where it passes a layer, it has a place there. Within a layer, boxes are
sorted by the mean place of their causes and effects, which removes most crossings. The result
depends only on the order of the arrows.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

__all__ = ["Layout", "Route", "arrange"]

_SWEEPS: Final = 6

Node = Hashable
Arrow = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Route:
    """An arrow and the places it passes, as (layer, row); `back` closes a cycle."""

    cause: str
    effect: str
    places: tuple[tuple[int, float], ...]
    back: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """The place of every node as (layer, row), and the routes of the arrows."""

    places: Mapping[str, tuple[int, float]]
    routes: tuple[Route, ...]


def arrange(arrows: Sequence[Arrow]) -> Layout:
    """Place the nodes of distinct arrows."""
    names = list(dict.fromkeys(name for arrow in arrows for name in arrow))
    back = _find_back(names, arrows)
    forward = [one for one in arrows if one not in back]
    layers = _find_layers(names, forward)
    chains: dict[Arrow, list[Node]] = {
        (a, b): [a, *((a, b, layer) for layer in range(layers[a] + 1, layers[b])), b]
        for a, b in forward
    }
    links = [link for chain in chains.values() for link in pairwise(chain)]
    columns: list[list[Node]] = [[] for _ in range(max(layers.values(), default=-1) + 1)]
    for name in names:
        columns[layers[name]].append(name)
    for chain in chains.values():
        for at, node in enumerate(chain[1:-1], layers[str(chain[0])] + 1):
            columns[at].append(node)
    rows = _find_rows(_sort_columns(columns, links), links)
    places = {name: (layers[name], rows[name]) for name in names}
    routes = []
    for a, b in arrows:
        chain = [a, b] if (a, b) in back else chains[a, b]
        start = layers[a]
        passed = [(start + at, rows[node]) for at, node in enumerate(chain[:-1])]
        routes.append(Route(a, b, (*passed, places[b]), (a, b) in back))
    return Layout(places, tuple(routes))


def _find_back(names: Sequence[str], arrows: Sequence[Arrow]) -> set[Arrow]:
    """Find the arrows that close a cycle, on a walk that begins where nothing leads to."""
    after: dict[str, list[str]] = {name: [] for name in names}
    for a, b in arrows:
        after[a].append(b)
    led = {b for _, b in arrows}
    done: set[str] = set()
    back: set[Arrow] = set()
    for begin in sorted(names, key=lambda name: name in led):
        path, walk = {begin}, [(begin, iter(after[begin]))]
        while begin not in done and walk:
            here, left = walk[-1]
            there = next(left, None)
            if there is None:
                walk.pop()
                path.discard(here)
                done.add(here)
            elif there in path:
                back.add((here, there))
            elif there not in done:
                path.add(there)
                walk.append((there, iter(after[there])))
    return back


def _find_layers(names: Sequence[str], forward: Sequence[Arrow]) -> dict[str, int]:
    """Give every node the layer after the last of its causes."""
    layers = dict.fromkeys(names, 0)
    for _ in names:
        moved = False
        for a, b in forward:
            if layers[b] <= layers[a]:
                layers[b], moved = layers[a] + 1, True
        if not moved:
            break
    return layers


def _sort_columns(
    columns: Sequence[list[Node]], links: Sequence[tuple[Node, Node]]
) -> list[list[Node]]:
    """Sort each column by the mean place of its neighbours, forth and back."""
    near: dict[bool, dict[Node, list[Node]]] = {True: {}, False: {}}
    for a, b in links:
        near[True].setdefault(b, []).append(a)
        near[False].setdefault(a, []).append(b)
    found = [list(column) for column in columns]
    for sweep in range(_SWEEPS):
        forth = sweep % 2 == 0
        order = range(1, len(found)) if forth else range(len(found) - 2, -1, -1)
        for at in order:
            beside = {node: row for row, node in enumerate(found[at - 1 if forth else at + 1])}
            now = {node: row for row, node in enumerate(found[at])}
            found[at].sort(key=lambda node: _mean(near[forth].get(node, ()), beside, now[node]))
    return found


def _find_rows(
    columns: Sequence[Sequence[Node]], links: Sequence[tuple[Node, Node]]
) -> dict[Node, float]:
    """Give rows at least 1 apart in a column, near the mean of their causes."""
    causes: dict[Node, list[Node]] = {}
    for a, b in links:
        causes.setdefault(b, []).append(a)
    rows: dict[Node, float] = {}
    for column in columns:
        wanted = [_mean(causes.get(node, ()), rows, float(at)) for at, node in enumerate(column)]
        free = float("-inf")
        placed = []
        for row in wanted:
            free = max(row, free + 1)
            placed.append(free)
        slack = sum(a - b for a, b in zip(placed, wanted, strict=True)) / max(len(column), 1)
        rows |= {node: row - slack for node, row in zip(column, placed, strict=True)}
    least = min(rows.values(), default=0.0)
    return {node: row - least for node, row in rows.items()}


def _mean(nodes: Sequence[Node], rows: Mapping[Node, float], otherwise: float) -> float:
    found = [rows[node] for node in nodes if node in rows]
    return sum(found) / len(found) if found else float(otherwise)
