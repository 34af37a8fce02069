"""Hostile input for every format: readers give an event or `Rejected`, and nothing else.

Run as a command for more: `python -m tests.events.fuzz 100000 [format ...]`.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator

from tallystick.core.errors import Rejected
from tallystick.events.extensions import NONE, SAMPLES
from tallystick.events.formats import FORMATS, Format, find_format
from tallystick.events.golden import BATCHES, EVENTS

SPICES = (
    b"\x00", b"\xff", b"\x80\x80\x80\x80\x04", b'"', b"\\", b"{", b"[" * 40, b"]", b"<", b"</",
    b">", b"&a;", b"<!DOCTYPE a>", b"<![CDATA[", b"\\ud800", b"1e999", b"NaN", b"null",
    b'"id":"2",',
    b"\xed\xa0\x80", b"\xc0\xaf", b"\xfe\xff", b" ", b"\n", b"-", b"0" * 30, b"<!--", b"xs:any",
    b"data_base64", b"\x02", b"\x0a\xff\xff\xff\xff\x0f", b"\xef\xbb\xbf", b"TWE=", b"time",
)  # fmt: skip


def seeds(form: Format) -> list[bytes]:
    bodies = [form.write(event) for event in EVENTS.values()]
    if form.write_batch is not None:
        bodies += [form.write_batch(batch) for batch in BATCHES.values()]
    return bodies


def mutate(body: bytes, dice: random.Random, others: list[bytes]) -> bytes:
    """Change a body in one to four places: cut, flip, put in, repeat or mix."""
    text = bytearray(body)
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(text) + 1)
        choice = dice.randrange(6)
        if choice == 0:
            del text[at:]
        elif choice == 1 and text:
            text[at % len(text)] ^= 1 << dice.randrange(8)
        elif choice == 2:
            text[at:at] = dice.choice(SPICES)
        elif choice == 3:
            text[at:at] = text[at : at + dice.randrange(30)]
        elif choice == 4:
            del text[at : at + dice.randrange(12)]
        else:
            other = dice.choice(others)
            text[at:] = other[dice.randrange(len(other) + 1) :]
    return bytes(text)


def inputs(form: Format, count: int, seed: int) -> Iterator[bytes]:
    dice = random.Random(seed)
    bodies = seeds(form)
    for _ in range(count):
        yield mutate(dice.choice(bodies), dice, bodies)


def fuzz(name: str, count: int, seed: int) -> tuple[int, int]:
    """Read fuzzed inputs; give how many were read and how many rejected."""
    form = find_format(name)
    read = rejected = 0
    for number, body in enumerate(inputs(form, count, seed)):
        known = SAMPLES if number % 2 else NONE  # with none declared, JSON goes the quick ways
        for reader in (form.read, form.read_batch):
            try:
                if reader is not None:
                    reader(body, known)
                    read += 1
            except Rejected:
                rejected += 1
    return read, rejected


def main(arguments: list[str]) -> None:
    count = int(arguments[0]) if arguments else 100_000
    for name in arguments[1:] or FORMATS:
        start = time.monotonic()
        read, rejected = fuzz(name, count, seed=1)
        seconds = time.monotonic() - start
        print(f"{name}: {count} inputs, {read} read, {rejected} rejected, {seconds:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
