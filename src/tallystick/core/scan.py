"""The exact JSON scanner: it finds the place of each member, or says why bytes are not a message.

It decides when the fast decoder is not sure. It accepts one RFC 8259 object in UTF-8
without a byte order mark; it does not recurse, builds no values while it checks, and reports the
byte offset and the RFC 6901 pointer of the first fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, auto
from math import isfinite
from typing import Any, Final, NoReturn, cast

from tallystick.core.canonical import MAX_DEPTH, pointer_to
from tallystick.core.errors import Rejected

__all__ = ["MAX_BYTES", "Member", "Place", "check_text", "load", "scan", "string_value", "walk"]

MAX_BYTES: Final = 32 * 1024 * 1024
"""The largest body that is read; a larger one is rejected before anything is built."""

_BOM: Final = b"\xef\xbb\xbf"
_TOKEN: Final = re.compile(
    rb"[ \t\n\r]*+(?:"
    rb"(?P<mark>[\[\]{},:])"
    rb'|(?P<string>"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+")'
    rb"|(?P<number>-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+)(?![0-9.eE+-])"
    rb"|(?P<word>(?:true|false|null))(?![A-Za-z0-9_]))"
).match
_SPACE: Final = re.compile(rb"[ \t\n\r]*+").match
_ESCAPE: Final = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
_TEXT_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?|(.))")
_SHORT: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS: Final[dict[bytes, Any]] = {b"true": True, b"false": False, b"null": None}
_PARTS_KEPT: Final = ("meta", "dead_letter")
_SURELY_FINITE_DIGITS: Final = 308
_OPENERS: Final = {ord("{"): ord("}"), ord("["): ord("]")}


@dataclass(frozen=True, slots=True)
class Member:
    """A member of the message, or of its `meta` or `dead_letter`, with its place in the body.

    `path` is (name,) or (parent, name); `start` is the offset of the name's quote, `value` and
    `end` enclose the value; `kind` is object, array, string, number, true, false or null.
    """

    path: tuple[str, ...]
    start: int
    value: int
    end: int
    kind: str


class _Want(Enum):
    """The tokens that may come next."""

    VALUE = auto()
    ITEM_OR_END = auto()
    NAME = auto()
    NAME_OR_END = auto()
    COLON = auto()
    MORE_OR_END = auto()


_WANTED: Final = {
    _Want.VALUE: "a value",
    _Want.ITEM_OR_END: "a value or ]",
    _Want.NAME: "a member name",
    _Want.NAME_OR_END: "a member name or }",
    _Want.COLON: "a colon",
    _Want.MORE_OR_END: "a comma or a closing bracket",
}


def check_text(body: bytes) -> None:
    """Reject a body that is too large, is not UTF-8, or begins with a byte order mark."""
    if len(body) > MAX_BYTES:
        raise Rejected(
            f"the body has more than {MAX_BYTES} bytes, which is the limit",
            code="too_large",
            offset=MAX_BYTES,
        )
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise Rejected(
            f"the body is not UTF-8: {error.reason}", code="not_utf8", offset=error.start
        ) from None
    if body.startswith(_BOM):
        raise Rejected("the body starts with a byte order mark", code="byte_order_mark", offset=0)


def scan(body: bytes, *, finite: bool = True) -> list[Member]:
    """Check the whole body and give its members in order; raise `Rejected` at the first fault.

    With `finite` every number inside `data` must fit a double; else only the grammar is checked.
    """
    check_text(body)
    members: list[Member] = []
    closers: list[int] = []  # one per open container
    starts: list[int] = []  # where each open container began
    trail: list[str | int] = []  # the member or item being read in each open container
    names: list[int] = [0]  # where the name of each member being read began
    position, want = 0, _Want.VALUE
    while True:
        token = _TOKEN(body, position)
        if token is None:
            _no_token(body, position, want, trail)
        group = token.lastgroup
        start, end = token.span(group or 0)
        mark = body[start] if group == "mark" else 0
        position = end
        if not closers and (mark != ord("{") or want is not _Want.VALUE):
            raise Rejected(
                "the body must be one JSON object", code="not_an_object", offset=start, pointer=""
            )
        if want is _Want.COLON:
            if mark != ord(":"):
                _unexpected(start, want, trail)
            want = _Want.VALUE
            continue
        if want in (_Want.NAME, _Want.NAME_OR_END) and group == "string":
            trail[-1] = string_value(body[start:end], start, trail[:-1])
            names[-1] = start
            want = _Want.COLON
            continue
        if want is _Want.MORE_OR_END and mark == ord(","):
            want = _next_item(closers, trail)
            continue
        if want in (_Want.VALUE, _Want.ITEM_OR_END) and mark in _OPENERS:
            if len(closers) == MAX_DEPTH:
                raise Rejected(
                    f"nested deeper than {MAX_DEPTH} levels", code="too_deep", offset=start
                )
            closers.append(_OPENERS[mark])
            starts.append(start)
            trail.append(0)
            names.append(start)
            want = _Want.NAME_OR_END if mark == ord("{") else _Want.ITEM_OR_END
            continue
        if want in (_Want.VALUE, _Want.ITEM_OR_END) and not mark:
            _check_leaf(body[start:end], group, start, trail, finite=finite)
            kind = body[start:end].decode() if group == "word" else str(group)
        elif closers[-1] == mark and want not in (_Want.VALUE, _Want.NAME):
            kind = "object" if closers.pop() == ord("}") else "array"
            start = starts.pop()
            trail.pop()
            names.pop()
        else:
            _unexpected(start, want, trail)
        if not closers:
            break
        if len(closers) == 1 or (len(closers) == 2 and trail[0] in _PARTS_KEPT):
            path = tuple(step for step in trail if isinstance(step, str))
            if len(path) == len(closers):
                members.append(Member(path, names[-1], start, end, kind))
        want = _Want.MORE_OR_END
    space = _SPACE(body, position)
    position = space.end() if space else position
    if position < len(body):
        raise Rejected("extra text after the JSON object", code="trailing_data", offset=position)
    return members


def load(text: bytes) -> Any:
    """Build the value of a JSON text that `scan` has passed, at any depth and integer size.

    The last of duplicate names wins. An integer of 4,000 digits or more is a Decimal, because
    making an int of it takes quadratic time. A number too large for a double becomes an infinity,
    which no encoder of Tallystick writes.
    """
    root: list[Any] = []
    containers: list[Any] = [root]
    names: list[str | None] = [None]
    position = 0
    while position < len(text):
        token = _TOKEN(text, position)
        if token is None:
            break
        group, position = token.lastgroup, token.end()
        piece = token[group or 0]
        if piece in b",:":
            continue
        if piece in b"}]":
            containers.pop()
            names.pop()
            continue
        if group == "string" and type(containers[-1]) is dict and names[-1] is None:
            names[-1] = string_value(piece, 0, ())
            continue
        value: Any = {} if piece == b"{" else [] if piece == b"[" else _leaf(piece, group)
        holder = containers[-1]
        if type(holder) is dict:
            holder[names[-1]] = value
            names[-1] = None
        else:
            holder.append(value)
        if group == "mark":
            containers.append(value)
            names.append(None)
    return root[0]


@dataclass(frozen=True, slots=True)
class Place:
    """A value with its place: the trail to it, its kind, its text (of a leaf), its offset.

    An object carries its member names as `names`, in order and with duplicates.
    """

    trail: tuple[str | int, ...]
    kind: str
    text: bytes
    offset: int
    names: tuple[str, ...] = ()


def walk(body: bytes) -> Iterator[Place]:
    """Visit every value of a body that `scan` has passed; a container comes after its members."""
    containers: list[tuple[str, int, list[str]]] = []
    trail: list[str | int] = []
    position, name_next = 0, False
    while token := _TOKEN(body, position):
        group, position = token.lastgroup, token.end()
        start = token.start(group or 0)
        piece = token[group or 0]
        if piece == b"," and containers[-1][0] == "array":
            trail[-1] = cast("int", trail[-1]) + 1
        elif piece in b",:":
            name_next = piece == b","
        elif piece in b"{[":
            containers.append(("object" if piece == b"{" else "array", start, []))
            trail.append(0)
            name_next = piece == b"{"
        elif piece in b"}]":
            kind, opened, names = containers.pop()
            trail.pop()
            yield Place(tuple(trail), kind, b"", opened, tuple(names))
            name_next = False
        elif name_next:
            trail[-1] = string_value(piece, start, ())
            containers[-1][2].append(str(trail[-1]))
            name_next = False
        else:
            yield Place(tuple(trail), str(group), piece, start)


def string_value(token: bytes, offset: int, trail: list[str | int] | tuple[str | int, ...]) -> str:
    """Read a string token; a lone surrogate escape is rejected."""
    text = token[1:-1].decode()
    if "\\" not in text:
        return text
    high_at = -1
    for escape in _ESCAPE.finditer(token):
        unit = int(escape[1], 16) if escape[1] else 0
        if 0xDC00 <= unit <= 0xDFFF and escape.start() == high_at + 6 and high_at >= 0:
            high_at = -1
        elif 0xDC00 <= unit <= 0xDFFF or (high_at >= 0):
            break
        else:
            high_at = escape.start() if 0xD800 <= unit <= 0xDBFF else -1
    else:
        if high_at < 0:
            return _TEXT_ESCAPE.sub(_unescape, text)
    raise Rejected(
        "a lone surrogate escape: half of a pair is missing",
        code="lone_surrogate",
        pointer=pointer_to(tuple(trail)),
        offset=offset + (high_at if high_at >= 0 else escape.start()),
    )


def _next_item(closers: list[int], trail: list[str | int]) -> _Want:
    if closers[-1] == ord("}"):
        return _Want.NAME
    step = trail[-1]
    trail[-1] = step + 1 if isinstance(step, int) else 0
    return _Want.VALUE


def _check_leaf(
    piece: bytes, group: str | None, start: int, trail: list[str | int], *, finite: bool
) -> None:
    if group == "string":
        if b"\\u" in piece:
            string_value(piece, start, trail)
    elif finite and group == "number" and trail[0] == "data" and not _is_finite(piece):
        raise Rejected(
            "this number is too large for a double",
            code="number_out_of_range",
            pointer=pointer_to(tuple(trail)),
            offset=start,
        )


def _is_finite(literal: bytes) -> bool:
    """Tell whether a number literal fits a double; a short integer is not converted for that."""
    if len(literal) <= _SURELY_FINITE_DIGITS and not (b"e" in literal or b"E" in literal):
        return True
    return isfinite(float(literal))


def _leaf(piece: bytes, group: str | None) -> Any:
    if group == "string":
        return string_value(piece, 0, ())
    if group == "word":
        return _WORDS[piece]
    if piece.translate(None, b"-0123456789"):
        return float(piece)
    return int(piece) if len(piece) < 4000 else Decimal(piece.decode())


def _unescape(escape: re.Match[str]) -> str:
    first, second, short = escape.groups()
    if short is not None:
        return _SHORT.get(short, short)
    unit = int(first, 16)
    if second is None:
        return chr(unit)
    if 0xD800 <= unit <= 0xDBFF:
        return chr(0x10000 + ((unit - 0xD800) << 10) + (int(second, 16) - 0xDC00))
    return chr(unit) + chr(int(second, 16))


def _no_token(body: bytes, position: int, want: _Want, trail: list[str | int]) -> NoReturn:
    space = _SPACE(body, position)
    start = space.end() if space else position
    if start < len(body):
        _unexpected(start, want, trail)
    if not trail:
        raise Rejected("the body is empty", code="empty", offset=start)
    raise Rejected(
        f"the body ends early: expected {_WANTED[want]}",
        code="truncated",
        offset=start,
        pointer=_pointer(want, trail),
    )


def _unexpected(start: int, want: _Want, trail: list[str | int]) -> NoReturn:
    raise Rejected(
        f"not JSON: expected {_WANTED[want]}",
        code="not_json",
        offset=start,
        pointer=_pointer(want, trail) if trail else None,
    )


def _pointer(want: _Want, trail: list[str | int]) -> str:
    """Point at the member being read, or at its object while the name is still unknown."""
    return pointer_to(tuple(trail[:-1] if want in (_Want.NAME, _Want.NAME_OR_END) else trail))
