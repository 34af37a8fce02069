"""The only place that makes canonical bytes (docs/concepts/canonical.md).

Inside a value the rules of RFC 8785 hold: members sorted by UTF-16 code units, the shortest
ECMAScript number, minimal escapes, no white space, UTF-8. One rule differs: an integer is kept
exact at any size. NaN, infinities and lone surrogates are refused with a JSON pointer. The members
of a message have a fixed order, with extensions after them.

`canonical` and `canonical_message` use a C encoder first and then check its output. Output that
could differ from the rules (an exponent, `.0`, a `null` that may have been NaN, a key order that
differs in UTF-16) is written again by the exact writer, which defines the rule.
Python values beside the JSON ones: a tuple is an array, a UUID its text, an Enum its value, and a
Decimal without fraction an integer (that is how an integer of thousands of digits is kept).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any, Final
from uuid import UUID

import orjson

from tallystick.core.errors import Refused

__all__ = [
    "DEAD_LETTER_ORDER",
    "MAX_DEPTH",
    "MESSAGE_ORDER",
    "META_ORDER",
    "Trail",
    "assemble",
    "canonical",
    "canonical_exact",
    "canonical_message",
    "canonical_message_exact",
    "integer_text",
    "number_text",
    "pointer_to",
    "string_text",
    "utf16_order",
]

MESSAGE_ORDER: Final = ("job", "trace_id", "data", "meta", "attempts", "dead_letter")
META_ORDER: Final = ("id", "queue", "lang", "schema_version", "created_at")
DEAD_LETTER_ORDER: Final = (
    "reason", "error", "exception", "failed_at", "original_queue", "attempts", "lang",
)  # fmt: skip
_NESTED_ORDER: Final = {"meta": META_ORDER, "dead_letter": DEAD_LETTER_ORDER}

_SCALARS: Final = ("job", "trace_id", "attempts")
_SCALAR_TYPES: Final = (str, str, int, str, str, str, int, int)
_DATA: Final = ("data",)

Trail = Sequence[str | int]
"""The names and indexes that lead to a place in a document."""

MAX_DEPTH: Final = 1000
"""How deep arrays and objects may nest; deeper is refused on writing and rejected on reading."""

_PURE: Final = (
    orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)
_SORTED: Final = _PURE | orjson.OPT_SORT_KEYS
_dumps: Final = orjson.dumps
_fragment: Final = orjson.Fragment
_NULL: Final = re.compile(rb"null").search
_POINT_ZERO: Final = re.compile(rb"\.0(?:[,}\]]|\Z)").search
_SMALL_EXPONENT: Final = re.compile(rb"e-6(?:[,}\]]|\Z)").search
_LOOK_AT_MOST: Final = 32
_SHORT_TEXT: Final = 512
_CONTAINERS: Final = frozenset({dict, list, tuple})
_PLAIN: Final = frozenset({bool, type(None), UUID})
_ASTRAL: Final = re.compile(rb"[\xf0-\xf4]").search
_ESCAPED: Final = re.compile(r'["\\\x00-\x1f]')
_LONE_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_SHORT_ESCAPES: Final = {
    '"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
}  # fmt: skip
_BEYOND_DOUBLES: Final = 2**1024 - 2**970  # what rounds to infinity
_PLAIN_DIGITS_BITS: Final = 13_000  # below 4,300 digits, where str(int) is still allowed


def canonical(value: Any, trail: Trail = ()) -> bytes:
    """Write a JSON value as its canonical bytes, or raise `Refused` with the pointer.

    `trail` is the position of the value in its document, for the pointer and the depth.
    """
    try:
        out = _dumps(value, None, _SORTED)
    except (TypeError, ValueError, RecursionError):
        return canonical_exact(value, trail)
    return canonical_exact(value, trail) if _doubtful(out, value) else out


def canonical_message(document: Mapping[str, Any]) -> bytes:
    """Write a message: its members in the fixed order, extensions after them, data sorted.

    The fast path handles a message that has only members of the contract, each with the right type.
    """
    meta = document.get("meta")
    data = document.get("data")
    if type(meta) is dict and type(data) is dict and len(document) == len(meta) == 5:
        scalars: tuple[Any, ...] = (
            *map(document.get, _SCALARS),
            *map(meta.get, META_ORDER),
        )
        if tuple(map(type, scalars)) == _SCALAR_TYPES:
            return assemble(canonical(data, _DATA), *scalars)
    return canonical_message_exact(document)


def assemble(
    payload: bytes,
    job: str,
    trace_id: str,
    attempts: int,
    message_id: str,
    queue: str,
    lang: str,
    schema_version: int,
    created_at: int,
) -> bytes:
    """Write a message without extensions around the canonical bytes of its `data`."""
    meta = {
        "id": message_id,
        "queue": queue,
        "lang": lang,
        "schema_version": schema_version,
        "created_at": created_at,
    }
    head = {"job": job, "trace_id": trace_id}
    tail = {"meta": meta, "attempts": attempts}
    try:
        return _dumps({**head, "data": _fragment(payload), **tail})
    except TypeError:  # a lone surrogate, or an integer beyond 64 bits
        before, after = _join(head, MESSAGE_ORDER, ()), _join(tail, MESSAGE_ORDER, ())
        return b'%s,"data":%s,%s' % (before[:-1].encode(), payload, after[1:].encode())


def canonical_message_exact(document: Mapping[str, Any]) -> bytes:
    """Write a message with the exact writer; `canonical_message` must give the same bytes."""
    return _join(document, MESSAGE_ORDER, ()).encode()


def canonical_exact(value: Any, trail: Trail = ()) -> bytes:
    """Write a JSON value with the exact writer; `canonical` must always give the same bytes."""
    return "".join(_write(value, trail)).encode()


def number_text(number: float) -> str:
    """Write a finite double as ECMAScript's Number::toString does."""
    if number == 0:
        return "0"
    mantissa, _, exponent = float.__repr__(abs(float(number))).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    point = len(whole) + int(exponent or 0)
    digits = whole + fraction
    leading = len(digits) - len(digits.lstrip("0"))
    digits, point = digits[leading:].rstrip("0"), point - leading
    sign = "-" if number < 0 else ""
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    head = digits if count == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{sign}{head}e{point - 1:+d}"


