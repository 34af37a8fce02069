"""Markup as values: anything that is not `Markup` is text, and text is escaped in this one place.

URNs, names and paths come from outside. `tag` is the only way to make an element, so no text can
end its element or its attribute.
"""

from __future__ import annotations

from html import escape
from typing import Any

__all__ = ["Markup", "join", "tag"]


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(name: str, /, *inside: object, **attributes: Any) -> Markup:
    """Give an element; `class_` is `class`, `data_at` is `data-at`; None leaves one out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>{join(inside)}</{name}>")


def join(inside: Any) -> Markup:
    """Give parts one after the other."""
    return Markup("".join(one if isinstance(one, Markup) else escape(str(one)) for one in inside))


def _value(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else escape(str(value))
