"""What a delivery is, before any handler sees it: turned away, poison, or a message.

    gated     the version property says that the body may not be decoded
    poison    the body is no message, or one that the broker's own layout cannot count
    outdated  the body itself says a version that this one does not know; handled as a last failure
    message   everything else

The count of a poison body comes from the broker, else from a bare `{"attempts": N}`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tallystick.core import binding as bindings
from tallystick.core.binding import Binding
from tallystick.core.envelope import SCHEMA_VERSION, Envelope, decode
from tallystick.core.errors import Rejected
from tallystick.core.transport import Delivery

__all__ = ["Reading", "read"]


class Reading(msgspec.Struct, frozen=True, gc=False):
    """One delivery, read: its kind, and what a settlement needs to know.

    `label` is the fault without the names of members, which may be personal: for log lines.
    """

    kind: str
    delivery: Delivery
    attempts: int = 0
    urn: str = ""
    envelope: Envelope | None = None
    fault: str = ""
    label: str = ""


class _Counted(msgspec.Struct):
    attempts: int = 0


_read_count: Final = msgspec.json.Decoder(_Counted).decode


def read(binding: Binding, delivery: Delivery) -> Reading:
    """Sort a delivery and reconcile its count."""
    frame = delivery.frame
    sections = frame.sections
    if not bindings.gate_frame(binding, sections):
        fault = "unsupported schema version"
        return Reading("gated", delivery, _attempts(binding, delivery), fault=fault)
    if delivery.fault:
        return Reading("poison", delivery, _attempts(binding, delivery), fault=delivery.fault)
    try:
        envelope = decode(frame.body, whole=True)
    except Rejected as rejection:
        attempts = _attempts(binding, delivery)
        label = f"{rejection.message} (byte {rejection.offset})"
        return Reading("poison", delivery, attempts, fault=str(rejection), label=label)
    attempts = bindings.reconcile(binding, envelope.attempts, sections)
    urn = bindings.route(binding, sections, envelope.job)
    meta = envelope.meta
    version = meta.schema_version if meta is not None else None
    if version is None or version == SCHEMA_VERSION:
        return Reading("message", delivery, attempts, urn, envelope)
    return Reading("outdated", delivery, attempts, urn, envelope, f"schema version {version}")


def _attempts(binding: Binding, delivery: Delivery) -> int:
    try:
        counted = _read_count(delivery.frame.body).attempts
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        counted = 0
    return bindings.reconcile(binding, max(counted, 0), delivery.frame.sections)
