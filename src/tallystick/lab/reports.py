"""Merge the reports of clients, message by message, into the evidence for a judge.

A client lists what happened since its last report, by kind, and computes no sums. This module joins
the lists of a role into streams by consumer, sender, correlation id and publisher (IOP-38), ranges
of numbers, digests and latencies (docs/reference/lab-protocol.md, Reports).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from tallystick.lab.content import plain_value
from tallystick.lab.control import Control, Role
from tallystick.lab.instance import Part
from tallystick.lab.payload import write_runs
from tallystick.lab.values import read_values

__all__ = ["join_reports", "tally_report"]


_PROPERTIES: Final = (
    "content_type", "content_encoding", "delivery_mode", "priority", "correlation_id", "reply_to",
    "expiration", "message_id", "type", "user_id", "app_id",
)  # fmt: skip


_LISTS: Final = ("messages", "returned", "left", "closed", "error", "started_ns", "ended_ns")
_NOTHING: Final[Mapping[str, Any]] = {
    "batches": (), "spans": (), "returned": [], "left": 0, "closed": None, "error": "",
    "started_ns": "0", "ended_ns": "0",
}  # fmt: skip


class _Sent(NamedTuple):
    publisher: int
    sequence: int
    sha256: str


class _Received(NamedTuple):
    stream: tuple[int, str, str, int] | None
    """Consumer, sender, correlation id, publisher; nothing for a message of no client."""
    consumer: int
    sequence: int
    redelivered: bool
    put_back: bool
    arrived: int
    sent: int | None
    length: int
    sha256: str
    differs: int
    whole: Mapping[str, Any] | None


def _read_sent(told: Mapping[str, Any]) -> _Sent:
    return _Sent(int(told["publisher"]), int(told["sequence"]), str(told["sha256"]))


def _read_received(told: Mapping[str, Any], about: Mapping[str, Any]) -> _Received:
    absent = (None, "", 0) if about.get("blank_is_absent") is True else (None,)
    found = told["properties"]
    properties = {name: found[name] for name in _PROPERTIES if found.get(name) not in absent}
    tagged = read_values(told["headers"], about)
    headers = {name: plain_value(value) for name, value in tagged.items()}
    sender, sequence = headers.get("CLIENT_NAME"), headers.get("SEQUENCE")
    stream = None
    if isinstance(sender, str) and isinstance(sequence, int):
        correlation = properties.get("correlation_id", "")
        stream = (told["consumer"], sender, correlation, headers.get("PUBLISHER", 0))
    echoed = told.get("body") is not None
    whole = {**told, "properties": properties, "headers": tagged} if echoed else None
    differs = -1 if told["differs"] is None else int(told["differs"])
    return _Received(
        stream, told["consumer"], sequence or 0, told["redelivered"], told["put_back"],
        int(told["arrived_ns"]), headers.get("SENT_NS"), told["length"], told["sha256"], differs,
        whole,
    )  # fmt: skip


def _read_returned(told: Mapping[str, Any], about: Mapping[str, Any]) -> list[int]:
    tagged = read_values(told["headers"], about)
    headers = {name: plain_value(value) for name, value in tagged.items()}
    return [headers.get("PUBLISHER", 0), headers.get("SEQUENCE", -1), told["code"]]


def join_reports(
    role: Role, before: Control | None, said: Control, about: Mapping[str, Any]
) -> Control:
    """Merge a report into the earlier ones of the role; `about` describes the client."""
    lists = {name: said.body.get(name, []) for name in _LISTS}
    older = before.body if before else _NOTHING
    read = _read_sent if role is Role.SENDER else partial(_read_received, about=about)
    started, ended = ((lists[name] or [older[name]])[0] for name in ("started_ns", "ended_ns"))
    error = next((str(one) or "an error without a text" for one in lists["error"]), "")
    closes = sorted(lists["closed"], key=lambda one: bool(one["level"] != "connection"))
    closed = older["closed"] or next(iter(closes), None)
    joined = {
        "batches": (*older["batches"], tuple(read(one) for one in lists["messages"])),
        "spans": (*older["spans"], (started, ended)),
        "returned": older["returned"] + [_read_returned(one, about) for one in lists["returned"]],
        "left": older["left"] + sum(lists["left"]),
        "started_ns": older["started_ns"] if before else started,
        "ended_ns": ended,
        "closed": closed,
        "error": "" if closed else older["error"] or error,
    }
    return replace(said, body=joined)


def tally_report(part: Part, told: Control, shift: int) -> Control:
    """Give the joined reports of a role as a judge reads them; `shift` corrects latencies."""
    listed = [one for batch in told.body["batches"] for one in batch]
    add_up = _add_up_sent if part.role is Role.SENDER else _add_up_received
    spans = list(_spans(part.role, told.body))
    return replace(told, body={**told.body, "spans": spans, **add_up(part, listed, shift)})


def _spans(role: Role, told: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Give when each batch began and ended; the lab's own pauses lie between them."""
    for span, batch in zip(told["spans"], told["batches"], strict=True):
        if role is Role.SENDER and batch:
            yield span
        elif role is Role.RECEIVER and (kept := [one.arrived for one in batch if not one.put_back]):
            yield kept[0], kept[-1]


def _add_up_sent(part: Part, listed: Sequence[_Sent], _shift: int) -> dict[str, Any]:
    publishers = range(part.body.get("num_publishers", 1))
    mine = [[one for one in listed if one.publisher == number] for number in publishers]
    return {
        "sent": [write_runs(one.sequence for one in messages) for messages in mine],
        "digests": [_digest(part, (one.sha256 for one in messages)) for messages in mine],
    }


def _add_up_received(part: Part, listed: Sequence[_Received], shift: int) -> dict[str, Any]:
    kept = [one for one in listed if not one.put_back]
    streams: dict[tuple[int, str, str, int], list[_Received]] = {}
    for one in kept:
        if one.stream and one.whole is None:
            streams.setdefault(one.stream, []).append(one)
    stamped = [(one.arrived, one.sent) for one in kept if one.sent is not None]
    return {
        "streams": [_stream(part, *key, messages) for key, messages in streams.items()],
        "unexpected": [
            [one.consumer, one.length, one.sha256]
            for one in kept
            if one.stream is None and one.whole is None
        ],
        "echo": [one.whole for one in listed if one.whole is not None],
        "first_ns": str(kept[0].arrived) if kept else "",
        "last_ns": str(kept[-1].arrived) if kept else "",
        "latency": Counter(arrived - sent + shift for arrived, sent in stamped),
    }


def _stream(
    part: Part, consumer: int, sender: str, correlation: str, publisher: int,
    messages: Sequence[_Received],
) -> dict[str, Any]:  # fmt: skip
    return {
        "consumer": consumer,
        "sender": sender,
        "correlation_id": correlation,
        "publisher": publisher,
        "received": write_runs(one.sequence for one in messages),
        "redelivered": write_runs(one.sequence for one in messages if one.redelivered),
        "digest": _digest(part, (one.sha256 for one in messages)),
        "altered": [
            [one.sequence, one.differs, one.length, one.sha256]
            for one in messages
            if one.differs >= 0
        ],
    }


def _digest(part: Part, hashes: Iterable[str]) -> str:
    """Give the digest of bodies in their order; none where bodies were not looked at."""
    if part.body.get("check", "hash") != "hash":
        return ""
    return hashlib.sha256(b"".join(map(bytes.fromhex, hashes))).hexdigest()
