"""Judge many records: the same rows as `judge_record`, faster.

A record needs no further check if the typed decoder of `quick` accepts it and writes the same bytes
back, its native fields agree, and nothing in it looks like personal data. Any other record goes to
`judge_record`. `tests/pipeline/fuzz.py` compares the two.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from functools import lru_cache
from hashlib import sha256
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET

from tallystick.brokers import BROKERS
from tallystick.core.binding import gate_frame, reconcile
from tallystick.core.capture import read_sections
from tallystick.core.envelope import accepts, decode
from tallystick.core.errors import Rejected
from tallystick.core.scan import MAX_BYTES
from tallystick.pipeline.capture import Record
from tallystick.pipeline.drifts import native_drifts
from tallystick.pipeline.exposures import Exposure, looks_personal
from tallystick.pipeline.judge import UUID, Judged, Rules, judge_record
from tallystick.pipeline.quick import Quick, Shape, odd_float
from tallystick.schemas.validate import judge_value

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["judge_body", "judge_records"]

_NO_SECTIONS: Final[dict[str, dict[str, Any]]] = {}
_DIGITS: Final = bytes.maketrans(b"123456789", b"0" * 9)
_LETTERS: Final = bytes.maketrans(
    f"{ascii_letters}{digits}".encode() + bytes(range(128, 256)), b"A" * 52 + b"0" * 10 + b"A" * 128
)
"""A digit is `0`, a letter `A`, and so is each byte of a letter beyond ASCII: `ß` is `SS`."""
_LONG_NUMBER: Final = b"0" * 11
_BANK_CODE: Final = re.compile(rb"AA00[A0]{11}").search
_SCALARS: Final = re.compile(
    rb'"((?:[^"\\]|\\.)*+)"|(?<=[:,\[])(-?[0-9]{11,19})(?=[,}\]])'
).finditer
_QUICK_FAULTS: Final = (msgspec.MsgspecError, UnicodeError, OverflowError, RecursionError)
_HIDDEN: Final = "***"
_MILLISECONDS: Final = 13
_SHORT: Final = 10**10
_TIMES: Final = 10**12
_BLANK: Final = "!"
"""A text that sorts behind it begins with a sign that is no blank."""
_MOST_NATIVES: Final = 10_000


def judge_body(rules: Rules, body: bytes) -> str:
    """Give only the verdict on a body, exactly: `valid`, `unknown` or `refused`."""
    read = rules.quick.decode
    if read is not None and len(body) <= MAX_BYTES:
        try:
            if read(body).trace_id > _BLANK:
                return "valid"
        except _QUICK_FAULTS:
            pass  # doubtful: the rule decides
    try:
        envelope = decode(body)
        document = envelope.document
    except Rejected:
        return "refused"
    if not accepts(envelope):
        return "refused"
    try:
        outcome = judge_value(rules.judge, document, "").outcome
    except (ValueError, TypeError, RecursionError):
        return "refused"
    return {"ok": "valid", "unknown": "unknown"}.get(outcome, "refused")


def judge_records(rules: Rules, records: Iterable[Record]) -> list[Judged]:
    """Judge many records: the quick way where it is sure, else by `judge_record`."""
    if rules.quick.decode is None:
        return [judge_record(rules, record) for record in records]
    return [_judge_quickly(rules, record) or judge_record(rules, record) for record in records]


def _judge_quickly(rules: Rules, record: Record) -> Judged | None:
    """Judge a record, or give None when anything at all is doubtful."""
    quick, body = rules.quick, record.body
    if record.fault is not None or len(body) > MAX_BYTES:
        return None
    try:
        message = quick.decode(body)  # type: ignore[misc]
        if quick.encode(message) != body:
            return None
    except _QUICK_FAULTS:
        return None
    shape = quick.shapes[type(message)]
    trace_id, meta, attempts = message.trace_id, message.meta, message.attempts
    if attempts < 0 or not shape.maskable:
        return None
    if not (_is_nobodys(attempts) and _is_nobodys(meta.created_at)):
        return None
    start = body.find(b',"data":') + 8
    data = body[start : body.rfind(b',"meta":{')]
    if shape.has_float and odd_float(data):
        return None
    identity = meta.id
    if not UUID(identity) or not UUID(trace_id) or not _plain(meta.queue, meta.lang, shape.urn):
        return None
    if record.sections or record.broker:
        counted = _native_attempts(rules, record, message, shape)
        if counted is None:
            return None
        attempts = counted
    masked = body
    exposures: tuple[Exposure, ...] = ()
    if shape.marked:
        masked, exposures = _mask(quick, message, shape)
        hidden = masked[masked.find(b',"data":') + 8 : masked.rfind(b',"meta":{')]
    else:
        hidden = data
    if _suspicious(hidden):
        return None
    digest = content = sha256(body).digest()
    if message.attempts:
        tail = len(str(message.attempts)) + 1
        content = sha256(body[:-tail] + b"0}").digest()
    raw = bytes.fromhex(identity.replace("-", ""))
    return Judged(
        "valid", None, None, None, None,
        digest, int.from_bytes(raw[:8], "big", signed=True),
        int.from_bytes(raw[8:], "big", signed=True),
        int.from_bytes(content[:8], "big", signed=True),
        shape.urn, identity, trace_id, meta.lang, meta.queue, 1, meta.created_at,
        message.attempts, attempts,
        None, data, True, masked, (), (), exposures,
    )  # fmt: skip


def _is_nobodys(number: int) -> bool:
    """Tell that no check digits can betray a number: too short, or a time of these decades.

    An identity number has 11 digits; a card has 13 or more, and the first is no 1.
    """
    return -_SHORT < number < _SHORT or _TIMES <= number < 2 * _TIMES


@lru_cache(maxsize=4096)
def _plain(*texts: str) -> bool:
    """Tell that none of some texts looks personal; they are few and come again."""
    return all(looks_personal(text) is None for text in texts)


def _native_attempts(rules: Rules, record: Record, message: Any, shape: Shape) -> int | None:
    """Give the attempts of a delivery whose native fields all agree with its body, else None.

    Native fields mostly differ in the ids and the time alone. Their text with these three taken out
    is remembered: the rules compare values and nothing else, so what held for one message holds for
    the next with the same text. That is sure only as long as the three are different things.
    """
    text, meta = record.sections or "", message.meta
    stamp = str(meta.created_at)
    pattern = None
    if len(stamp) == _MILLISECONDS and meta.id != message.trace_id and not message.attempts:
        trace, own = message.trace_id.encode(), meta.id.encode()
        plain = text.replace(b2a_base64(trace, newline=False).decode(), "\0a")
        plain = plain.replace(b2a_base64(own, newline=False).decode(), "\0b")
        plain = plain.replace(message.trace_id, "\0c").replace(meta.id, "\0d")
        plain = plain.replace(f":{stamp}}}", ":\0e}").replace(f":{stamp},", ":\0e,")
        if stamp not in plain and stamp not in shape.urn and "\0" not in text:
            pattern = (record.broker, shape.urn, meta.queue, meta.lang, plain)
            known = rules.natives.get(pattern)
            if known is not None:
                return known
    found = _compare_natives(record, message, shape)
    if pattern is not None and found is not None and len(rules.natives) < _MOST_NATIVES:
        rules.natives[pattern] = found
    return found


def _compare_natives(record: Record, message: Any, shape: Shape) -> int | None:
    try:
        sections = read_sections(record.sections) if record.sections else _NO_SECTIONS
    except Rejected:
        return None
    broker = BROKERS.get(record.broker or "")
    if broker is None:
        return int(message.attempts)
    binding, meta = broker.binding, message.meta
    if not gate_frame(binding, sections):
        return None
    facts = {
        "urn": shape.urn, "trace_id": message.trace_id, "meta.id": meta.id,
        "meta.queue": meta.queue, "meta.lang": meta.lang, "meta.schema_version": 1,
        "meta.created_at": meta.created_at,
    }  # fmt: skip
    if native_drifts(binding, facts, sections):
        return None
    return reconcile(binding, message.attempts, sections)


def _suspicious(data: bytes) -> bool:
    """Tell whether some value might look personal: then it gets the exact look."""
    if b"@" not in data and b"+" not in data:
        long_number = _LONG_NUMBER in data.translate(_DIGITS, b" -")
        if not long_number and not _BANK_CODE(data.translate(_LETTERS, b" ")):
            return False
    for found in _SCALARS(data):
        text, number = found.groups()
        if text is not None and (b"\\" in text or looks_personal(text.decode()) is not None):
            return True
        if number is not None and looks_personal(int(number)) is not None:
            return True
    return False


def _mask(quick: Quick, message: Any, shape: Shape) -> tuple[bytes, tuple[Exposure, ...]]:
    """Mask the marked fields of a message that conforms; the message is changed."""
    found = [
        Exposure(f"data.{path}" if path else "data", "mark", category)
        for steps, path, category in shape.marked
        if _hide(message.data, steps)
    ]
    return quick.encode(message), tuple(sorted(found))


def _hide(value: Any, steps: tuple[str, ...]) -> bool:
    """Mask what stands at a place below a value; tell whether anything stood there."""
    step, rest = steps[0], steps[1:]
    if step == "[]":
        if rest:
            hits = [_hide(item, rest) for item in value if item is not None]
            return any(hits)
        value[:] = [_stars(item) for item in value]
        return bool(value)
    name = f"f_{step}"
    held = getattr(value, name)
    if held is UNSET:
        return False
    if not rest:
        setattr(value, name, _stars(held))
        return True
    return held is not None and _hide(held, rest)


def _stars(value: Any) -> str:
    if isinstance(value, str) and len(value) >= 4:
        return value[0] + _HIDDEN
    return _HIDDEN
