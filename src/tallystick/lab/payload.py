"""Message bodies made from a seed, their digests, and lists of numbers as ranges.

Both ends make the same bytes, so a report stays small (docs/reference/lab-protocol.md, Bodies and
Reports).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from tallystick.core.errors import Rejected

__all__ = ["digest_of", "first_difference", "make_body", "read_runs", "write_runs"]

_PERIOD: Final = 31
_LONGEST: Final = 10_000_000


def make_body(seed: int, sequence: int, size: int) -> bytes:
    """Return the body of one message: a pattern of 31 bytes (no usual buffer length), repeated."""
    pattern = hashlib.sha256(f"{seed}.{sequence}".encode()).digest()[:_PERIOD]
    return (pattern * (size // _PERIOD + 1))[:size]


@lru_cache(maxsize=4096)
def _hash_of(seed: int, sequence: int, size: int) -> bytes:
    return hashlib.sha256(make_body(seed, sequence, size)).digest()


def digest_of(seed: int, size: int, sequences: Iterable[int]) -> str:
    """Give the digest of these messages in this order."""
    digest = hashlib.sha256()
    for sequence in sequences:
        digest.update(_hash_of(seed, sequence, size))
    return digest.hexdigest()


def first_difference(wanted: bytes, found: bytes) -> int | None:
    """Give the offset where two bodies part, or nothing when they are the same."""
    if wanted == found:
        return None
    pairs = enumerate(zip(wanted, found, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(wanted), len(found)))


def write_runs(numbers: Iterable[int]) -> str:
    """Write numbers, in their order, as runs: `0-3,5`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def read_runs(text: str) -> list[int]:
    """Read runs back into numbers."""
    numbers: list[int] = []
    for run in text.split(",") if text else ():
        first, _, last = run.partition("-")
        if not (first.isascii() and first.isdigit() and (not last or last.isdigit())):
            raise Rejected(f"{run!r} is not a range of numbers", code="runs")
        end = int(last or first)
        if end < int(first) or len(numbers) + end - int(first) >= _LONGEST:
            raise Rejected(f"{run!r} is not a range of numbers", code="runs")
        numbers.extend(range(int(first), end + 1))
    return numbers
