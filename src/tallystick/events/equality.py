"""Equality of two events (conformance document, golden sample events).

Only differences that matter to CloudEvents count: timestamps are compared by millisecond, extension
attributes by type and value, data by its meaning. An implied `application/json` is the same as
an explicit one. Octets equal the JSON value or text that they encode under the content
type, because binary mode cannot show a difference.
"""

from __future__ import annotations

from typing import Any

from tallystick.core.errors import Refused, Rejected
from tallystick.core.verdict import Difference
from tallystick.events.event import CORE, Event
from tallystick.events.grammar import MediaType
from tallystick.events.payload import ABSENT, IMPLIED, octets_of, read_json
from tallystick.events.values import Value, kind_of

__all__ = ["differences", "same_json"]


def differences(expected: Event, found: Event) -> tuple[Difference, ...]:
    """Give each difference that matters to CloudEvents; equal events have none."""
    ours, theirs = _explicit(expected), _explicit(found)
    result = [
        Difference(f"/{name}", _shown(ours.get(name)), _shown(theirs.get(name)))
        for name in (*ours, *(name for name in theirs if name not in ours))
        if not _same_attribute(name, ours.get(name), theirs.get(name))
    ]
    if not _same_data(expected.data, found.data, expected.media):
        result.append(Difference("/data", expected.data, found.data))
    return tuple(result)


def _explicit(event: Event) -> dict[str, Value]:
    """Give the attributes, with the content type that JSON data implies."""
    attributes = event.attributes
    if event.data is not ABSENT and not isinstance(event.data, bytes):
        attributes.setdefault("datacontenttype", IMPLIED)
    return attributes


def _shown(value: Value | None) -> str | None:
    return None if value is None else f"{kind_of(value)} {value!s}"


def _same_attribute(name: str, ours: Value | None, theirs: Value | None) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return ours == theirs and (name in CORE or kind_of(ours) is kind_of(theirs))


def _same_data(ours: Any, theirs: Any, media: MediaType | None) -> bool:
    if ours is ABSENT or theirs is ABSENT:
        return ours is theirs
    if isinstance(ours, bytes) == isinstance(theirs, bytes):
        return same_json(ours, theirs)
    octets, value = (ours, theirs) if isinstance(ours, bytes) else (theirs, ours)
    try:
        if media is not None and media.is_json:
            return same_json(read_json(octets), value)
        return media is not None and octets == octets_of(value, media)
    except (Rejected, Refused):
        return False


def same_json(ours: Any, theirs: Any) -> bool:
    """Compare JSON values: numbers by value, true never as 1, at any depth."""
    work = [(ours, theirs)]
    while work:
        left, right = work.pop()
        if isinstance(left, dict):
            if not isinstance(right, dict) or left.keys() != right.keys():
                return False
            work.extend((member, right[name]) for name, member in left.items())
        elif isinstance(left, list):
            if not isinstance(right, list) or len(left) != len(right):
                return False
            work.extend(zip(left, right, strict=True))
        elif isinstance(left, bool) or isinstance(right, bool):
            if left is not right:
                return False
        elif left != right and not _same_double(left, right):
            return False
    return True


def _same_double(left: Any, right: Any) -> bool:
    """Tell whether an integer is how a double is written, as ECMAScript does up to 1e21."""
    if {type(left), type(right)} != {int, float}:
        return False
    return bool(abs(left) < 1e21 and float(left) == float(right))
