"""Send captured frames again, byte for byte: first read and check all of them, then send.

A survey reads every capture, counts what it holds, and refuses broken files before anything is
sent. Then the frames are sent in order: files by the time of their first frame, frames as captured.
To a broker of the same kind, a frame is sent with its native fields, without those of a delay. To
another kind, the fields come from the binding of that broker. Only `renew` changes a byte: the
message id.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from threading import Event
from typing import Any, Final

from tallystick.brokers import find_binding
from tallystick.core import binding as bindings
from tallystick.core import splice
from tallystick.core.binding import Binding
from tallystick.core.capture import Capture
from tallystick.core.envelope import decode
from tallystick.core.errors import Rejected, TallystickError, Unavailable, UsageError
from tallystick.core.frame import Frame
from tallystick.core.transport import Transport
from tallystick.runtime.capture_read import capture_files_in, read_captures
from tallystick.runtime.redrive import fresh
from tallystick.runtime.settlement import carried

__all__ = ["Choice", "Survey", "prepare", "replay", "survey"]

_BATCH: Final = 500
_FIFO: Final = ("MessageGroupId", "MessageDeduplicationId")
_TICKS: Final = 10
"""Batches per second with a rate: a batch has at most the messages of a tenth of a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The selection of captures; empty means all. Times are in nanoseconds since the epoch."""

    direction: str = ""
    queue: str = ""
    urns: frozenset[str] = frozenset()
    since: int = 0
    until: float = inf

    def takes(self, capture: Capture) -> bool:
        """Return whether a capture is selected."""
        return (
            self.direction in ("", capture.direction)
            and self.queue in ("", capture.queue)
            and self.since <= capture.at < self.until
            and (not self.urns or _urn(capture.frame) in self.urns)
        )


@dataclass(frozen=True, slots=True)
class Survey:
    """The result of a survey: number, kinds, time span and files of the selected frames."""

    choice: Choice
    files: tuple[Path, ...]
    total: int
    directions: Counter[str] = field(default_factory=Counter)
    queues: Counter[str] = field(default_factory=Counter)
    urns: Counter[str] = field(default_factory=Counter)
    first: int = 0
    last: int = 0

    def captures(self) -> Iterator[Capture]:
        """Return the counted frames, and none that were added later."""
        left = self.total
        for capture in read_captures(self.files):
            if not left:
                return
            if self.choice.takes(capture):
                left -= 1
                yield capture


def survey(paths: Iterable[str | Path], choice: Choice) -> Survey:
    """Read all captures once; if there are several directions, the caller must choose one."""
    begins: dict[Path, int] = {}
    directions, queues, urns = Counter[str](), Counter[str](), Counter[str]()
    first, last = inf, 0
    for path in capture_files_in(paths):
        for capture in read_captures([path]):
            begins.setdefault(path, capture.at)
            if choice.takes(capture):
                directions[capture.direction] += 1
                queues[capture.queue] += 1
                urns[_urn(capture.frame)] += 1
                first, last = min(first, capture.at), max(last, capture.at)
    if len(directions) > 1:
        there = ", ".join(f"{count} {name}" for name, count in sorted(directions.items()))
        raise UsageError(
            f"the captures may hold the same messages more than once: {there}",
            code="direction",
            hint="choose one direction with --direction",
        )
    files = tuple(sorted(begins, key=lambda path: (begins[path], path)))
    total = directions.total()
    found = replace(choice, direction=choice.direction or next(iter(directions), ""))
    return Survey(found, files, total, directions, queues, urns, int(first) if total else 0, last)


def prepare(
    capture: Capture, target: Binding, queue: str, options: dict[str, Any], new_id: str = ""
) -> Frame:
    """Return the frame to send: the captured one, or one made by another broker's binding."""
    frame = capture.frame
    source = find_binding(capture.broker)
    if source.name == target.name and not new_id:
        return fresh(Frame(frame.body, _grouped(carried(source, frame))))
    try:
        envelope = decode(splice.renew(frame.body, new_id) if new_id else frame.body)
    except Rejected:
        return Frame(frame.body)
    group = frame.get("attributes", "MessageGroupId") or frame.get("parameters", "MessageGroupId")
    return fresh(
        bindings.project(
            target,
            envelope,
            queue=queue,
            routed_as=bindings.route(source, frame.sections, envelope.urn),
            headers=bindings.headers_of(source, frame.sections),
            key=frame.get("record", "key"),
            **{**options, **({"group": group} if group and options.get("fifo") else {})},
        )
    )


def replay(
    found: Survey,
    transport: Transport,
    target: Binding,
    *,
    queue: str = "",
    rate: float = inf,
    skip: int = 0,
    new_id: Callable[[], str] | None = None,
    stopping: Event,
    counted: Callable[[int], None] = lambda _count: None,
) -> int:
    """Send the frames of a survey after the first `skip`; return how many were confirmed."""
    options = dict(transport.capabilities.options)
    size = _BATCH if rate == inf else max(min(int(rate / _TICKS), _BATCH), 1)
    done, began = 0, time.monotonic()
    known: set[str] = set()
    for name, captures in _runs(found.captures(), queue, skip, size):
        if done and rate < inf:
            stopping.wait(max(began + done / rate - time.monotonic(), 0))
        if stopping.is_set():
            break
        frames = [
            prepare(one, target, name, options, new_id() if new_id else "") for one in captures
        ]
        try:
            if name not in known:
                transport.ensure([name])
                known.add(name)
            transport.send(name, frames)
        except TallystickError as error:
            raise Unavailable(
                f"{error} ({done} of {found.total - skip} messages were sent)",
                code=error.code,
                hint=f"continue with --skip {skip + done}",
            ) from error
        done += len(frames)
        counted(done)
    return done


def _runs(
    captures: Iterator[Capture], queue: str, skip: int, size: int
) -> Iterator[tuple[str, list[Capture]]]:
    """Give captures in order, in batches for one queue each."""
    batch: list[Capture] = []
    name = ""
    for number, capture in enumerate(captures):
        if number < skip:
            continue
        goes_to = queue or capture.queue
        if batch and (goes_to != name or len(batch) == size):
            yield name, batch
            batch = []
        name = goes_to
        batch.append(capture)
    if batch:
        yield name, batch


def _grouped(sections: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Restore the send parameters of a message that was received from a FIFO queue."""
    held = sections.get("attributes", {})
    given: dict[str, Any] = {key: held[key] for key in _FIFO if key in held}
    if not given:
        return sections
    return {**sections, "parameters": {**given, **sections.get("parameters", {})}}


def _urn(frame: Frame) -> str:
    try:
        return decode(frame.body).urn
    except Rejected:
        return ""
