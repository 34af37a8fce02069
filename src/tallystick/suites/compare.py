"""Exact comparison of JSON values.

Types are distinct: `true` is not `1`, `1` is not `1.0`, `{}` is not `[]`, `-0.0` is not `0.0`.
Integers are exact at any size; a number too large for a double keeps its digits. Member order
is ignored; of two members with the same name the last one wins. `...` means a missing value.
"""

from __future__ import annotations

import json
from decimal import Decimal
from math import copysign, isfinite
from typing import TYPE_CHECKING, Any, Final, NoReturn

from tallystick.core.verdict import Difference

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["compare", "contain", "lookup", "parse", "same"]

_PLAIN_DIGITS: Final = 4000


def _whole(text: str) -> int | Decimal:
    return int(text) if len(text) < _PLAIN_DIGITS else Decimal(text)


def _fraction(text: str) -> float | Decimal:
    value = float(text)
    return value if isfinite(value) else Decimal(text)


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON value")


def parse(text: str | bytes) -> Any:
    """Read strict JSON, or raise ValueError saying why not."""
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        return json.loads(
            decoded, parse_int=_whole, parse_float=_fraction, parse_constant=_constant
        )
    except RecursionError as error:
        raise ValueError("nested too deep to compare") from error


def same(expected: Any, found: Any) -> bool:
    """Tell whether two JSON values are equal, including their types."""
    return next(compare(expected, found), None) is None


def compare(expected: Any, found: Any, pointer: str = "") -> Iterator[Difference]:
    """Name every place where two JSON values differ."""
    return _walk(expected, found, pointer, extra=True)


def contain(expected: Any, found: Any, pointer: str = "") -> Iterator[Difference]:
    """Name every place where `found` differs from `expected`; extra members are allowed."""
    return _walk(expected, found, pointer, extra=False)


def _walk(expected: Any, found: Any, pointer: str, *, extra: bool) -> Iterator[Difference]:
    waiting = [(pointer, expected, found)]
    while waiting:
        at, want, have = waiting.pop()
        if isinstance(want, dict) and isinstance(have, dict):
            names = [*want, *(name for name in have if extra and name not in want)]
            inner = [
                (f"{at}/{_escape(name)}", want.get(name, ...), have.get(name, ...))
                for name in names
            ]
        elif isinstance(want, list) and isinstance(have, list):
            longest = max(len(want), len(have))
            inner = [(f"{at}/{n}", _item(want, n), _item(have, n)) for n in range(longest)]
        else:
            if not _same_scalar(want, have):
                yield Difference(at, want, have)
            continue
        waiting.extend(reversed(inner))


def _same_scalar(want: Any, have: Any) -> bool:
    if type(want) is not type(have) or want != have:
        return False
    return not isinstance(want, float) or copysign(1, want) == copysign(1, have)


def _item(values: list[Any], index: int) -> Any:
    return values[index] if index < len(values) else ...


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def lookup(document: Any, pointer: str) -> Any:
    """Give the value at an RFC 6901 pointer, or `...` if it does not exist."""
    value = document
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name, ...)
        elif isinstance(value, list) and name.isdecimal() and name.isascii():
            value = _item(value, int(name))
        else:
            return ...
    return value
