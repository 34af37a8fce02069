"""How values of the protocol become what `babelqueue` takes, and back."""

from __future__ import annotations

import base64
import json
from typing import Any

__all__ = ["Given", "Result", "Unsupported", "to_base64", "to_json", "to_text"]

Given = dict[str, Any]
Result = dict[str, Any]


class Unsupported(Exception):
    """A declaration, not an error: what the package's public interface does not offer, and why."""


def to_text(given: Given, member: str = "body_base64") -> str:
    """Give bytes as text; a byte that is not UTF-8 becomes a surrogate escape."""
    return base64.b64decode(given[member]).decode("utf-8", "surrogateescape")


def to_base64(text: str) -> str:
    """Give text as the base64 of its UTF-8, surrogate escapes as the bytes they stand for."""
    return base64.b64encode(text.encode("utf-8", "surrogateescape")).decode()


def to_json(given: Given, member: str) -> Any:
    """Give a member that holds JSON text as its value; None when it is not there."""
    return json.loads(to_text(given, member)) if member in given else None
