"""A `Frame` is what one broker natively carries: a body, and sections of native fields.

`sections` maps a section's name (`headers`, `properties`, ...) to its fields. Values keep the
broker's own types: a Kafka header is bytes, a Service Bus property may be a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Frame", "Sections"]

Sections = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Frame:
    """One native message: the exact body, and the native fields beside it.

    A repr does not show the body: it may hold personal data.
    """

    body: bytes = field(repr=False)
    sections: Sections = field(default_factory=dict)

    def get(self, section: str, key: str) -> Any:
        """Give a native field, or None when the broker did not carry it."""
        return self.sections.get(section, {}).get(key)
