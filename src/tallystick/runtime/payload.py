"""Convert a payload: a caller may publish a mapping, a dataclass or a msgspec struct."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

import msgspec

from tallystick.core.errors import UsageError

__all__ = ["read_payload"]


def read_payload(data: Any) -> Mapping[str, Any]:
    """Return the payload as an object, or raise an error that names its type."""
    if type(data) is dict:
        return data
    if isinstance(data, msgspec.Struct) or is_dataclass(data):
        data = msgspec.to_builtins(data)
    if not isinstance(data, Mapping):
        raise UsageError(
            f"a payload must be an object, not {type(data).__name__}",
            code="payload",
            hint="pass a mapping, a dataclass or a msgspec struct",
        )
    return data
