"""Judge a stream of JSON lines, quickly and exactly, on one core or several.

Good messages of schemas inside the subset are read by their types (`tallystick.schemas.typed`).
What is doubtful there is decoded as a block with msgspec, which keeps big integers, and the
compiled schema is asked. What a quick decoder would hide is found by one sum: written out again,
the block must hold as many colons as before. A duplicate member, dropped on reading, takes at least
its own colon with it, and nothing adds one as long as no escape stands for one. A block that fails
the sum or does not decode is read again line by line by the exact reader, which is the rule itself.

Workers are forked after the first compile and read their own part of the file; findings come
back in the order of the lines.
"""

from __future__ import annotations

import gc
import os
import pickle
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import msgspec
import orjson

from tallystick.core.errors import Rejected, Unavailable
from tallystick.schemas.typed import Meta, Typed, may_hide_colon, split_lines
from tallystick.schemas.validate import Finding, Judge, is_wrapped, judge_bytes, judge_value

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Tally", "judge_lines", "judge_parallel"]

_CHUNK: Final = 1 << 17
_BLOCK: Final = 1 << 17
_SHARE: Final = 1 << 22


class _Envelope(msgspec.Struct, gc=False):
    """The members of an envelope, in their usual order: the quickest to decode and to write."""

    job: Any = msgspec.UNSET
    trace_id: Any = msgspec.UNSET
    data: Any = msgspec.UNSET
    meta: Meta | msgspec.UnsetType = msgspec.UNSET
    attempts: Any = msgspec.UNSET
    urn: Any = msgspec.UNSET


_DECODE: Final = msgspec.json.Decoder().decode
_DECODE_ENVELOPE: Final = msgspec.json.Decoder(_Envelope).decode
_ENCODE: Final = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Tally:
    """What a part of a stream came to: lines, messages by outcome, and all but the good ones."""

    lines: int = 0
    ok: int = 0
    findings: list[Finding] = field(default_factory=list)


def judge_lines(judge: Judge, file: BinaryIO, source: str) -> Iterator[tuple[Tally, int]]:
    """Judge a stream chunk by chunk; each step gives its tally and the bytes it took."""
    at = 0
    typed = Typed(judge)
    with _no_collector():
        for chunk in _chunks(file):
            tally = judge_chunk(typed, chunk, source, at)
            at += tally.lines
            yield tally, len(chunk)


