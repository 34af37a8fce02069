"""The neutral form of an event (docs/reference/events-protocol.md) and Python's own values."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

__all__ = ["CORE", "data_from", "data_of", "is_json", "values_from", "values_of"]

CORE = (
    "specversion", "id", "source", "type", "datacontenttype", "dataschema", "subject", "time",
)  # fmt: skip

_SHOWN: tuple[tuple[type, str, Callable[[Any], Any]], ...] = (
    (bool, "Boolean", bool),
    (int, "Integer", int),
    (str, "String", str),
    (bytes, "Binary", lambda value: base64.b64encode(value).decode()),
    (datetime, "Timestamp", datetime.isoformat),
)
_READ: dict[str, Callable[[Any], Any]] = {
    "Binary": base64.b64decode,
    "Timestamp": datetime.fromisoformat,
}


def values_of(extensions: Mapping[str, Any]) -> dict[str, Any]:
    """Show extensions with their types, None being unset; another type goes by its own name."""
    return {name: _shown(value) for name, value in extensions.items() if value is not None}


def _shown(value: Any) -> dict[str, Any]:
    for kind, name, show in _SHOWN:
        if isinstance(value, kind):
            return {name: show(value)}
    return {type(value).__name__: value}


def values_from(extensions: Mapping[str, Any]) -> dict[str, Any]:
    """Read extensions as the Python values that stand for them."""
    return {
        name: _READ.get(kind, lambda same: same)(value)
        for name, typed in extensions.items()
        for kind, value in typed.items()
    }


def is_json(content_type: str | None) -> bool:
    """Say whether data under this content type is a JSON value (JSON format, 3.1)."""
    subtype = (content_type or "application/json").partition(";")[0].strip().lower()
    return subtype.endswith(("/json", "+json"))


def data_of(data: Any, content_type: str | None) -> dict[str, Any]:
    """Show data that is there with its kind; what JSON cannot say goes by its Python name."""
    if isinstance(data, bytes | bytearray):
        return {"base64": base64.b64encode(data).decode()}
    if isinstance(data, str) and not is_json(content_type):
        return {"text": data}
    try:
        json.dumps(data, allow_nan=False)
    except (ValueError, TypeError):
        return {type(data).__name__: repr(data)}
    return {"json": data}


def data_from(data: dict[str, Any]) -> Any:
    """Read data as the Python value that stands for it."""
    kind, content = next(iter(data.items()))
    return base64.b64decode(content) if kind == "base64" else content
