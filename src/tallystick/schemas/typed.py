"""Read the good messages of a stream at once: envelope, URN and data in one msgspec type.

Every schema inside the subset (`tallystick.schemas.fast`) is the `data` of an envelope that its URN
tags; the others take any data and the validator is asked. A block of lines whose messages, written
again, are the same bytes holds good messages and nothing else. Otherwise each line is read alone;
what does not decode is doubtful and left to the slower reading, as is all of a block where writing
again loses a colon: a member stood twice (see `tallystick.schemas.stream`).

The types are made once the URNs of the stream are known, and rested while most lines are doubtful.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import Any, Final

import msgspec

from tallystick.schemas.validate import Judge

__all__ = ["Meta", "Typed", "may_hide_colon", "split_lines"]

_REST: Final = 32
"""Blocks that are read without types after one that they were of no use for."""
_ENCODER: Final = msgspec.json.Encoder()
_REFUSED: Final = (msgspec.DecodeError, RecursionError, ValueError)


class Meta(msgspec.Struct, gc=False):
    """The members of `meta`, in their usual order."""

    id: Any = msgspec.UNSET
    queue: Any = msgspec.UNSET
    lang: Any = msgspec.UNSET
    schema_version: Any = msgspec.UNSET
    created_at: Any = msgspec.UNSET


class _Nobody(msgspec.Struct, tag_field="job", tag="", forbid_unknown_fields=True):
    """No message: a lone type would do without its tag, one of several may not."""


def may_hide_colon(block: bytes) -> bool:
    """Tell whether an escape in a block may stand for a colon."""
    return b"\\u003" in block and (b"\\u003a" in block or b"\\u003A" in block)


def split_lines(block: bytes) -> list[bytes]:
    """Give the lines of a block without their ends."""
    return block.removesuffix(b"\n").split(b"\n")


class Typed:
    """What one reader of a stream has learnt: the types of the URNs met so far."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.decoder: msgspec.json.Decoder[Any] | None = None
        self.asked: dict[type, Callable[[Any], bool]] = {}
        self.built = self.seen = 0
        self.rest = 0
        self.uneven = 0

    def doubtful(self, block: bytes) -> tuple[int, Sequence[int]]:
        """Give how many lines a block has, and the places of those that are not surely good."""
        self.learn()
        resting = self.rest or self.decoder is None
        if not resting and not self.uneven:
            found = self.at_once(block)
            if found is not None:
                return found
            self.uneven = _REST
        count = block.count(b"\n") + (block[-1:] != b"\n")
        self.uneven -= bool(self.uneven)
        if resting or may_hide_colon(block):
            self.rest -= bool(self.rest)
            return count, range(count)
        odd = self.one_by_one(split_lines(block))
        if 2 * len(odd) > count:
            self.rest = _REST
        return count, odd

    def learn(self) -> None:
        """Make the types anew when URNs came to be known, and none came with the last block."""
        known = len(self.judge.types)
        if known != self.built and known == self.seen:
            self.built = known
            self.decoder = self.make()
        self.seen = known

    def make(self) -> msgspec.json.Decoder[Any] | None:
        """Make the type of all messages of known URNs; None when it would say nothing."""
        types = self.judge.types
        if self.judge.urn is not None:
            kind = types.get(self.judge.urn)
            return msgspec.json.Decoder(kind) if kind is not None else None
        if not any(kind is not None for kind in types.values()):
            return None
        self.asked = {}
        kinds: list[Any] = [_Nobody]
        for urn, kind in types.items():
            envelope = _envelope(urn, Any if kind is None else kind)
            kinds.append(envelope)
            if kind is None:
                self.asked[envelope] = self.judge.quick[urn]
        return msgspec.json.Decoder(reduce(or_, kinds))

    def at_once(self, block: bytes) -> tuple[int, list[int]] | None:
        """Read a whole block; None when it holds anything but good messages, written as usual."""
        assert self.decoder is not None
        try:
            messages = self.decoder.decode_lines(block)
        except _REFUSED:
            return None
        again = _ENCODER.encode_lines(messages)
        if again != (block if block[-1:] == b"\n" else block + b"\n"):
            return None
        return len(messages), self.refused(messages)

    def one_by_one(self, lines: list[bytes]) -> Sequence[int]:
        """Read line by line."""
        assert self.decoder is not None
        decode = self.decoder.decode
        messages, places, odd = [], [], []
        for at, line in enumerate(lines):
            try:
                messages.append(decode(line))
                places.append(at)
            except _REFUSED:
                odd.append(at)
        colons = sum(line.count(b":") for line in lines) - sum(lines[at].count(b":") for at in odd)
        if _ENCODER.encode_lines(messages).count(b":") != colons:
            return range(len(lines))
        refused = self.refused(messages)
        return sorted([*odd, *(places[at] for at in refused)]) if refused else odd

    def refused(self, messages: list[Any]) -> list[int]:
        """Ask the validator about messages whose type says nothing of their data."""
        if not self.asked:
            return []
        return [
            at
            for at, message in enumerate(messages)
            if type(message) in self.asked and not self.asked[type(message)](message.data)
        ]


def _envelope(urn: str, data: Any) -> Any:
    """Make the type of the messages of one URN, members in their usual order."""
    free = (Any, msgspec.UNSET)
    return msgspec.defstruct(
        "Envelope",
        [
            ("trace_id", *free),
            ("data", data),
            ("meta", Meta | msgspec.UnsetType, msgspec.UNSET),
            ("attempts", *free),
            ("urn", *free),
        ],
        tag_field="job",
        tag=urn,
        kw_only=True,
        gc=False,
    )
