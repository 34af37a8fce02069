"""Version 4 UUIDs as text, from the random numbers of the system: the id of every message."""

from __future__ import annotations

from os import urandom
from typing import Final

__all__ = ["new_uuid"]

_VARIANTS: Final = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))


def new_uuid() -> str:
    """Give a new id, lower case with hyphens (122 random bits; RFC 9562, version 4)."""
    text = urandom(16).hex()
    head, middle = f"{text[:8]}-{text[8:12]}", f"4{text[13:16]}-{_VARIANTS[text[16]]}{text[17:20]}"
    return f"{head}-{middle}-{text[20:]}"
