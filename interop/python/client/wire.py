"""What goes over the wire: seeded bodies, envelopes, properties, and header values as tagged JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pika
from pika.compat import long

PROPERTIES = ("content_type", "content_encoding", "delivery_mode", "priority", "correlation_id", "reply_to",
              "expiration", "message_id", "type", "user_id", "app_id")  # fmt: skip


def make_body(seed: int, sequence: int, size: int) -> bytes:
    """Give the body of one message: the first 31 bytes of a hash, over and over."""
    pattern = hashlib.sha256(f"{seed}.{sequence}".encode()).digest()[:31]
    return (pattern * (size // 31 + 1))[:size]


def first_difference(wanted: bytes, found: bytes) -> int:
    """Give the offset where two bodies part, or -1."""
    pairs = enumerate(zip(wanted, found, strict=False))
    return -1 if wanted == found else next((at for at, (a, b) in pairs if a != b), min(len(wanted), len(found)))


def drop_absent(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def project(body: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Carry an envelope as the RabbitMQ binding says; what is absent stays absent."""
    read = json.loads(body)
    meta, job = {} if read.get("meta") is None else dict(read["meta"].items()), read.get("job")
    named = isinstance(job, str) and job.strip(" \t\n\v\f\r")
    versions = {"x-schema-version": meta.get("schema_version"), "x-attempts": read.get("attempts")}
    properties = {
        "type": job if named else read.get("urn"), "correlation_id": read.get("trace_id"),
        "message_id": meta.get("id"), "app_id": "babelqueue", "content_type": "application/json",
        "content_encoding": "utf-8", "delivery_mode": 2,
    }  # fmt: skip
    return drop_absent({**versions, "x-source-lang": meta.get("lang")}), properties, body


WRITE: dict[str, Callable[..., Any]] = {
    "t": "true".__eq__, "I": int, "l": long, "S": str, "x": bytes.fromhex, "V": lambda: None,
    "D": lambda scale, digits: Decimal(int(digits)).scaleb(-int(scale)),
    "T": lambda text: datetime.fromtimestamp(int(text), UTC),
    "A": lambda items: [WRITE[kind](*rest) for kind, *rest in items],
    "F": lambda members: {name: WRITE[kind](*rest) for name, (kind, *rest) in members.items()},
}  # fmt: skip
"""By tag, what pika writes with it."""

READ: dict[type, Callable[[Any], list[Any]]] = {
    type(None): lambda _: ["V"], bool: lambda value: ["t", str(value).lower()], str: lambda value: ["S", value],
    int: lambda value: ["*", str(value)], long: lambda value: ["*", str(int(value))],
    bytes: lambda value: ["x", value.hex()], datetime: lambda value: ["T", str(int(value.timestamp()))],
    Decimal: lambda value: ["D", str(-value.as_tuple().exponent), str(value.scaleb(-value.as_tuple().exponent))],
    list: lambda items: ["A", [READ[type(item)](item) for item in items]],
    dict: lambda table: ["F", {name: READ[type(value)](value) for name, value in table.items()}],
}  # fmt: skip
"""By type, the tagged form of what pika read; it does not tell how wide an integer was."""


def tag_message(found: pika.BasicProperties) -> dict[str, Any]:
    """Give the properties that are set, and the header table with its values tagged."""
    properties = drop_absent({name: getattr(found, name) for name in PROPERTIES})
    return {"properties": properties, "headers": READ[dict](found.headers or {})[1]}
