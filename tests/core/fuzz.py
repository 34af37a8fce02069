"""Throw bytes at the reader: `python -m tests.core.fuzz --count 200000`.

Whatever the bytes, only `Rejected` may come out, and what comes through must agree with the rule.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator

from tallystick.core.envelope import accepts, classify, decode, encode, reason_not_accepted
from tallystick.core.errors import Refused, Rejected
from tallystick.core.portable import find_alterations

SEEDS = [
    b'{"job":"urn:x","trace_id":"t","data":{"a":1.50,"b":[true,null,"x\\n"]},"attempts":0}',
    b'{"job":"y","meta":{"id":"i","queue":"q","lang":"go","schema_version":1,"created_at":5}}',
    '{"urn":"urn:x","data":{"é\U0001f600":"\\ud83d\\ude00","n":12345678901234567890}}'.encode(),
    b'{"job":5,"urn":"x","timestamp":1,"meta":{"ts":1},"dead_letter":{"reason":"failed"}}',
    b' { "data" : { "data" : { } } , "job" : "x" , "job" : "y" , "attempts" : -0 } ',
    b"[1,2,{}]",
    b"",
]
PIECES = [
    b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\u", b"\\ud800", b"\\udc00", b"1e400",
    b"-", b"0", b"1.0", b"NaN", b"null", b"true", b"\x00", b"\xff", b"\xed\xa0\x80",
    b"\xef\xbb\xbf", b'"job":', b'"urn":"u"', b'"data":', b'"meta":', b'"attempts":1',
    b"[" * 1100, b" ", b"9" * 400,
]  # fmt: skip


def bodies(count: int, seed: int) -> Iterator[bytes]:
    """Yield mutated messages and plain noise, the same for the same seed."""
    chance = random.Random(seed)
    for _ in range(count):
        body = bytearray(chance.choice(SEEDS))
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
        yield bytes(body) if chance.random() > 0.02 else chance.randbytes(chance.randrange(40))


def attack(body: bytes) -> str:
    """Read one body every way there is; give how it ended."""
    verdict = classify(body).verdict
    try:
        envelope = decode(body)
    except Rejected as rejection:
        if rejection.offset is None and rejection.pointer is None:
            raise AssertionError(body) from rejection
        return rejection.code
    assert accepts(envelope) == (reason_not_accepted(envelope) is None)
    for _ in find_alterations(body):
        pass
    if verdict != "ok":
        return "number_out_of_range"
    try:
        written = encode(envelope)
    except Refused as refusal:
        return f"refused: {refusal.code}"
    assert encode(decode(written)) == written
    return "ok"


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
