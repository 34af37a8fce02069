"""Find personal data in a message: by marks in its schema, and by the values themselves.

Paths are those of `tally schema gdpr`, under `data.`; other parts of the message have names of
their own. An unmarked value is evidence in two ways:

    form        an e-mail address or a telephone number: one is enough
    checksum    an IBAN, a card, an identity number: some pass by chance, so every value of that
                form is counted, and the share that passes decides (`tables/exposure.py`)
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tallystick.schemas.pii_values import contains_personal, value_kind
from tallystick.schemas.pii_walk import Spot, gather, item_spots, mark_of, member_spots

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Exposure", "Memory", "look", "looks_personal"]

_BLOCK: Final = re.compile(
    r"(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]){11,30}(?![A-Za-z0-9])"
    r"|(?<![A-Za-z0-9-])[0-9](?:[ -]?[0-9]){10,18}(?![A-Za-z0-9-])"
)
_ISSUER: Final = re.compile(r"4|5[1-5]|2[2-7]|3[04-8]|6(?:011|4|5)|9792")
_FORM_KINDS: Final = frozenset({"email", "phone"})
_TEXT: Final = "inside a text"
_NUMBERS: Final = frozenset({
    "attempts", "meta.schema_version", "meta.created_at", "dead_letter.failed_at",
    "dead_letter.attempts",
})  # fmt: skip
"""Counts and times of the contract itself: whatever their digits, they are nobody's."""
_MOST_PLACES: Final = 10_000


class Exposure(NamedTuple):
    """One path of one message: `basis` is mark, form or checksum; `category` "" is a near miss."""

    path: str
    basis: str
    category: str


def looks_personal(value: Any) -> tuple[str, str] | None:
    """Give (basis, category) of a value that has the form of personal data, else None."""
    kind = value_kind(value)
    if kind:
        return ("form" if kind in _FORM_KINDS else "checksum"), kind
    if isinstance(value, str):
        if contains_personal(value):
            return ("form" if "@" in value or "+" in value else "checksum"), _TEXT
        return ("checksum", "") if _BLOCK.search(value) else None
    if isinstance(value, int) and not isinstance(value, bool) and 10**10 <= value < 10**19:
        text = str(value)
        if len(text) == 11 or (len(text) >= 13 and _ISSUER.match(text)):
            return "checksum", ""
    return None


class Place(NamedTuple):
    """The schema at one place: the schemas that apply, the mark, whether it is declared."""

    spots: tuple[Spot, ...]
    mark: str | None
    declared: bool
    ordered: bool


Steps = tuple[str | int, ...]
Memory = dict[Steps, Place]
"""What is known about the places of one schema, by the steps that lead there."""

_NOWHERE: Final = Place((), None, declared=False, ordered=False)


class _Seen(NamedTuple):
    path: str
    steps: Steps
    value: Any
    place: Place
    known: bool
    covered: bool


def look(
    schema: Any, document: Mapping[str, Any], memory: Memory
) -> tuple[tuple[Exposure, ...], frozenset[str], tuple[str, ...]]:
    """Give the exposures of a message, the declared paths in its data, and the undeclared ones.

    Each is told once. Below an undeclared member nothing more is listed. `memory` belongs to this
    schema alone.
    """
    found: set[Exposure] = set()
    declared: set[str] = set()
    others: set[str] = set()
    root = _remember(memory, (), lambda: gather(schema, [Spot("", schema)]))
    pending = [
        _Seen(name, (name,), value, _NOWHERE, known=False, covered=False)
        for name, value in document.items()
        if name != "data"
    ]
    pending.append(_Seen("data", (), document.get("data"), root, known=True, covered=False))
    while pending:
        path, steps, value, place, known, covered = pending.pop()
        if place.mark is not None and not covered:
            found.add(Exposure(path, "mark", place.mark))
            covered = True
        if isinstance(value, dict):
            for name, item in value.items():
                here, way = f"{path}.{name}", (*steps, name)
                below = _member(schema, place, name, way, memory)
                if known:
                    (declared if below.declared else others).add(here.removeprefix("data."))
                pending.append(_Seen(here, way, item, below, known and below.declared, covered))
        elif isinstance(value, list):
            for at, item in enumerate(value):
                way = (*steps, at if place.ordered else -1)
                below = _item(schema, place, at, way, memory)
                pending.append(_Seen(f"{path}[]", way, item, below, known, covered))
        elif not covered and path not in _NUMBERS and (evidence := looks_personal(value)):
            found.add(Exposure(path, *evidence))
    return tuple(sorted(found)), frozenset(declared), tuple(sorted(others))


def _member(schema: Any, place: Place, name: str, way: Steps, memory: Memory) -> Place:
    if not place.spots:
        return _NOWHERE
    return _remember(memory, way, lambda: member_spots(schema, place.spots, name))


def _item(schema: Any, place: Place, at: int, way: Steps, memory: Memory) -> Place:
    if not place.spots:
        return _NOWHERE
    return _remember(memory, way, lambda: item_spots(schema, place.spots, at))


def _remember(memory: Memory, way: Steps, find: Callable[[], tuple[Spot, ...]]) -> Place:
    known = memory.get(way)
    if known is None:
        spots = find()
        marks = [mark for spot in spots if (mark := mark_of(spot.node)) is not None]
        known = Place(
            spots,
            next(filter(None, marks), "") if marks else None,
            any(spot.declares for spot in spots),
            any(isinstance(spot.node, dict) and _is_ordered(spot.node) for spot in spots),
        )
        if len(memory) < _MOST_PLACES:
            memory[way] = known
    return known


def _is_ordered(node: dict[str, Any]) -> bool:
    return isinstance(node.get("items"), list) or "prefixItems" in node
