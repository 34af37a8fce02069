"""Send dead letters back to work: without their block, with `attempts` at 0, else byte for byte.

Each goes to the queue that its block names, or to the one given. A record that is no message, or
has no block, stays where it is. A letter leaves the dead-letter queue after it is the broker's
again in its own: a crash in between doubles it and never loses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from tallystick.core import binding as bindings
from tallystick.core import splice
from tallystick.core.binding import Binding
from tallystick.core.envelope import decode
from tallystick.core.errors import Rejected
from tallystick.core.frame import Frame
from tallystick.core.transport import Delivery, Transport

__all__ = ["Redriven", "redrive"]

_BATCH: Final = 100


@dataclass(frozen=True, slots=True)
class Redriven:
    """How many went back, and how many stayed because they cannot."""

    redriven: int = 0
    skipped: int = 0


def redrive(
    binding: Binding,
    transport: Transport,
    graveyard: str,
    *,
    to: str = "",
    limit: int | None = None,
    timeout: float = 1.0,
) -> Redriven:
    """Send back up to `limit` dead letters, until none came for `timeout` seconds."""
    done, kept = 0, list[Delivery]()
    wait = timeout + transport.capabilities.warm_up
    while limit is None or done + len(kept) < limit:
        room = _BATCH if limit is None else min(_BATCH, limit - done - len(kept))
        taken = transport.receive(graveyard, room, wait)
        if not taken:
            break
        wait = timeout
        for delivery in taken:
            try:
                queue, frame = _back(binding, delivery, to, transport.capabilities.options)
            except Rejected:
                kept.append(delivery)
                continue
            transport.replace(delivery, queue, frame)
            done += 1
    for delivery in reversed(kept):
        transport.release(delivery)
    return Redriven(done, len(kept))


def _back(
    binding: Binding, delivery: Delivery, to: str, options: Mapping[str, Any]
) -> tuple[str, Frame]:
    frame = delivery.frame
    block = decode(frame.body).dead_letter
    queue = to or (block.original_queue if block else None)
    if block is None or not queue:
        raise Rejected("no dead-letter block", code="no_block", pointer="/dead_letter")
    envelope = decode(splice.redrive(frame.body))
    group = frame.get("attributes", "MessageGroupId")
    projected = bindings.project(
        binding,
        envelope,
        queue=queue,
        routed_as=bindings.route(binding, frame.sections, envelope.urn),
        headers=bindings.headers_of(binding, frame.sections),
        key=frame.get("record", "key"),
        **{**options, **({"group": group} if group else {})},
    )
    return queue, _fresh(projected)


def _fresh(frame: Frame) -> Frame:
    """Give it an id of its own where the broker would drop it as a copy of the first one."""
    held = frame.sections.get("parameters", {})
    if "MessageDeduplicationId" not in held:
        return frame
    unique = f"{held['MessageDeduplicationId']}-{uuid4().hex}"
    return Frame(
        frame.body, {**frame.sections, "parameters": {**held, "MessageDeduplicationId": unique}}
    )
