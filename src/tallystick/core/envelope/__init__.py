"""The canonical message, and the bytes it came from.

A body is decoded by the rules of the message contract: names are case-sensitive, the last of
duplicate names wins, unknown members survive, `urn` is an alias of `job`, forbidden members are
dropped with a warning, known members have one type at every occurrence, and trimming knows ASCII
white space only. `decode` gives an `Envelope` or raises `Rejected`; it never guesses.

    message     the value, its document, its canonical bytes
    reading     body -> message: the fast path and the exact path
    accepting   the verdict of a consumer on a message
    making      a new message, or a changed copy
"""

from __future__ import annotations

from tallystick.core.envelope.accepting import (
    Classification,
    accepts,
    classify,
    reason_not_accepted,
)
from tallystick.core.envelope.making import make, replace
from tallystick.core.envelope.message import SCHEMA_VERSION, DeadLetter, Envelope, Meta, encode
from tallystick.core.envelope.reading import decode
from tallystick.core.exact import ASCII_SPACE, FORBIDDEN, FORBIDDEN_META, Notice

__all__ = [
    "ASCII_SPACE",
    "FORBIDDEN",
    "FORBIDDEN_META",
    "SCHEMA_VERSION",
    "Classification",
    "DeadLetter",
    "Envelope",
    "Meta",
    "Notice",
    "accepts",
    "classify",
    "decode",
    "encode",
    "make",
    "reason_not_accepted",
    "replace",
]
