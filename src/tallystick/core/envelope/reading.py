"""Decode a body into a message: the fast decoder, and the exact one for what it rejects.

The fast decoder is a typed C decoder that checks grammar and types and skips unused members.
A body that it rejects or cannot represent is read by `judge`, which defines the rule.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, field
from msgspec.structs import force_setattr

from tallystick.core.envelope.message import QUICK_FAULTS, DeadLetter, Envelope, Meta, Skipped
from tallystick.core.exact import ASCII_SPACE, judge
from tallystick.core.limits import SHALLOW, exceeds_a_limit, is_utf8, may_overflow
from tallystick.core.scan import scan

__all__ = ["decode"]


class _Whole(Envelope, frozen=True, gc=False, eq=False):
    """The same message with its payload read in the same pass."""

    payload: dict[str, Any] | None = field(default=None, name="data")  # type: ignore[assignment]


_DOUBTFUL: Final = Envelope()
_FIRST_VISIBLE: Final = "!"
"""A text that sorts at or after this one does not begin with ASCII white space."""
_quick_decode: Final = msgspec.json.Decoder(Envelope).decode
_whole_decode: Final = msgspec.json.Decoder(_Whole).decode


def decode(body: bytes | bytearray | memoryview, *, whole: bool = False) -> Envelope:
    """Decode a body, or raise `Rejected` with the reason and the place.

    Pass `whole=True` to decode and check `data` in the same pass.
    """
    if type(body) is not bytes:
        body = bytes(body)  # a bytearray or memoryview could change under us; a str is a TypeError
    try:
        envelope: Envelope = _whole_decode(body) if whole else _quick_decode(body)
    except QUICK_FAULTS:
        envelope = _DOUBTFUL
    job = envelope.job
    if (
        type(job) is not str
        or (job < _FIRST_VISIBLE and not job.strip(ASCII_SPACE))
        or envelope.alias is not UNSET
        or (not body.isascii() and not is_utf8(body))
        or (len(body) > SHALLOW and exceeds_a_limit(body))
    ):
        exact = _decode_exact(body)
        if whole:
            exact.document  # noqa: B018 (what is wrong inside `data` is raised here)
        return exact
    force_setattr(envelope, "kept_body", body)
    if whole and may_overflow(body):
        scan(body)
    return envelope


def _decode_exact(body: bytes) -> Envelope:
    """Decode with `judge`, the exact reader."""
    judged = judge(body)
    meta, block = judged.part("meta"), judged.part("dead_letter")
    envelope = Envelope(
        job=judged.job,
        trace_id=judged.values.get("trace_id"),
        payload=Skipped() if "data" in judged.objects else None,
        meta=Meta(**meta) if meta is not None else None,
        attempts=judged.values.get("attempts"),
        dead_letter=DeadLetter(**block) if block is not None else None,
    )
    force_setattr(envelope, "kept_body", body)
    force_setattr(envelope, "kept_warnings", judged.notices)
    return envelope
