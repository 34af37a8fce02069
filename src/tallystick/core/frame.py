"""A `Frame` is the native message of one broker: a body, and sections of native fields.

`sections` maps a section's name (`headers`, `properties`, ...) to its fields. Values keep the
broker's own types: a Kafka header is bytes, a Service Bus property may be a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

__all__ = ["Frame", "Sections"]

Sections = Mapping[str, Mapping[str, Any]]


class Frame(Struct, frozen=True, gc=False):
    """One native message: the exact body, and the native fields beside it.

    A repr does not show the body: it may hold personal data.
    """

    body: bytes
    sections: Sections = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Frame(sections={self.sections!r})"

    def get(self, section: str, key: str) -> Any:
        """Give a native field, or None when the broker did not carry it."""
        return self.sections.get(section, {}).get(key)
