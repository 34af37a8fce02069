"""Convert header values between the lab and a client that uses the type names of its library.

In the lab a header value has a tag: `["I", "7"]` (docs/reference/lab-protocol.md, Tagged values).
If a library writes its own values as JSON, its client needs no table of seventeen types: such a
value is `{"LongInt": 7}`, and `types` in the client's manifest says that `LongInt` is `I`. The name
is that of the type in the library, so a misread type is noticed.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from datetime import datetime
from math import isfinite
from typing import Any

__all__ = ["read_values", "write_values"]


def write_values(table: Mapping[str, Any], about: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give tagged values in the words of a client; none, where it has none for one of them."""
    types = about.get("types")
    try:
        names = {tag: name for name, tag in types.items()} if types else {}
        return {name: _write(value, names) for name, value in table.items()}
    except (LookupError, TypeError, ValueError, AttributeError):
        return {}


def read_values(told: Mapping[str, Any] | None, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the header table of a client as tagged values; None is an empty table."""
    return {name: _read(value, about.get("types", {})) for name, value in (told or {}).items()}


def _write(tagged: list[Any], names: Mapping[str, str]) -> Any:
    value: Any
    match tagged:
        case ["V"]:
            return names["V"]
        case ["A", items]:
            value = [_write(one, names) for one in items]
        case ["F", members]:
            value = {name: _write(one, names) for name, one in members.items()}
        case ["D", scale, unscaled]:
            value = {"scale": int(scale), "value": int(unscaled) % 2**32}
        case ["t", text]:
            value = text == "true"
        case ["S", text]:
            value = list(text.encode())
        case ["x", text]:
            value = list(bytes.fromhex(text))
        case ["f" | "d", text]:
            value = float(text)
            if not isfinite(value):
                raise ValueError(f"JSON does not allow {text}")
        case [_, text]:
            value = int(text)
    return {names[tagged[0]]: value}


def _read(told: Any, types: Mapping[str, str]) -> list[Any]:
    if isinstance(told, list):
        return told
    named: Mapping[str, Any] = told if isinstance(told, Mapping) else {told: None}
    ((name, value),) = named.items()
    tag = types[name]
    match tag, value:
        case "V", _:
            return [tag]
        case "A", items:
            return [tag, [_read(one, types) for one in items]]
        case "F", members:
            return [tag, {member: _read(one, types) for member, one in members.items()}]
        case "D", parts:
            scale, unscaled = (parts.get(one, parts.get(one.title())) for one in ("scale", "value"))
            return [tag, str(scale), str((unscaled + 2**31) % 2**32 - 2**31)]
        case (("S" | "x"), _):
            return _read_bytes(tag, value)
        case "T", str():
            return [tag, str(int(datetime.fromisoformat(value).timestamp()))]
        case "t", _:
            return [tag, str(value).lower()]
    return [tag, str(value)]


def _read_bytes(tag: str, value: Any) -> list[Any]:
    """Return a string or bytes from text, base64 or a list of numbers."""
    if tag == "S" and isinstance(value, str):
        return [tag, value]
    if not isinstance(value, str | list):
        raise TypeError(f"{value!r} is neither text nor a list of numbers")
    found = b64decode(value, validate=True) if isinstance(value, str) else bytes(value)
    try:
        return [tag, found.decode() if tag == "S" else found.hex()]
    except UnicodeDecodeError:
        return ["x", found.hex()]
