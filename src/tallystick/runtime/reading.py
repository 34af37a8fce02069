"""Classify a delivery before any handler runs: gated, poison, outdated, or a message.

    gated     the version property says that the body must not be decoded
    poison    the body is not a message, or its layout has no usable count
    outdated  the body has an unknown version; handled like a last failure
    message   any other body

The attempts of a poison body come from the broker, else from a bare `{"attempts": N}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from tallystick.core import binding as bindings
from tallystick.core.binding import Binding, Gate
from tallystick.core.envelope import SCHEMA_VERSION, Envelope, decode
from tallystick.core.errors import Rejected
from tallystick.core.slot import Field
from tallystick.core.transport import Delivery

__all__ = ["Reading", "reader"]

_NOTHING: Final[Mapping[str, Any]] = {}


class Reading(msgspec.Struct, frozen=True, gc=False):
    """The kind of a delivery, and the values that its settlement needs.

    `failed` is the number of earlier failures in this worker. `label` is the fault for log lines,
    without member names, which may be personal.
    """

    kind: str
    delivery: Delivery
    binding: Binding
    urn: str = ""
    envelope: Envelope | None = None
    fault: str = ""
    label: str = ""
    failed: int = 0

    @property
    def attempts(self) -> int:
        """The number of earlier attempts; reconciled only when it is needed."""
        frame, envelope = self.delivery.frame, self.envelope
        counted = envelope.attempts if envelope is not None else _bare_count(frame.body)
        return bindings.reconcile(self.binding, counted, frame.sections) + self.failed


class _Counted(msgspec.Struct):
    attempts: int = 0


_read_count: Final = msgspec.json.Decoder(_Counted).decode


def reader(binding: Binding) -> Callable[[Delivery, int], Reading]:
    """Return a function that classifies the deliveries of one broker.

    Its arguments are a delivery and the number of its earlier failures here. The table of the
    binding is read once. A fast check passes nearly every message: the version property is the
    current version, and the routing URN is that of the message. Otherwise the rules of the table
    decide.
    """
    version_in, version_at = _place(binding.gate)
    route_in, route_at = _place(binding.route)
    gated, routed, current = binding.gate is not None, binding.route is not None, binding.current

    def read(delivery: Delivery, failed: int) -> Reading:
        frame = delivery.frame
        sections = frame.sections
        if (
            gated
            and sections.get(version_in, _NOTHING).get(version_at) not in current
            and not bindings.gate_frame(binding, sections)
        ):
            fault = "unsupported schema version"
            return Reading("gated", delivery, binding, fault=fault, failed=failed)
        if delivery.fault:
            return Reading("poison", delivery, binding, fault=delivery.fault, failed=failed)
        try:
            envelope = decode(frame.body, whole=True)
        except Rejected as rejection:
            label = f"{rejection.message} (byte {rejection.offset})"
            fault = str(rejection)
            return Reading("poison", delivery, binding, fault=fault, label=label, failed=failed)
        urn = envelope.job
        if routed and sections.get(route_in, _NOTHING).get(route_at) != urn:
            urn = bindings.route(binding, sections, urn)
        meta = envelope.meta
        version = meta.schema_version if meta is not None else None
        if version is None or version == SCHEMA_VERSION:
            return Reading("message", delivery, binding, urn, envelope, failed=failed)
        fault = f"schema version {version}"
        return Reading("outdated", delivery, binding, urn, envelope, fault, failed=failed)

    return read


def _place(field: Gate | Field | None) -> tuple[str, str]:
    return (field.section, field.key) if field is not None else ("", "")


def _bare_count(body: bytes) -> int:
    """Read `{"attempts": N}` from a body that is not a message; 0 without it.

    A number that is not a valid count could not be written to a dead letter, and the message would
    be delivered for ever.
    """
    try:
        return min(max(_read_count(body).attempts, 0), bindings.MAX_COUNT)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return 0
