"""Words of a regular language: the shortest ones first, or the proof that there are none.

States are derivatives. Characters that the language does not distinguish form one class. If the
state graph is finite and small, the result is exact: which words exist, and whether their number is
finite. Otherwise the found words are correct, and the answer is marked incomplete.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from tallystick.schemas.containment.regex import NOTHING, Term, derive, nullable

__all__ = ["find_words"]

_FRIENDLY: Final = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_-.@ /:+"
_MAX_STATES: Final = 1500
_MAX_STRINGS: Final = 20_000

Class = tuple[tuple[str, ...], int]
"""Some characters of one class, and the total number of characters in it."""


def _boundaries(term: Term, seen: set[Term], cuts: set[int]) -> None:
    if term in seen:
        return
    seen.add(term)
    kind = term[0]
    if kind == "chars":
        for low, high in term[1]:
            cuts.update((low, high + 1))
    elif kind in ("alt", "both"):
        for one in term[1]:
            _boundaries(one, seen, cuts)
    elif kind in ("cat", "not", "repeat"):
        _boundaries(term[1], seen, cuts)
        if kind == "cat":
            _boundaries(term[2], seen, cuts)


def _classes(term: Term, want: int) -> list[Class]:
    """Cut the characters into classes that the language cannot tell apart."""
    seen: set[Term] = set()
    cuts = {0, 0xD800, 0xE000, 0x110000}
    _boundaries(term, seen, cuts)
    sets = [one[1] for one in seen if one[0] == "chars"]
    edges = sorted(cuts)
    groups: dict[tuple[bool, ...], list[tuple[int, int]]] = {}
    for low, high in itertools.pairwise(edges):
        if 0xD800 <= low < 0xE000:
            continue
        mark = tuple(any(a <= low <= b for a, b in one) for one in sets)
        groups.setdefault(mark, []).append((low, high - 1))
    out: list[Class] = []
    for ranges in groups.values():
        size = sum(high - low + 1 for low, high in ranges)
        shown = [one for one in _FRIENDLY if any(low <= ord(one) <= high for low, high in ranges)][
            :want
        ]
        for low, high in ranges:
            point = low if low > 32 or high < 33 else 33
            while point <= high and len(shown) < min(want, size):
                if chr(point) not in shown:
                    shown.append(chr(point))
                point += 1
        for low, high in ranges:
            for point in range(low, min(high, low + want) + 1):
                if len(shown) < min(want, size) and chr(point) not in shown:
                    shown.append(chr(point))
        out.append((tuple(shown), size))
    out.sort(key=lambda one: _FRIENDLY.find(one[0][0]) % 1000)
    return out


def find_words(
    term: Term, want: int, tick: Callable[[], None] = lambda: None
) -> tuple[list[str], bool, int]:
    """Return up to `want` words, whether these are all words, and the cost of the search.

    `tick` is called for every state and may raise when the time is over.
    """
    classes = _classes(term, want + 1)
    graph, whole = _explore(term, classes, tick)
    live = _live(graph)
    steps = len(graph) * len(classes)
    if term not in live:
        return [], whole, steps
    words: list[str] = []
    queue: list[tuple[int, int, int, str, Term]] = [(live[term], 0, 0, "", term)]
    complete, visited, order = whole, 0, 0
    while queue and len(words) <= want:
        *_, word, state = heappop(queue)
        visited += 1
        if visited > _MAX_STRINGS:
            complete = False
            break
        if nullable(state):
            words.append(word)
        for (shown, size), target in zip(classes, graph.get(state, ()), strict=False):
            if target in live:
                length = len(word) + 1
                for char in shown:
                    order += 1
                    heappush(queue, (length + live[target], -length, order, word + char, target))
                complete = complete and len(shown) == size
    return words[:want], complete and len(words) <= want, steps + visited


def _explore(
    term: Term, classes: list[Class], tick: Callable[[], None]
) -> tuple[dict[Term, list[Term]], bool]:
    graph: dict[Term, list[Term]] = {}
    queue = deque([term])
    while queue:
        state = queue.popleft()
        if state in graph:
            continue
        if len(graph) >= _MAX_STATES:
            return graph, False
        tick()
        targets = [derive(state, ord(shown[0])) for shown, _ in classes]
        graph[state] = targets
        queue.extend(target for target in targets if target not in graph and target != NOTHING)
    return graph, True


def _live(graph: dict[Term, list[Term]]) -> dict[Term, int]:
    """Give the states from which a word can still be finished, and in how many steps."""
    sources: dict[Term, list[Term]] = {}
    for state, targets in graph.items():
        for target in targets:
            sources.setdefault(target, []).append(state)
    queue = deque(state for state in graph if nullable(state))
    live = dict.fromkeys(queue, 0)
    while queue:
        state = queue.popleft()
        for source in sources.get(state, ()):
            if source not in live:
                live[source] = live[state] + 1
                queue.append(source)
    return live
