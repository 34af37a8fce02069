"""Accept a message as a consumer does, or name the check of the contract that fails."""

from __future__ import annotations

from dataclasses import dataclass

from tallystick.core.envelope.message import SCHEMA_VERSION, Envelope
from tallystick.core.envelope.reading import decode
from tallystick.core.errors import Rejected
from tallystick.core.exact import ASCII_SPACE
from tallystick.core.scan import scan

__all__ = ["Classification", "accepts", "classify", "reason_not_accepted"]


@dataclass(frozen=True, slots=True)
class Classification:
    """The verdict of a consumer on a body (`ok`, `no_identity` or `poison`) and its reason."""

    verdict: str
    reason: str = ""
    rejection: Rejected | None = None


def accepts(envelope: Envelope) -> bool:
    """Tell whether a consumer may handle a message: the five checks of the contract."""
    meta = envelope.meta
    trace_id = envelope.trace_id
    return (
        meta is not None
        and meta.schema_version == SCHEMA_VERSION
        and envelope.payload is not None
        and envelope.attempts is not None
        and trace_id is not None
        and trace_id.strip(ASCII_SPACE) != ""
    )


def reason_not_accepted(envelope: Envelope) -> str | None:
    """Name the first failed check of `accepts`, with its pointer; None if all pass."""
    meta, trace_id = envelope.meta, envelope.trace_id
    version = meta.schema_version if meta else None
    checks = (
        (meta is not None, "/meta: must be an object"),
        (
            version == SCHEMA_VERSION,
            f"/meta/schema_version: must be {SCHEMA_VERSION}, found {version}",
        ),
        (envelope.payload is not None, "/data: must be an object"),
        (envelope.attempts is not None, "/attempts: must be an integer"),
        (trace_id is not None and trace_id.strip(ASCII_SPACE) != "", "/trace_id: missing or blank"),
    )
    return next((reason for passed, reason in checks if not passed), None)


def classify(body: bytes) -> Classification:
    """Classify a body for a consumer; the whole body is read, also every number inside `data`."""
    try:
        decode(body).document  # noqa: B018 (the rule is checked by building it)
    except Rejected as rejection:
        fault = rejection if rejection.code != "no_identity" else _fault_in_data(body)
        if fault is None:
            return Classification("no_identity", str(rejection), rejection)
        return Classification("poison", str(fault), fault)
    return Classification("ok")


def _fault_in_data(body: bytes) -> Rejected | None:
    """Find a number out of range in a body without identity: that makes it poison as well."""
    try:
        scan(body)
    except Rejected as fault:
        return fault if fault.code == "number_out_of_range" else None
    return None