@contextmanager
def _no_collector() -> Iterator[None]:
    """Pause the cycle collector: decoded JSON holds no cycles, and looking for them is costly."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _chunks(file: BinaryIO, limit: int = sys.maxsize) -> Iterator[bytes]:
    """Cut a stream, or its next `limit` bytes, into chunks that end with a line."""
    rest = b""
    while piece := file.read(min(_CHUNK, limit)):
        limit -= len(piece)
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield rest + piece[:cut] if rest else piece[:cut]
            rest = piece[cut:]
        else:
            rest += piece
    if rest:
        yield rest


def judge_chunk(typed: Typed, chunk: bytes, source: str, before: int) -> Tally:
    """Judge whole lines; `before` is how many lines of the stream came earlier."""
    tally = Tally()
    start, end = 0, len(chunk)
    while start < end:
        cut = chunk.find(b"\n", min(start + _BLOCK, end)) + 1 or end
        _judge_block(typed, chunk[start:cut], source, before + tally.lines, tally)
        start = cut
    return tally


def _judge_block(typed: Typed, block: bytes, source: str, before: int, tally: Tally) -> None:
    count, odd = typed.doubtful(block)
    tally.lines += count
    tally.ok += count - len(odd)
    if not odd:
        return
    lines = split_lines(block)
    if len(odd) < count:
        lines = [lines[at] for at in odd]
        block = b"\n".join(lines)
    judge = typed.judge
    quick = _quickly(judge, block, lines)
    if quick is None:
        found = (
            judge_bytes(judge, line, source, before + at + 1)
            for at, line in zip(odd, lines, strict=True)
            if line.strip()
        )
    else:
        tally.ok += len(lines) - len(quick)
        found = (judge_value(judge, message, source, before + odd[at] + 1) for at, message in quick)
    for finding in found:
        if finding.outcome == "ok":
            tally.ok += 1
        else:
            tally.findings.append(finding)


def _quickly(judge: Judge, block: bytes, lines: list[bytes]) -> list[tuple[int, object]] | None:
    """Give the messages of a block that need a closer look; None: the block must be read again."""
    if may_hide_colon(block):
        return None
    try:
        typed = judge.urn is None and _is_envelope(lines[0])
        decode, encode = (_DECODE_ENVELOPE, _ENCODE) if typed else (_DECODE, orjson.dumps)
        messages: list[Any] = [decode(line) for line in lines]
        again = encode(messages)
        if again != b"[%b]" % b",".join(lines) and again.count(b":") != block.count(b":"):
            return None
    except (msgspec.DecodeError, TypeError, RecursionError, UnicodeError):
        return None
    if typed:
        return [(at, _DECODE(lines[at])) for at in _odd_envelopes(judge, messages)]
    if judge.urn is None:
        return [(at, messages[at]) for at in _odd_objects(judge, messages)]
    checker = judge.checker(judge.urn)
    valid = checker.is_valid if checker else lambda _: False
    return [
        (at, message)
        for at, message in enumerate(messages)
        if is_wrapped(message, judge.urn) or not valid(message)
    ]


def _is_envelope(line: bytes) -> bool:
    """Tell whether a line has the members of an envelope and no others."""
    return _ENCODE(_DECODE_ENVELOPE(line)).count(b":") == line.count(b":")


def _odd_envelopes(judge: Judge, messages: list[_Envelope]) -> list[int]:
    odd = []
    valid_by_urn = judge.quick
    for at, message in enumerate(messages):
        try:
            if not valid_by_urn[message.job](message.data):
                odd.append(at)
        except (KeyError, TypeError, ValueError):  # not yet compiled, no text, or no data
            odd.append(at)
    return odd


def _odd_objects(judge: Judge, messages: list[Any]) -> list[int]:
    odd = []
    valid_by_urn = judge.quick
    for at, message in enumerate(messages):
        try:
            if not valid_by_urn[message["job"]](message["data"]):
                odd.append(at)
        except (KeyError, TypeError):
            odd.append(at)
    return odd


def judge_parallel(
    judge: Judge, path: str, jobs: int, *, share: int = _SHARE
) -> Iterator[tuple[Tally, int]]:
    """Judge a regular file with several processes; tallies come in the order of the lines.

    Workers are forked, because a compiled schema cannot be sent. Each takes every `jobs`-th part
    and sends its tallies back through a pipe. There is no worker without a part.
    """
    spans = _spans(path, share)
    jobs = max(1, min(jobs, len(spans)))
    workers = [_start(judge, path, spans[number::jobs]) for number in range(jobs)]
    at = 0
    try:
        for number, (start, stop) in enumerate(spans):
            tally = _receive(workers[number % jobs][1])
            for place, finding in enumerate(tally.findings):
                tally.findings[place] = replace(finding, line=finding.line + at)
            at += tally.lines
            yield tally, stop - start
    finally:
        for _, pipe in workers:
            pipe.close()  # all of them first: a later worker holds the pipes of the earlier ones
        for child, _ in workers:
            os.waitpid(child, 0)


def _start(judge: Judge, path: str, spans: list[tuple[int, int]]) -> tuple[int, BinaryIO]:
    """Fork a worker; give its number and the pipe its tallies come through."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, os.fdopen(reading, "rb")
    try:
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            for start, stop in spans:
                pickle.dump(_judge_span(judge, path, start, stop), pipe)
                pipe.flush()
    finally:
        os._exit(0)


def _receive(pipe: BinaryIO) -> Tally:
    try:
        answer = pickle.load(pipe)  # noqa: S301 - written by our own child
    except EOFError:
        raise Unavailable("a worker process ended before it was done", code="jobs.died") from None
    if isinstance(answer, Tally):
        return answer
    message, code, pointer, hint = answer
    raise Rejected(message, code=code, pointer=pointer, hint=hint)


def _judge_span(judge: Judge, path: str, start: int, stop: int) -> Tally | tuple[Any, ...]:
    """Judge a part of a file; a schema that cannot be used is an answer, too."""
    total = Tally()
    typed = Typed(judge)
    try:
        with Path(path).open("rb") as file, _no_collector():
            file.seek(start)
            for chunk in _chunks(file, stop - start):
                tally = judge_chunk(typed, chunk, path, total.lines)
                total.lines += tally.lines
                total.ok += tally.ok
                total.findings += tally.findings
    except Rejected as error:
        return error.message, error.code, error.pointer, error.hint
    return total


def _spans(path: str, share: int) -> list[tuple[int, int]]:
    """Cut a file into parts of about `share` bytes, each ending with a line."""
    size = Path(path).stat().st_size
    spans, start = [], 0
    with Path(path).open("rb") as file:
        while start < size:
            file.seek(min(start + share, size))
            file.readline()
            stop = min(max(file.tell(), start + 1), size)
            spans.append((start, stop))
            start = stop
    return spans
