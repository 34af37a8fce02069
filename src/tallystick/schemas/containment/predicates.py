"""Ask the validator about a string: its patterns, formats and contents.

Every check of a concrete string uses jsonschema-rs, so that a proof and the validator always agree.
This module also has facts that help a proof: samples of each format, a regular language that
contains the whole format, and which format contains which.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final

from tallystick.core.errors import Rejected
from tallystick.schemas.containment.nodes import Undecided
from tallystick.schemas.containment.pattern import pattern_language
from tallystick.schemas.containment.regex import EVERYTHING, Term
from tallystick.schemas.validate import Checker, compile_schema

__all__ = ["HOLDS", "SAMPLES", "enclosing", "is_asserted", "matches", "predicate"]

_DIALECT_URIS: Final = {
    "draft-07": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}

SAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "date": ("2024-01-31", "1999-12-01"),
    "time": ("12:30:00Z", "23:59:59+02:00"),
    "date-time": ("2024-01-31T12:30:00Z", "1999-12-01T00:00:00+02:00"),
    "duration": ("P1D", "PT1H"),
    "email": ("a@example.com", "b.c@example.org"),
    "idn-email": ("a@example.com", "ü@example.com"),
    "hostname": ("example.com", "a.example.org"),
    "idn-hostname": ("example.com", "münchen.de"),
    "ipv4": ("192.0.2.1", "10.0.0.1"),
    "ipv6": ("2001:db8::1", "::1"),
    "uri": ("https://example.com/a", "urn:a:b"),
    "uri-reference": ("https://example.com/a", "/a/b", "a"),
    "iri": ("https://example.com/a", "https://example.com/ü"),
    "iri-reference": ("https://example.com/ü", "/ü", "a"),
    "uri-template": ("/a/{b}", "https://example.com/{a}"),
    "uuid": ("6a1d0a2e-3c0b-4f3f-9a57-0a8c1f6f2f10", "00000000-0000-0000-0000-000000000000"),
    "json-pointer": ("/a/b", ""),
    "relative-json-pointer": ("0", "1/a"),
    "regex": ("^a$", "[0-9]+"),
}

_ENCLOSING: Final[dict[str, str]] = {
    "date": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "time": r"^[0-9]{2}:[0-9]{2}:[0-9]{2}[0-9.:+\-zZ]+$",
    "date-time": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[^0-9][0-9]{2}:[0-9]{2}:[0-9]{2}[0-9.:+\-zZ]+$",
    "duration": r"^P[0-9A-Z]+$",
    "uuid": r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
    "ipv4": r"^[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}$",
    "ipv6": r"^[0-9a-fA-F:.]{2,45}$",
    "hostname": r"^[A-Za-z0-9.\-]{1,254}$",
    "email": r"^[\s\S]+@[\s\S]+$",
    "idn-email": r"^[\s\S]+@[\s\S]+$",
    "uri": r"^[A-Za-z][A-Za-z0-9+.\-]*:",
    "iri": r"^[A-Za-z][A-Za-z0-9+.\-]*:",
    "json-pointer": r"^(/|$)",
    "relative-json-pointer": r"^[0-9]",
}
"""Patterns that match every string of a format as its RFC defines it, and maybe more."""

HOLDS: Final[dict[str, tuple[str, ...]]] = {
    "idn-email": ("email",),
    "uri-reference": ("uri",),
    "iri": ("uri",),
    "iri-reference": ("uri", "uri-reference", "iri"),
}
"""Formats that are contained in a wider format."""


def predicate(mini: dict[str, Any], dialect: str) -> str:
    """Make a predicate for the validator: a schema of one or two keywords, in its dialect."""
    return json.dumps({"$schema": _DIALECT_URIS[dialect], **mini}, sort_keys=True)


@lru_cache(maxsize=4000)
def _checker(question: str) -> Checker:
    try:
        return compile_schema(json.loads(question), formats="assert")
    except Rejected as error:
        raise Undecided(error.message) from error


@lru_cache(maxsize=20_000)
def matches(question: str, text: str) -> bool:
    """Ask the validator about one string."""
    return _checker(question).is_valid(text)


@lru_cache(maxsize=500)
def is_asserted(question: str) -> bool:
    """Tell whether the validator refuses any string for this predicate."""
    return not all(matches(question, text) for text in ("\x00 {", "!", "", "a b", "%", "ü:/ {"))


@lru_cache(maxsize=500)
def enclosing(question: str) -> Term:
    """Return a regular language that contains every string that the predicate accepts."""
    pattern = _ENCLOSING.get(json.loads(question).get("format", ""))
    return pattern_language(pattern) if pattern else EVERYTHING
