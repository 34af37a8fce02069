"""Throw bytes at the reader: `python -m tests.core.fuzz --count 200000`.

Whatever the bytes, only `Rejected` may come out, the quick decoder and the rule (`exact.judge`) say
the same, and what is spliced can be read again. Most bodies are noisy JSON; the others
are good messages with one or two typed members gone wrong, so that every verdict comes up often.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any
from zlib import crc32

from tallystick import standard
from tallystick.core.envelope import (
    Classification,
    DeadLetter,
    Envelope,
    Meta,
    accepts,
    classify,
    decode,
    encode,
    reason_not_accepted,
)
from tallystick.core.errors import Refused, Rejected
from tallystick.core.exact import TYPED, Judged, judge
from tallystick.core.portable import find_alterations
from tallystick.core.scan import scan
from tallystick.core.splice import dead_letter, poison_record, redrive, retry

PLAIN = [
    b'{"job":"urn:x","trace_id":"t","data":{"a":1.50,"b":[true,null,"x\\n"]},"attempts":0}',
    b'{"job":"y","meta":{"id":"i","queue":"q","lang":"go","schema_version":1,"created_at":5}}',
    '{"urn":"urn:x","data":{"é\U0001f600":"\\ud83d\\ude00","n":12345678901234567890}}'.encode(),
    b'{"job":5,"urn":"x","timestamp":1,"meta":{"ts":1},"dead_letter":{"reason":"failed"}}',
    b' { "data" : { "data" : { } } , "job" : "x" , "job" : "y" , "attempts" : -0 } ',
    b"[1,2,{}]",
    b"",
]
FIXTURES = [
    body
    for path in sorted(standard.paths())
    if path.startswith("fixtures/") and len(body := standard.read(path)) < 700
]
SEEDS = PLAIN * 6 + FIXTURES
PIECES = [
    b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\u", b"\\ud800", b"\\udc00", b"1e400",
    b"-", b"0", b"1.0", b"NaN", b"null", b"true", b"\x00", b"\xff", b"\xed\xa0\x80",
    b"\xef\xbb\xbf", b'"job":', b'"urn":"u"', b'"data":', b'"meta":', b'"attempts":1',
    b"[" * 1100, b" ", b"9" * 400,
]  # fmt: skip
VALUES = [
    b"null", b"true", b"0", b"-0", b"1", b"-1", b"1.0", b"1e0", b"1e400", b"9223372036854775807",
    b"9223372036854775808", b"-9223372036854775809", b'""', b'" \\t"', b'"x"', b'"\\u0000"',
    b'"\\ud83d\\ude00"', b'"\\ud800"', b'"\\udc00\\ud800"', b"[]", b"[{}]", b"{}", b'{"n":1}',
    b'{"n":1e400}', b'{"n":-1e999}', b'{"\\ud800":1}',
]  # fmt: skip
PATHS: list[tuple[str, ...]] = [
    *TYPED, ("job",), ("urn",), ("timestamp",), ("meta", "ts"), ("data", "n"), ("x",),
]  # fmt: skip
HUGE = [b"1e400", b"-1e999", b'[{"n":1e309}]', b"9" * 400]
_IDENTITY = re.compile(rb'"(job|urn)"(\s*:\s*)("[^"]*")?')
_BLANKS = [
    b'"kind"\\2"x"',
    b'"\\1"\\2" \\\\t"',
    b'"\\1"\\2""',
    b'"\\1"\\2null,"k":0',
    b'"\\1s"\\2"x"',
]
RECORD = DeadLetter("failed", "boom", "Error", 1767225600000, "q", 3, "python")


def bodies(count: int, seed: int) -> Iterator[bytes]:
    """Yield messages gone wrong and plain noise, the same for the same seed."""
    chance = random.Random(seed)
    for _ in range(count):
        kind = chance.random()
        if kind < 0.02:
            yield chance.randbytes(chance.randrange(40))
        elif kind < 0.6:
            yield make_noise(chance.choice(SEEDS), chance)
        else:
            yield make_wrong(chance.choice(FIXTURES), chance)


def make_noise(seed: bytes, chance: random.Random) -> bytes:
    """Change bytes anywhere, without regard to what they mean."""
    body = bytearray(seed)
    for _ in range(chance.randrange(5)):
        at = chance.randrange(len(body) + 1)
        match chance.randrange(5):
            case 0:
                body[at : at + chance.randrange(4)] = chance.choice(PIECES)
            case 1:
                del body[at : at + chance.randrange(1, 12)]
            case 2:
                body[at:at] = body[: chance.randrange(len(body) + 1)]
            case 3 if body:
                body[at % len(body)] = chance.randrange(256)
            case _:
                body[at:at] = chance.choice(PIECES)
    return bytes(body)


def make_wrong(seed: bytes, chance: random.Random) -> bytes:
    """Add members of any type in front of, or behind, those that are there; take the identity."""
    body = seed
    for _ in range(chance.randrange(1, 3)):
        huge = chance.random() < 0.05
        *parents, name = ("data", "n") if huge else chance.choice(PATHS)
        member = b'"%s":%s' % (name.encode(), chance.choice(HUGE if huge else VALUES))
        if parents:
            opened = re.search(b'"%s"\\s*:\\s*{' % parents[0].encode(), body)
            if opened is None:
                member = b'"%s":{%s}' % (parents[0].encode(), member)
        else:
            opened = None
        body = _put_in(body, member, opened.end() if opened else None, chance)
    if chance.random() < 0.08:
        body = _IDENTITY.sub(chance.choice(_BLANKS), body)
    return body


def _put_in(body: bytes, member: bytes, at: int | None, chance: random.Random) -> bytes:
    """Put a member first into the object that opens at `at`; into the message, first or last."""
    if at is None:
        brace = body.rfind(b"}")
        if brace > 0 and chance.random() < 0.5:
            comma = b"" if body[:brace].rstrip().endswith(b"{") else b","
            return body[:brace] + comma + member + body[brace:]
        at = body.find(b"{") + 1
    comma = b"" if body[at:].lstrip().startswith(b"}") else b","
    return body[:at] + member + comma + body[at:]


def attack(body: bytes) -> str:
    """Read one body every way there is; give how it ended."""
    verdict = classify(body)
    judged, fault = _judge(body)
    if fault is not None:
        _check_rejection(verdict, fault, body)
        _check_poison(body)
        return fault.code
    assert judged is not None, body
    envelope = decode(body)
    assert _seen(envelope) == _said(judged), body
    assert envelope.warnings == judged.notices, body
    assert accepts(envelope) == (reason_not_accepted(envelope) is None), body
    if _is_sampled(body):
        for _ in find_alterations(body):
            pass
    if verdict.verdict != "ok":
        _check_poison(body)
        return "number_out_of_range"
    _check_splices(body)
    try:
        written = encode(envelope)
    except Refused as refusal:
        return f"refused: {refusal.code}"
    assert encode(decode(written)) == written, body
    return "ok"


def _judge(body: bytes) -> tuple[Judged | None, Rejected | None]:
    try:
        return judge(body), None
    except Rejected as rejection:
        return None, rejection


def _check_rejection(verdict: Classification, fault: Rejected, body: bytes) -> None:
    """Both ways name one and the same fault and its place; a number in `data` may come on top."""
    found = verdict.rejection
    assert found is not None, body
    assert found.offset is not None or found.pointer is not None, body
    if (fault.code, found.code) != ("no_identity", "number_out_of_range"):
        assert _place(found) == _place(fault), body


def _place(rejection: Rejected) -> tuple[str, str | None, int | None]:
    return rejection.code, rejection.pointer, rejection.offset


def _seen(envelope: Envelope) -> dict[tuple[str, ...], Any]:
    """Give what the quick decoder read: every typed member that has a value."""
    meta, block = envelope.meta, envelope.dead_letter
    seen: dict[tuple[str, ...], Any] = {
        ("job",): envelope.urn,
        ("trace_id",): envelope.trace_id,
        ("attempts",): envelope.attempts,
        ("data",): None if envelope.payload is None else {},
        ("meta",): None if meta is None else {},
        ("dead_letter",): None if block is None else {},
    }
    for part, held in (("meta", meta or Meta()), ("dead_letter", block or DeadLetter())):
        names = [path[1] for path in TYPED if path[0] == part and len(path) == 2]
        seen |= {(part, name): getattr(held, name) for name in names}
    return {path: value for path, value in seen.items() if value is not None}


def _said(judged: Judged) -> dict[tuple[str, ...], Any]:
    """Give the same as the rule says it."""
    said: dict[tuple[str, ...], Any] = {("job",): judged.job}
    said |= {(name,): {} for name in judged.objects if (name,) in TYPED}
    return said | {path: value for path, value in judged.scalars.items() if value is not None}


def _check_splices(body: bytes) -> None:
    """Retry, give up and drive again: each changes its member and can be read."""
    if not _is_sampled(body):
        return
    assert decode(retry(body, 7)).attempts == 7, body
    given_up = dead_letter(body, RECORD)
    assert decode(given_up).dead_letter == RECORD, body
    again = decode(redrive(given_up))
    assert (again.dead_letter, again.attempts) == (None, 0), body


def _check_poison(body: bytes) -> None:
    """A body that is no message has a record that is an object, and no retry."""
    if not _is_sampled(body):
        return
    record = scan(poison_record(body, RECORD), finite=False)
    assert ("dead_letter", "reason") in {member.path for member in record}, body
    for splice in (partial(retry, attempts=1), partial(dead_letter, record=RECORD), redrive):
        try:
            splice(body)
        except Rejected:
            continue
        raise AssertionError(body)


def _is_sampled(body: bytes) -> bool:
    """Choose one body in eight, always the same ones, for what reads a body many times."""
    return crc32(body) % 8 == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    ends = Counter(attack(body) for body in bodies(arguments.count, arguments.seed))
    for name, number in ends.most_common():
        print(f"{number:8} {name}")


if __name__ == "__main__":
    main()
