"""The only place that makes canonical bytes (docs/concepts/canonical.md).

Inside a value the rules of RFC 8785 hold: members sorted by UTF-16 code units, the shortest
ECMAScript number, minimal escapes, no white space, UTF-8. One rule differs: an integer is kept
exact at any size. NaN, infinities and lone surrogates are refused with a JSON pointer.

`canonical` takes the quick way through a C encoder and looks at what came out. Whatever could
differ from the rules (an exponent, `.0`, a `null` that may have been NaN, a key order that UTF-16
sees otherwise) is written again by `canonical_exact`, which is the rule itself.
"""

from __future__ import annotations

import re
from decimal import Decimal
from math import isfinite
from typing import Any, Final

import orjson

from tallystick.core.errors import Refused

__all__ = ["MAX_DEPTH", "canonical", "canonical_exact", "number_text", "pointer_to", "string_text"]

MAX_DEPTH: Final = 1000
"""How deep arrays and objects may nest; deeper is refused on writing and rejected on reading."""

_QUICK_OPTIONS: Final = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)
_INTEGRAL_FLOAT: Final = re.compile(rb"\.(?=0(?:[,}\]]|\Z))").search
_SMALL_EXPONENT: Final = re.compile(rb"-(?<=e-)(?=6(?:[,}\]]|\Z))").search
_ESCAPED: Final = re.compile(r'["\\\x00-\x1f]')
_LONE_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_SHORT_ESCAPES: Final = {
    '"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
}  # fmt: skip
_MAX_PLAIN_DIGITS: Final = 4000


def canonical(value: Any) -> bytes:
    """Write a JSON value as its canonical bytes, or raise `Refused` with the pointer."""
    try:
        out = orjson.dumps(value, option=_QUICK_OPTIONS)
    except (TypeError, ValueError, RecursionError):
        return canonical_exact(value)
    if b"+" in out or b"null" in out or _INTEGRAL_FLOAT(out) or _SMALL_EXPONENT(out):
        return canonical_exact(value)
    if not out.isascii():
        return canonical_exact(value)
    return out
