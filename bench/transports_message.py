"""The message that every contender of `bench/transports.py` sends and reads: 330 bytes of JSON."""

from __future__ import annotations

from collections.abc import Iterator
from time import time
from typing import Any, Final, NamedTuple
from uuid import uuid4

import msgspec

__all__ = ["BATCH", "TAKE", "URN", "Made", "batches", "look", "make", "payload"]

URN: Final = "urn:babel:orders:created"
BATCH: Final = 500
TAKE: Final = 100
_write: Final = msgspec.json.Encoder().encode
_read: Final = msgspec.json.Decoder().decode


class Made(NamedTuple):
    """One message, made by hand."""

    number: int
    urn: str
    id: str
    trace_id: str
    created_at: int
    body: bytes


def payload(number: int) -> dict[str, Any]:
    """Give what a publisher has in its hands."""
    return {"order": number, "customer": "c-20481", "total": 129.5, "lines": ["a", "b", "c"]}


def make(number: int) -> Made:
    """Write one message as the contract wants it, without us."""
    own, trace, now = str(uuid4()), str(uuid4()), int(time() * 1000)
    meta = {"id": own, "queue": "bench", "lang": "python", "schema_version": 1, "created_at": now}
    document = {
        "job": URN, "trace_id": trace, "data": payload(number), "meta": meta, "attempts": 0,
    }  # fmt: skip
    return Made(number, URN, own, trace, now, _write(document))


def look(body: bytes) -> int:
    """Read a message as a handler needs it."""
    order: int = _read(body)["data"]["order"]
    return order


def batches(count: int, size: int) -> Iterator[range]:
    """Cut so many numbers into batches."""
    for start in range(0, count, size):
        yield range(start, min(start + size, count))
