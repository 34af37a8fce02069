"""A case of a manifest (`Raw`), and the calls that it becomes (`Ask`)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tallystick.suites.compare import parse

__all__ = [
    "BROKERS",
    "BROKER_NAMES",
    "Ask",
    "Raw",
    "attempts_of",
    "rejects",
    "to_base64",
    "to_json",
    "with_bytes",
]

BROKERS: Final = ("redis", "rabbitmq", "sqs", "servicebus", "pulsar", "kafka", "artemis")
BROKER_NAMES: Final = {"asb": "servicebus"}
"""The suite's name of a broker -> ours, where they differ."""


@dataclass(frozen=True, slots=True)
class Raw:
    """A case of the manifest, with the block around it."""

    section: str
    sub: str
    case: dict[str, Any]
    block: dict[str, Any]
    whole: dict[str, Any]
    read: Callable[[str], bytes]

    @property
    def broker(self) -> str:
        """Name the broker of a broker's section."""
        bare = self.section.removeprefix("version_gate_").split("_", maxsplit=1)[0]
        return BROKER_NAMES.get(bare, bare)

    def file(self, member: str = "file") -> bytes:
        """Read the fixture that a member of the case names."""
        return self.read(self.case[member])

    def body(self) -> bytes:
        """Give the message of a case: a fixture, a text, or base64."""
        if "body_base64" in self.case:
            return base64.b64decode(self.case["body_base64"], validate=True)
        return self.case["body"].encode() if "body" in self.case else self.file()


@dataclass(frozen=True, slots=True)
class Ask:
    """One call and what is expected of it."""

    operation: str
    given: dict[str, Any]
    expect: dict[str, Any]


def to_base64(data: bytes) -> str:
    """Give bytes as the protocol carries them."""
    return base64.b64encode(data).decode()


def to_json(value: Any) -> str:
    """Give a JSON value as the protocol carries it: its text, in base64."""
    return to_base64(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def attempts_of(body: bytes) -> int:
    """Read `attempts` of a message; 0 if it has none."""
    attempts = parse(body).get("attempts", 0)
    return attempts if type(attempts) is int else 0


def rejects(raw: Raw) -> bool:
    """Tell whether the case expects a rejection."""
    return raw.case.get("expect") == "reject"


def with_bytes(value: Any, read: Callable[[str], bytes]) -> Any:
    """Give a value in which `<name>_text` and `<name>_file` have become `<name>_base64`.

    A member called `file` stands for `body_file`. This holds at any depth.
    """
    if isinstance(value, list):
        return [with_bytes(one, read) for one in value]
    if not isinstance(value, dict):
        return value
    given: dict[str, Any] = {}
    for member, inner in value.items():
        name = "body_file" if member == "file" else member
        stem, _, kind = name.rpartition("_")
        if kind in _SOURCES and stem:
            given[f"{stem}_base64"] = to_base64(_SOURCES[kind](inner, read))
        else:
            given[name] = with_bytes(inner, read)
    return given


_SOURCES: Final[dict[str, Callable[[str, Callable[[str], bytes]], bytes]]] = {
    "text": lambda text, _read: text.encode(),
    "file": lambda path, read: read(path),
}
