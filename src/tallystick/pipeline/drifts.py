"""Find how a body differs from its canonical bytes, and which native fields contradict it.

The body has been decoded, so it is well formed. Each kind of difference is reported once, with the
JSON pointer of its first place (`docs/concepts/canonical.md` defines canonical):

    whitespace, member_order, duplicate_member, number_form, string_form, alias, forbidden_member

`native` is a broker field whose value differs from the one that the binding requires for this body.
A count of attempts is not compared: it may be ahead of the body, and `reconcile` settles it.
"""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.canonical import (
    DEAD_LETTER_ORDER,
    MESSAGE_ORDER,
    META_ORDER,
    canonical,
    pointer_to,
    utf16_order,
)
from tallystick.core.slot import TYPES, Constant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tallystick.core.binding import Binding
    from tallystick.core.envelope import Envelope
    from tallystick.core.frame import Sections

__all__ = ["Drift", "body_drifts", "native_drifts"]

Drift = tuple[str, str]
"""A kind and a place: a JSON pointer, or a native field `section.key`."""

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\]:,]|[^\s{}\[\]:,"]++', re.DOTALL)
_ORDERS: Final[Mapping[tuple[str, ...], tuple[str, ...]]] = {
    (): MESSAGE_ORDER, ("meta",): META_ORDER, ("dead_letter",): DEAD_LETTER_ORDER,
}  # fmt: skip
_LITERALS: Final = frozenset({"true", "false", "null"})
_NOTICES: Final = {"alias_dropped": "alias", "forbidden_dropped": "forbidden_member"}


def body_drifts(envelope: Envelope) -> tuple[Drift, ...]:
    """Give the kinds of difference between a body and its canonical bytes."""
    text = envelope.body.decode()
    found: dict[str, str] = {}
    trail: list[str | int] = []
    members: list[list[str]] = []
    length = 0
    expects_name = False
    for token in _TOKEN.finditer(text):
        word = token[0]
        length += len(word)
        if word in ("{", "["):
            trail.append("" if word == "{" else 0)
            members.append([])
            expects_name = word == "{"
        elif word in ("}", "]"):
            trail.pop()
            _look_at_members(members.pop(), trail, found)
            expects_name = False
        elif word == ",":
            step = trail[-1]
            expects_name = isinstance(step, str)
            trail[-1] = step if isinstance(step, str) else step + 1
        elif word == ":":
            expects_name = False
        else:
            if expects_name:
                trail[-1] = json.loads(word)
                members[-1].append(str(trail[-1]))
            _look_at_scalar(word, trail, found)
    if length != len(text):
        found.setdefault("whitespace", "")
    for notice in envelope.warnings:
        found.setdefault(_NOTICES.get(notice.code, notice.code), notice.pointer)
    if "urn" in envelope.body.decode() and "alias" not in found and _has_urn(text):
        found["alias"] = "/urn"
    return tuple(sorted(found.items())) or (("other", ""),)


def _has_urn(text: str) -> bool:
    members = json.loads(text, parse_int=str, parse_float=str)
    return isinstance(members, dict) and "urn" in members


def _look_at_members(names: list[str], trail: list[str | int], found: dict[str, str]) -> None:
    if len(set(names)) != len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        found.setdefault("duplicate_member", pointer_to([*trail, twice]))
        return
    fixed = _ORDERS.get(tuple(map(str, trail)), ())
    known = [name for name in fixed if name in names]
    rest = sorted((name for name in names if name not in fixed), key=utf16_order)
    if names != [*known, *rest]:
        found.setdefault("member_order", pointer_to(trail))


def _look_at_scalar(word: str, trail: list[str | int], found: dict[str, str]) -> None:
    if word in _LITERALS:
        return
    if word[0] == '"':
        if canonical(json.loads(word)).decode() != word:
            found.setdefault("string_form", pointer_to(trail))
    elif not _is_canonical_number(word):
        found.setdefault("number_form", pointer_to(trail))


def _is_canonical_number(word: str) -> bool:
    if word.lstrip("-").isdecimal():
        return word != "-0"
    number = float(word)
    return isfinite(number) and canonical(number).decode() == word


def native_drifts(
    binding: Binding, facts: Mapping[str, Any], sections: Sections
) -> tuple[Drift, ...]:
    """Give the native fields that say something else than the body."""
    found = []
    for slot in binding.slots:
        source = slot.source
        held = sections.get(slot.section)
        if held is None or slot.key not in held or source == "attempts":
            continue
        fact = source.value if isinstance(source, Constant) else facts.get(source)
        if fact is None:
            continue
        expected, given = TYPES[slot.type].write(fact), held[slot.key]
        if expected != given or isinstance(expected, bool) != isinstance(given, bool):
            found.append(("native", f"{slot.section}.{slot.key}"))
    return tuple(found)