def integer_text(number: int) -> str:
    """Write an integer exactly, whatever its size."""
    if number.bit_length() < _PLAIN_DIGITS_BITS:
        return int.__repr__(number)
    return format(Decimal(number), "f")


def string_text(text: str) -> str:
    """Write a string with the minimal escapes; a lone surrogate must have been refused before."""
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def utf16_order(name: str) -> bytes:
    """Give the sort key of a member name: its UTF-16 code units."""
    return name.encode("utf-16-be", "surrogatepass")


def pointer_to(trail: Trail) -> str:
    """Write a trail of names and indexes as an RFC 6901 pointer."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in trail)


def _doubtful(out: bytes, value: Any) -> bool:
    """Tell whether the output of the C encoder could differ from the rules.

    Only two things can: a key order that UTF-16 sees otherwise, which needs a character beyond the
    BMP, and the form of a float. A few values are looked at one by one; where there are many, the
    text is searched instead for what a float could have left behind.
    """
    if not out.isascii() and _ASTRAL(out) is not None:
        return True
    if b"." not in out and b"+" not in out and len(out) < _SHORT_TEXT:
        return _NULL(out) is not None or _SMALL_EXPONENT(out) is not None
    odd = _has_odd_float(value)
    if odd is not None:
        return odd
    return (
        b"+" in out
        or _NULL(out) is not None
        or _POINT_ZERO(out) is not None
        or _SMALL_EXPONENT(out) is not None
    )


def _has_odd_float(value: Any) -> bool | None:
    """Tell whether a float is not finite, integral or with an exponent; None: too many to look."""
    containers: list[Any] = [value if type(value) in _CONTAINERS else (value,)]
    left = _LOOK_AT_MOST
    for container in containers:
        left -= len(container)
        if left < 0:
            return None
        for member in container.values() if type(container) is dict else container:
            kind = type(member)
            if kind is str or kind is int:
                continue
            if kind is float:
                if not 1e-5 <= abs(member) < 1e16 or member.is_integer():
                    return True
            elif kind in _CONTAINERS:
                containers.append(member)
            elif kind not in _PLAIN:
                return True
    return False


def _ordered(document: Mapping[str, Any], order: tuple[str, ...], trail: Trail) -> dict[str, Any]:
    """Give the members of the contract in their fixed order, then the others, sorted."""
    known = {name: document[name] for name in order if name in document}
    if len(known) < len(document):
        for name in document:
            _key_text(name, (*trail, str(name)))
        known.update((name, document[name]) for name in sorted(document, key=utf16_order))
    return known


def _join(document: Mapping[str, Any], order: tuple[str, ...], trail: Trail) -> str:
    parts = []
    for name, value in _ordered(document, order, trail).items():
        here = (*trail, name)
        nested = _NESTED_ORDER.get(name) if not trail else None
        text = (
            _join(value, nested, here)
            if nested and isinstance(value, Mapping)
            else "".join(_write(value, here))
        )
        parts.append(f"{_key_text(name, here)}:{text}")
    return "{" + ",".join(parts) + "}"


def _write(root: Any, trail: Trail) -> Iterator[str]:
    """Yield the text of a value, piece by piece, without recursion."""
    path: list[str | int] = list(trail)
    open_containers: list[tuple[Iterator[tuple[str | int, Any]], str]] = []
    value, before = root, ""
    while True:
        if type(value) is dict or isinstance(value, Mapping):
            for name in value:
                if not isinstance(name, str) or _LONE_SURROGATE.search(name):
                    _key_text(name, (*path, str(name)))
            members = sorted(value.items(), key=lambda item: utf16_order(item[0]))
            yield before + "{"
            open_containers.append((iter(members), "}"))
            first = True
        elif isinstance(value, list | tuple):
            yield before + "["
            open_containers.append((iter(enumerate(value)), "]"))
            first = True
        else:
            yield before + _scalar_text(value, path)
            first = False
        if len(open_containers) + len(trail) > MAX_DEPTH:
            raise Refused(
                f"nested deeper than {MAX_DEPTH} levels", code="too_deep", pointer=pointer_to(path)
            )
        while open_containers:
            members_left, close = open_containers[-1]
            step = next(members_left, None)
            if not first:
                del path[len(trail) + len(open_containers) - 1 :]
            if step is not None:
                break
            yield close
            open_containers.pop()
            first = False
        else:
            return
        name, value = step
        path.append(name)
        comma = "" if first else ","
        before = comma + string_text(name) + ":" if isinstance(name, str) else comma


def _scalar_text(value: Any, trail: Trail) -> str:
    match value:
        case None:
            return "null"
        case True:
            return "true"
        case False:
            return "false"
        case Enum():
            return "".join(_write(value.value, trail))
        case str():
            return _checked_string(value, trail)
        case int():
            if trail and trail[0] == "data" and abs(value) >= _BEYOND_DOUBLES:
                raise Refused(
                    "this integer is too large for a double",
                    code="number_out_of_range",
                    pointer=pointer_to(trail),
                    hint="every number inside `data` must fit a double; write this one as a string",
                )
            return integer_text(value)
        case Decimal() if value.as_tuple().exponent == 0:  # an integer too long for int()
            return format(value, "f")
        case float():
            if not isfinite(value):
                raise Refused(
                    f"{value} is not a JSON number",
                    code="not_finite",
                    pointer=pointer_to(trail),
                    hint="JSON has no NaN and no infinity; write null or a string instead",
                )
            return number_text(value)
        case UUID():
            return f'"{value}"'
        case _:
            raise Refused(
                f"a {type(value).__name__} cannot be written as JSON",
                code="not_json",
                pointer=pointer_to(trail),
                hint="convert the value to a string, a number, a list or a dict first",
            )


def _key_text(name: Any, trail: Trail) -> str:
    if not isinstance(name, str):
        raise Refused(
            f"a member name must be a string, not {type(name).__name__}",
            code="not_json",
            pointer=pointer_to(trail),
        )
    return _checked_string(name, trail)


def _checked_string(text: str, trail: Trail) -> str:
    lone = _LONE_SURROGATE.search(text)
    if lone:
        raise Refused(
            f"the lone surrogate U+{ord(lone[0]):04X} cannot be written as UTF-8",
            code="lone_surrogate",
            pointer=pointer_to([_printable(step) for step in trail]),
        )
    return string_text(text)


def _printable(step: str | int) -> str | int:
    return step.encode("utf-8", "backslashreplace").decode() if isinstance(step, str) else step


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    return _SHORT_ESCAPES.get(char) or f"\\u{ord(char):04x}"
