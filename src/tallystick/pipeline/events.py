"""Sent and received frames as numbers: the log from which `deliveries` and `flows` are made.

Engines group and sort numbers much faster than texts. So every sent or received frame is also
written as one row of numbers, and the names behind the numbers once per part:

    key    the message's id, 16 bytes as two numbers    trace  likewise; null when not accepted
    flow   a way: broker, queue, URN and program        place  the program's own sequence number

The number of a name is its hash, so every part of every run gives it the same number.
"""

from __future__ import annotations

from array import array
from hashlib import blake2b, sha256
from typing import Any, Final

from tallystick.pipeline.arrow import pa, pc
from tallystick.pipeline.capture import Record
from tallystick.pipeline.judge import UUID, Judged
from tallystick.pipeline.table import Batch, Counts

__all__ = ["EVENTS", "WAYS", "Ways", "number_of"]

EVENTS: Final = pa.schema(
    [
        ("key_high", pa.int64()),
        ("key_low", pa.int64()),
        ("content", pa.int64()),
        ("moment", pa.int64()),
        ("clock_error", pa.int64()),
        ("place", pa.int64()),
        ("attempts", pa.int64()),
        ("sends", pa.bool_()),
        ("flow", pa.int64()),
        ("trace_high", pa.int64()),
        ("trace_low", pa.int64()),
    ]
)
WAYS: Final = pa.schema(
    [
        ("flow", pa.int64()),
        ("broker", pa.string()),
        ("queue", pa.string()),
        ("urn", pa.string()),
        ("node", pa.string()),
        ("urn_number", pa.int64()),
        ("node_number", pa.int64()),
        ("sends", pa.bool_()),
        ("messages", pa.int64()),
    ]
)
_LOGGED: Final = ("sent", "received")


def number_of(*names: str | None) -> int:
    """Give some names, in this order, as one number of 64 bits."""
    told = b"".join(b"\xff" if one is None else one.encode() + b"\xfe" for one in names)
    return int.from_bytes(blake2b(told, digest_size=8).digest(), "big", signed=True)


class Ways:
    """The ways that came by in one part, each with its number and how often it was taken."""

    def __init__(self) -> None:
        self.counts: Counts = {}
        self._rows: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def log(self, batch: Batch, records: list[Record]) -> pa.Table:
        """Give the rows of numbers of a batch."""
        logged = [
            (record, one)
            for record, one in zip(records, batch.judged, strict=True)
            if record.direction in _LOGGED
        ]
        if not logged:
            return EVENTS.empty_table()
        wide = batch.wide
        if len(logged) < wide.num_rows:
            wide = wide.filter(pc.is_in(wide["direction"], pa.array(_LOGGED)))
        high, low = _traces([one for _, one in logged])
        columns = {
            "key_high": wide["key_high"], "key_low": wide["key_low"], "content": wide["content"],
            "moment": wide["at"], "clock_error": wide["clock_error"],
            "place": pc.coalesce(wide["sequence"], wide["at"]),
            "attempts": pc.max_element_wise(wide["attempts"], 0),
            "sends": pc.equal(wide["direction"], "sent"),
            "flow": pa.array([self._flow(*one) for one in logged], pa.int64()),
            "trace_high": high, "trace_low": low,
        }  # fmt: skip
        return pa.table(columns, schema=EVENTS)

    def _flow(self, record: Record, judged: Judged) -> int:
        way = (record.broker, record.queue, judged.urn, record.node, record.direction == "sent")
        row = self._rows.get(way)
        if row is None:
            numbers = (number_of(judged.urn), number_of(record.node))
            row = self._rows[way] = (number_of(*way[:4]), *way[:4], *numbers, way[4])
        self.counts[row] = self.counts.get(row, 0) + 1
        return int(row[0])


def _traces(judged: list[Judged]) -> tuple[pa.Array, pa.Array]:
    """Give the traces of accepted messages as two columns of numbers."""
    texts = [one.trace_id if one.verdict != "refused" else None for one in judged]
    numbers = array("q", b"".join(map(_trace_bytes, texts)))
    numbers.byteswap()
    missing = [one is None for one in texts]
    high, low = (pa.array(numbers[at::2], pa.int64()) for at in (0, 1))
    if any(missing):
        known = pa.array([not one for one in missing])
        high, low = (pc.if_else(known, one, None) for one in (high, low))
    return high, low


def _trace_bytes(text: str | None) -> bytes:
    if text is None:
        return bytes(16)
    if UUID(text):
        return bytes.fromhex(text.replace("-", ""))
    return sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]
