"""One message as a value: its members, its document, and the canonical bytes it is written as.

`document` and `data` are built on first use. A body without identity, or with a wrong type, never
becomes an `Envelope`; a number inside `data` that does not fit a double is found on first use.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import force_setattr

from tallystick.core.canonical import META_ORDER, assemble, canonical_message
from tallystick.core.exact import FORBIDDEN, FORBIDDEN_META, Notice
from tallystick.core.limits import may_overflow
from tallystick.core.scan import load, scan

__all__ = [
    "INT64",
    "QUICK_FAULTS",
    "SCHEMA_VERSION",
    "DeadLetter",
    "Envelope",
    "Meta",
    "Skipped",
    "document_of",
    "encode",
    "members_of",
]


SCHEMA_VERSION: Final = 1
QUICK_FAULTS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
INT64: Final = 2**63

_Int64 = Annotated[int, msgspec.Meta(ge=-INT64, le=INT64 - 1)]
_Never = Annotated[str, msgspec.Meta(min_length=1, max_length=0)]  # no value fits: go the exact way
_quick_load: Final = msgspec.json.Decoder().decode


class Skipped(Struct, frozen=True, gc=False):
    """An object whose members are checked for grammar and otherwise skipped."""


class Meta(Struct, frozen=True, gc=False):
    """The members of `meta` that the contract names; None when absent or null."""

    id: str | None = None
    queue: str | None = None
    lang: str | None = None
    schema_version: _Int64 | None = None
    created_at: _Int64 | None = None
    max_retries: _Never | UnsetType = UNSET
    attempts: _Never | UnsetType = UNSET
    source: _Never | UnsetType = UNSET
    ts: _Never | UnsetType = UNSET


class DeadLetter(Struct, frozen=True, gc=False):
    """Why a message was dead-lettered (ADR-0009); members in the order of writing."""

    reason: str | None = None
    error: str | None = None
    exception: str | None = None
    failed_at: _Int64 | None = None
    original_queue: str | None = None
    attempts: _Int64 | None = None
    lang: str | None = None


class Envelope(Struct, frozen=True, gc=False, eq=False):
    """One message. Members that are absent or null read as None; `document` tells them apart.

    `job` is the identity after the alias rule. The `kept_` fields are ours alone: no JSON member
    can set them, because no value fits their type. A new message keeps the canonical bytes of its
    payload, so that later changes to the caller's values cannot alter it.
    """

    job: Any = UNSET
    alias: Any = field(default=UNSET, name="urn")
    trace_id: str | None = None
    payload: Skipped | None = field(default=None, name="data")
    meta: Meta | None = None
    attempts: _Int64 | None = None
    dead_letter: DeadLetter | None = None
    timestamp: _Never | UnsetType = UNSET
    kept_body: _Never | UnsetType = field(default=UNSET, name="tallystick:body")
    kept_warnings: _Never | UnsetType = field(default=UNSET, name="tallystick:warnings")
    kept_document: _Never | UnsetType = field(default=UNSET, name="tallystick:document")
    kept_payload: _Never | UnsetType = field(default=UNSET, name="tallystick:payload")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Envelope) and self._bytes() == other._bytes()

    def __ne__(self, other: object) -> bool:  # a Struct without eq would compare identities
        return not self == other

    def __hash__(self) -> int:
        return hash(self._bytes())

    def __repr__(self) -> str:  # the payload may hold personal data
        return f"Envelope({self.urn!r}, id={self.meta.id if self.meta else None!r})"

    def _bytes(self) -> bytes:
        """Give the bytes that define equality: the decoded body, or the canonical bytes."""
        return self.body or encode(self)

    @property
    def urn(self) -> str:
        """The identity: the URN that names the type of the message."""
        return str(self.job)

    @property
    def body(self) -> bytes:
        """The decoded bytes (canonical bytes after `replace`); empty for a new message."""
        return cast("bytes", self.kept_body) if self.kept_body is not UNSET else b""

    @property
    def warnings(self) -> tuple[Notice, ...]:
        """Deviations that the reader tolerated: dropped or ignored members."""
        kept = self.kept_warnings
        return cast("tuple[Notice, ...]", kept) if kept is not UNSET else ()

    @property
    def document(self) -> dict[str, Any]:
        """Every member as a value, `urn` folded into `job`, forbidden members left out.

        Changes to it do not change the written message. Raises `Rejected`
        when a number inside `data` does not fit a double.
        """
        if self.kept_document is UNSET:
            force_setattr(self, "kept_document", document_of(self))
        return cast("dict[str, Any]", self.kept_document)

    @property
    def data(self) -> dict[str, Any] | None:
        """The payload, built on first use; None when absent or null."""
        payload: Any = self.payload
        if type(payload) is dict:  # it was decoded whole
            return payload
        data: dict[str, Any] | None = self.document.get("data")
        return data


def encode(envelope: Envelope) -> bytes:
    """Write the canonical bytes."""
    payload, meta = envelope.kept_payload, envelope.meta
    if payload is not UNSET and meta is not None:
        return assemble(
            payload,  # type: ignore[arg-type]
            envelope.job,
            envelope.trace_id,  # type: ignore[arg-type]
            envelope.attempts,  # type: ignore[arg-type]
            meta.id,  # type: ignore[arg-type]
            meta.queue,  # type: ignore[arg-type]
            meta.lang,  # type: ignore[arg-type]
            meta.schema_version,  # type: ignore[arg-type]
            meta.created_at,  # type: ignore[arg-type]
        )
    return canonical_message(document_of(envelope))


def members_of(envelope: Envelope, payload: bytes) -> dict[str, Any]:
    """Give the members of a new message, with a separate copy of its payload."""
    return {
        "job": envelope.job,
        "trace_id": envelope.trace_id,
        "data": load(payload),
        "meta": {name: getattr(envelope.meta, name) for name in META_ORDER},
        "attempts": envelope.attempts,
    }


def document_of(envelope: Envelope) -> dict[str, Any]:
    """Build the document, or raise `Rejected` when a number in it does not fit a double."""
    if envelope.kept_payload is not UNSET:
        return members_of(envelope, cast("bytes", envelope.kept_payload))
    body = envelope.body
    if may_overflow(body):
        scan(body)  # an integer that no double holds is a fault inside `data`
    try:
        document: dict[str, Any] = _quick_load(body)
    except QUICK_FAULTS:
        scan(body)
        document = load(body)
    if envelope.kept_warnings is UNSET:  # the quick decoder met no alias and nothing forbidden
        return document
    document.pop("urn", None)
    document["job"] = envelope.job
    for name in FORBIDDEN:
        document.pop(name, None)
    meta = document.get("meta") or {}
    for name in FORBIDDEN_META:
        meta.pop(name, None)
    return document
