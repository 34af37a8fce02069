"""The canonical message, and the bytes it came from.

A body is decoded by the rules of the message contract: names are case-sensitive, the last of
duplicate names wins, unknown members survive, `urn` is an alias of `job`, forbidden members are
dropped with a warning, known members have one type at every occurrence, and trimming knows ASCII
white space only. `decode` gives an `Envelope` or raises `Rejected`; it never guesses.

The quick way is a typed C decoder that checks grammar and types and skips what nobody asked for;
`document` and `data` are built when they are first read. Whatever the quick way refuses or cannot
express is judged by `scan`, which is the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import force_setattr

from tallystick.core.canonical import (
    MESSAGE_ORDER,
    META_ORDER,
    assemble,
    canonical,
    canonical_message,
    pointer_to,
)
from tallystick.core.errors import Refused, Rejected
from tallystick.core.exact import ASCII_SPACE, FORBIDDEN, FORBIDDEN_META, Notice, judge
from tallystick.core.limits import SHALLOW, exceeds_a_limit, is_utf8, may_overflow
from tallystick.core.scan import load, scan

__all__ = [
    "ASCII_SPACE",
    "FORBIDDEN",
    "FORBIDDEN_META",
    "SCHEMA_VERSION",
    "Classification",
    "DeadLetter",
    "Envelope",
    "Meta",
    "Notice",
    "accepts",
    "classify",
    "decode",
    "encode",
    "make",
    "reason_not_accepted",
    "replace",
]

SCHEMA_VERSION: Final = 1

_INT64: Final = 2**63
_Int64 = Annotated[int, msgspec.Meta(ge=-_INT64, le=_INT64 - 1)]
_Never = Annotated[str, msgspec.Meta(min_length=1, max_length=0)]  # no value fits: go the exact way


class _Skipped(Struct, frozen=True, gc=False):
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
    """Why a message was given up (ADR-0009); members in the order in which they are written."""

    reason: str | None = None
    error: str | None = None
    exception: str | None = None
    failed_at: _Int64 | None = None
    original_queue: str | None = None
    attempts: _Int64 | None = None
    lang: str | None = None


@dataclass(frozen=True, slots=True)
class Classification:
    """What a consumer does with a body: `ok`, `no_identity` or `poison`, and why."""

    verdict: str
    reason: str = ""
    rejection: Rejected | None = None


class Envelope(Struct, frozen=True, gc=False, eq=False):
    """One message. Members that are absent or null read as None; `document` tells them apart.

    `job` is the identity after the alias rule. The `kept_` fields are ours alone: no JSON member
    can reach them, because no value fits their type. A message that was made keeps the canonical
    bytes of its payload, so that nothing done to the caller's values afterwards can alter it.
    """

    job: Any = UNSET
    alias: Any = field(default=UNSET, name="urn")
    trace_id: str | None = None
    payload: _Skipped | None = field(default=None, name="data")
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
        """Give what makes it what it is: the bytes it came from, or those it is written as."""
        return self.body or encode(self)

    @property
    def urn(self) -> str:
        """The identity: what kind of message this is."""
        return str(self.job)

    @property
    def body(self) -> bytes:
        """The bytes it was decoded from (canonical ones after `replace`); empty when made."""
        return cast("bytes", self.kept_body) if self.kept_body is not UNSET else b""

    @property
    def warnings(self) -> tuple[Notice, ...]:
        """What was tolerated on reading."""
        kept = self.kept_warnings
        return cast("tuple[Notice, ...]", kept) if kept is not UNSET else ()

    @property
    def document(self) -> dict[str, Any]:
        """Every member as a value, `urn` folded into `job`, forbidden members left out.

        It is yours to look at; changing it changes nothing that is written. Raises `Rejected`
        when a number inside `data` does not fit a double.
        """
        if self.kept_document is UNSET:
            force_setattr(self, "kept_document", _document(self))
        return cast("dict[str, Any]", self.kept_document)

    @property
    def data(self) -> dict[str, Any] | None:
        """The payload, built on first use; None when absent or null."""
        payload: Any = self.payload
        if type(payload) is dict:  # it was decoded whole
            return payload
        data: dict[str, Any] | None = self.document.get("data")
        return data


class _Whole(Envelope, frozen=True, gc=False, eq=False):
    """The same message with its payload read in the same pass."""

    payload: dict[str, Any] | None = field(default=None, name="data")  # type: ignore[assignment]


_DOUBTFUL: Final = Envelope()
_quick_decode: Final = msgspec.json.Decoder(Envelope).decode
_whole_decode: Final = msgspec.json.Decoder(_Whole).decode
_quick_load: Final = msgspec.json.Decoder().decode
_QUICK_FAULTS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def decode(body: bytes | bytearray | memoryview, *, whole: bool = False) -> Envelope:
    """Decode a body, or raise `Rejected` with the reason and the place.

    `whole` is for who will read `data`: it is built in the same pass, and judged now.
    """
    if type(body) is not bytes:
        body = bytes(body)  # a bytearray or memoryview could change under us; a str is a TypeError
    try:
        envelope: Envelope = _whole_decode(body) if whole else _quick_decode(body)
    except _QUICK_FAULTS:
        envelope = _DOUBTFUL
    job = envelope.job
    if (
        type(job) is not str
        or not job.strip(ASCII_SPACE)
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


def accepts(envelope: Envelope) -> bool:
    """Tell whether a consumer may handle it: the five checks of the contract."""
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
    """Say which check of `accepts` fails, with its pointer; None when it is accepted."""
    meta, trace_id = envelope.meta, envelope.trace_id
    version = meta.schema_version if meta else None
    checks = (
        (meta is not None, "/meta: no object"),
        (version == SCHEMA_VERSION, f"/meta/schema_version: {version}, not {SCHEMA_VERSION}"),
        (envelope.payload is not None, "/data: no object"),
        (envelope.attempts is not None, "/attempts: no integer"),
        (trace_id is not None and trace_id.strip(ASCII_SPACE) != "", "/trace_id: blank or absent"),
    )
    return next((reason for passed, reason in checks if not passed), None)


def classify(body: bytes) -> Classification:
    """Sort a body for a consumer, reading all of it: every number inside `data` too."""
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
    return canonical_message(_document(envelope))


def make(
    urn: str,
    data: Mapping[str, Any],
    *,
    now_ms: int,
    new_id: Callable[[], str],
    trace_id: str = "",
    queue: str = "default",
    lang: str = "python",
    meta: Mapping[str, Any] | None = None,
    extensions: Mapping[str, Any] | None = None,
) -> Envelope:
    """Make a new message; the clock and the ids come from the caller.

    The URN and the `trace_id` are trimmed of ASCII white space; a blank `trace_id` is replaced by
    a new id. `meta` and `extensions` add members beside the contract's own, never in their place.
    """
    job = urn.strip(ASCII_SPACE)
    if not job:
        raise Refused("the URN is blank", code="blank_urn", pointer="/job")
    own = Meta(new_id(), queue, lang, SCHEMA_VERSION, now_ms)
    trace_id = trace_id.strip(ASCII_SPACE) or new_id()
    for name, value in (("id", own.id), ("queue", queue), ("lang", lang)):
        if type(value) is not str or not value.strip(ASCII_SPACE):
            raise Refused("a text is due", code="wrong_type", pointer=f"/meta/{name}")
    if type(now_ms) is not int or not 0 <= now_ms < _INT64:
        raise Refused("milliseconds are due", code="wrong_type", pointer="/meta/created_at")
    payload = canonical(data if type(data) is dict else dict(data), ("data",))
    envelope = Envelope(job=job, trace_id=trace_id, payload=_Skipped(), meta=own, attempts=0)
    force_setattr(envelope, "kept_payload", payload)
    if not meta and not extensions:
        return envelope
    _refuse_forbidden(meta or {}, META_ORDER, ("meta",))
    _refuse_forbidden(extensions or {}, MESSAGE_ORDER, ())
    document = _members(envelope, payload)
    document["meta"].update(meta or {})
    return _read_back({**document, **(extensions or {})})


def replace(envelope: Envelope, **members: Any) -> Envelope:
    """Give a copy with some top-level members changed; a member given as UNSET is removed.

    What could not be read again is refused: a wrong type, no identity, a forbidden member, `urn`.
    """
    document = {**_document(envelope), **members}
    return _read_back({name: value for name, value in document.items() if value is not UNSET})


def _read_back(document: dict[str, Any]) -> Envelope:
    """Make the message that a document says, as a reader would see it."""
    _refuse_forbidden(document, (*FORBIDDEN, "urn"), ())
    meta = document.get("meta")
    if isinstance(meta, Mapping):
        _refuse_forbidden(meta, FORBIDDEN_META, ("meta",))
    try:
        return decode(canonical_message(document))
    except Rejected as fault:
        raise Refused(fault.message, code=fault.code, pointer=fault.pointer) from None


def _refuse_forbidden(
    members: Mapping[str, Any], names: tuple[str, ...], trail: tuple[str, ...]
) -> None:
    for name in names:
        if name in members:
            raise Refused(
                f"the member {name!r} may not be written here",
                code="forbidden_member",
                pointer=pointer_to((*trail, name)),
                hint="Put your own members under meta.ext.<vendor>.",
            )


def _members(envelope: Envelope, payload: bytes) -> dict[str, Any]:
    """Give the members of a message that was made, with a payload of its own."""
    return {
        "job": envelope.job,
        "trace_id": envelope.trace_id,
        "data": load(payload),
        "meta": {name: getattr(envelope.meta, name) for name in META_ORDER},
        "attempts": envelope.attempts,
    }


def _document(envelope: Envelope) -> dict[str, Any]:
    if envelope.kept_payload is not UNSET:
        return _members(envelope, cast("bytes", envelope.kept_payload))
    body = envelope.body
    if may_overflow(body):
        scan(body)  # an integer that no double holds is a fault inside `data`
    try:
        document: dict[str, Any] = _quick_load(body)
    except _QUICK_FAULTS:
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


def _decode_exact(body: bytes) -> Envelope:
    """Decode by the rule itself, as `judge` reads it."""
    judged = judge(body)
    meta, block = judged.part("meta"), judged.part("dead_letter")
    envelope = Envelope(
        job=judged.job,
        trace_id=judged.values.get("trace_id"),
        payload=_Skipped() if "data" in judged.objects else None,
        meta=Meta(**meta) if meta is not None else None,
        attempts=judged.values.get("attempts"),
        dead_letter=DeadLetter(**block) if block is not None else None,
    )
    force_setattr(envelope, "kept_body", body)
    force_setattr(envelope, "kept_warnings", judged.notices)
    return envelope
