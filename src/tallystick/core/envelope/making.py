"""Make a new message, or a changed copy. A message that could not be read again is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import UNSET
from msgspec.structs import force_setattr

from tallystick.core.canonical import (
    MESSAGE_ORDER,
    META_ORDER,
    canonical,
    canonical_message,
    pointer_to,
)
from tallystick.core.envelope.message import (
    INT64,
    SCHEMA_VERSION,
    Envelope,
    Meta,
    Skipped,
    document_of,
    members_of,
)
from tallystick.core.envelope.reading import decode
from tallystick.core.errors import Refused, Rejected
from tallystick.core.exact import ASCII_SPACE, FORBIDDEN, FORBIDDEN_META

__all__ = ["make", "replace"]


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

    The URN and the `trace_id` lose the ASCII white space around them; a blank `trace_id` becomes
    a new id. `meta` and `extensions` add members; they cannot replace members of the contract.
    """
    job = urn.strip(ASCII_SPACE)
    if not job:
        raise Refused("the URN is blank", code="blank_urn", pointer="/job")
    own = Meta(new_id(), queue, lang, SCHEMA_VERSION, now_ms)
    trace_id = trace_id.strip(ASCII_SPACE) or new_id()
    for name, value in (("id", own.id), ("queue", queue), ("lang", lang)):
        if type(value) is not str or not value.strip(ASCII_SPACE):
            raise Refused(
                f"`meta.{name}` must be a string that is not blank",
                code="wrong_type",
                pointer=f"/meta/{name}",
            )
    if type(now_ms) is not int or not 0 <= now_ms < INT64:
        raise Refused(
            "`meta.created_at` must be milliseconds, from 0 to 2^63 - 1",
            code="wrong_type",
            pointer="/meta/created_at",
        )
    payload = canonical(data if type(data) is dict else dict(data), ("data",))
    envelope = Envelope(job=job, trace_id=trace_id, payload=Skipped(), meta=own, attempts=0)
    force_setattr(envelope, "kept_payload", payload)
    if not meta and not extensions:
        return envelope
    _refuse_forbidden(meta or {}, META_ORDER, ("meta",))
    _refuse_forbidden(extensions or {}, MESSAGE_ORDER, ())
    document = members_of(envelope, payload)
    document["meta"].update(meta or {})
    return _read_back({**document, **(extensions or {})})


def replace(envelope: Envelope, **members: Any) -> Envelope:
    """Give a copy with some top-level members changed; a member given as UNSET is removed.

    Raise `Refused` for a copy that could not be read again: a wrong type, no identity, a
    forbidden member, `urn`.
    """
    document = {**document_of(envelope), **members}
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
                f"the member `{name}` is reserved or forbidden here",
                code="forbidden_member",
                pointer=pointer_to((*trail, name)),
                hint="put your own members under `meta.ext.<vendor>`",
            )
