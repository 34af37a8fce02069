"""Checks that a fast decoder does not make: UTF-8, size, depth, numbers too large for a double.

Each check is a cheap test of the bytes. The answer no is certain. A body that may exceed a limit is
checked by `scan`, which defines the rule.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Final

from tallystick.core.canonical import MAX_DEPTH
from tallystick.core.scan import MAX_BYTES

__all__ = ["SHALLOW", "exceeds_a_limit", "is_utf8", "may_overflow"]

_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STEP: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_HUGE_INTEGER: Final = b"0" * 309
_DIGITS: Final = b"0123456789"
_DIGITS_AS_ZERO: Final = bytes.maketrans(b"123456789", b"0" * 9)
SHALLOW: Final = 2 * MAX_DEPTH
"""A body of at most this many bytes cannot be nested too deep."""


def may_overflow(body: bytes) -> bool:
    """Tell whether the body has 309 digits in a row; every 309th byte is tested first."""
    if len(body) < len(_HUGE_INTEGER):
        return False
    probe = body[len(_HUGE_INTEGER) - 1 :: len(_HUGE_INTEGER)]
    if len(probe.translate(None, _DIGITS)) == len(probe):
        return False
    return _HUGE_INTEGER in body.translate(_DIGITS_AS_ZERO)


def is_utf8(body: bytes) -> bool:
    """Tell whether the bytes are UTF-8."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def exceeds_a_limit(body: bytes) -> bool:
    """Tell whether a body is too large or may be nested too deep."""
    if len(body) > MAX_BYTES:
        return True
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return False
    brackets = _STRING.sub(b"", body).translate(None, _NO_BRACKETS)
    return max(accumulate(map(_STEP.__getitem__, brackets))) > MAX_DEPTH
