"""Change one member of a body and keep every other byte (law 1).

A retry changes `attempts`; a dead letter adds its block; a redrive removes the block; a message
that is sent again as a new one gets a new id.
The body is not parsed and rewritten: the new text replaces the old text in place. A poison
body is kept unchanged inside a record that can always be read (ADR-0035).
"""

from __future__ import annotations

import base64
import re
from typing import Any, Final

import msgspec

from tallystick.core.canonical import canonical_message, string_text
from tallystick.core.envelope import DeadLetter, classify
from tallystick.core.errors import Refused, Rejected
from tallystick.core.scan import scan

__all__ = ["dead_letter", "poison_record", "redrive", "renew", "retry"]

_SPACE: Final = b" \t\n\r"
_LAST_MEMBER: Final = re.compile(
    rb'[,{][ \t\n\r]*+"attempts"[ \t\n\r]*+:[ \t\n\r]*+(-?[0-9]++)[ \t\n\r]*+}[ \t\n\r]*+\Z'
)
_TAIL: Final = 80


def retry(body: bytes, attempts: int) -> bytes:
    """Give the same bytes with `attempts` changed; a member that is absent is added at the end."""
    _check(body)
    attempts = _count(attempts, "/attempts")
    tail = max(0, len(body) - _TAIL)
    last = _LAST_MEMBER.search(body, tail)
    if last is not None:
        return b"%s%d%s" % (body[: last.start(1)], attempts, body[last.end(1) :])
    return _with_attempts(body, attempts)


def dead_letter(body: bytes, record: DeadLetter) -> bytes:
    """Give the message with a `dead_letter` block at the end and the same count in `attempts`."""
    _check(body)
    attempts = _count(record.attempts, "/dead_letter/attempts")
    return _append_block(_with_attempts(_without_block(body), attempts), record)


def redrive(body: bytes) -> bytes:
    """Give the message without its `dead_letter` block and with `attempts` at 0."""
    _check(body)
    return _with_attempts(_without_block(body), 0)


def renew(body: bytes, message_id: str) -> bytes:
    """Give the same bytes with another `meta.id`; a message without one stays as it is."""
    _check(body)
    places = [member for member in scan(body, finite=False) if member.path == ("meta", "id")]
    if not places:
        return body
    last = places[-1]
    return body[: last.value] + string_text(message_id).encode() + body[last.end :]


def poison_record(body: bytes, record: DeadLetter) -> bytes:
    """Give the dead-letter record of a body that is not a message: splice, text or base64."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        encoded = base64.b64encode(body).decode()
        return _wrapper({"raw": encoded, "raw_encoding": "base64"}, record)
    if _can_be_spliced(body):
        return _append_block(body, record)
    return _wrapper({"raw": text}, record)


def _check(body: bytes) -> None:
    """Raise `Rejected` for a body that is not a message: it needs a poison record, not a retry."""
    rejection = classify(body).rejection
    if rejection is not None:
        raise rejection


def _count(count: Any, pointer: str) -> int:
    """Check a count; raise `Refused` for one that could not be read again."""
    if type(count) is not int or not 0 <= count < 2**63:
        raise Refused(
            f"a count must be an integer from 0 to 2^63 - 1, found {count!r}",
            code="wrong_type",
            pointer=pointer,
        )
    return count


def _can_be_spliced(body: bytes) -> bool:
    """Tell whether the body is one strict object without a `dead_letter` of its own."""
    try:
        members = scan(body, finite=False)
    except Rejected:
        return False
    return ("dead_letter",) not in {member.path for member in members}


def _with_attempts(body: bytes, attempts: int) -> bytes:
    places = [member for member in scan(body, finite=False) if member.path == ("attempts",)]
    if places:
        last = places[-1]
        return b"%s%d%s" % (body[: last.value], attempts, body[last.end :])
    return _append(body, b'"attempts":%d' % attempts)


def _without_block(body: bytes) -> bytes:
    """Take out every top-level `dead_letter` with one comma: before it, or after a first one."""
    members = [member for member in scan(body, finite=False) if len(member.path) == 1]
    kept, position, something_before = [], 0, False
    for index, member in enumerate(members):
        if member.path != ("dead_letter",):
            something_before = True
            continue
        start, end = member.start, member.end
        if something_before:
            start = body.index(b",", members[index - 1].end)
        elif index + 1 < len(members):
            end = members[index + 1].start
        kept.append(body[position:start])
        position = end
    return b"".join(kept) + body[position:]


def _append_block(body: bytes, record: DeadLetter) -> bytes:
    return _append(body.strip(_SPACE), b'"dead_letter":' + _block(record))


def _append(body: bytes, member: bytes) -> bytes:
    """Add a member right before the closing brace."""
    brace = body.rindex(b"}")
    comma = b"" if body[:brace].strip(_SPACE) == b"{" else b","
    return body[:brace] + comma + member + body[brace:]


def _block(record: DeadLetter) -> bytes:
    try:
        members = msgspec.to_builtins(msgspec.convert(msgspec.to_builtins(record), DeadLetter))
    except msgspec.ValidationError as fault:
        raise Refused(str(fault), code="wrong_type", pointer="/dead_letter") from None
    document = canonical_message({"dead_letter": members})
    return document[len(b'{"dead_letter":') : -1]


def _wrapper(raw: dict[str, Any], record: DeadLetter) -> bytes:
    members = ",".join(f'"{name}":{string_text(text)}' for name, text in raw.items())
    return f'{{{members},"dead_letter":'.encode() + _block(record) + b"}"
