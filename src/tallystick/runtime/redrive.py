"""Send dead letters back to work: without their block, with `attempts` at 0, else byte for byte.

Each goes to the queue that its block names, or to the one given. A record that is no message, that
has no block or that nobody asked for stays: it is handed back at the end, and on a broker that is a
log, where handing back would bring the others too, it moves to the end of the dead-letter queue. A
letter leaves the dead-letter queue after it is the broker's again in its own: a crash in between
doubles it and never loses it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Final
from uuid import uuid4

from tallystick.core import binding as bindings
from tallystick.core import splice
from tallystick.core.binding import Binding
from tallystick.core.envelope import decode
from tallystick.core.errors import Rejected, Unavailable
from tallystick.core.frame import Frame
from tallystick.core.transport import Delivery, Transport

__all__ = ["Redriven", "fresh", "redrive"]

_BATCH: Final = 100


@dataclass(frozen=True, slots=True)
class Redriven:
    """How many went back, how many stayed, and to which queues they went."""

    redriven: int = 0
    skipped: int = 0
    queues: Mapping[str, int] = field(default_factory=dict, compare=False)


def redrive(
    binding: Binding,
    transport: Transport,
    graveyard: str,
    *,
    to: str = "",
    only: frozenset[str] = frozenset(),
    limit: int | None = None,
    timeout: float = 1.0,
    stopping: Event | None = None,
    moved: Callable[[int], None] = lambda _count: None,
) -> Redriven:
    """Send back up to `limit` dead letters, until none came for `timeout` seconds.

    With `only`, those of other URNs stay. `moved` is told how many are back, one by one.
    """
    kept: list[Delivery] = []
    queues, stays = Counter[str](), set[bytes]()
    returns = transport.capabilities.returns == "deadline"
    wait = timeout + transport.capabilities.warm_up
    while limit is None or queues.total() < limit:
        if stopping is not None and stopping.is_set():
            break
        room = _BATCH if limit is None else min(_BATCH, limit - queues.total())
        taken = transport.receive(graveyard, room, wait)
        if not taken:
            break
        if returns and all(one.frame.body in stays for one in taken):
            _hand_back(transport, taken)  # we have come round: these waited longer than they may
            break
        wait = timeout
        for delivery in taken:
            try:
                options = transport.capabilities.options
                queue, frame = _back(binding, delivery, to, only, options)
            except Rejected:
                kept.append(delivery)
                stays.add(delivery.frame.body)
                continue
            if queue not in queues:
                transport.ensure([queue])
            transport.replace(delivery, queue, frame)
            queues[queue] += 1
            moved(queues.total())
    if transport.capabilities.log:
        for delivery in kept:
            transport.replace(delivery, graveyard, delivery.frame)
    else:
        _hand_back(transport, kept)
    return Redriven(queues.total(), len(kept), dict(queues))


def _hand_back(transport: Transport, deliveries: list[Delivery]) -> None:
    """Hand out again, the last first; one whose reservation is over is handed out anyway."""
    for delivery in reversed(deliveries):
        try:
            transport.release(delivery)
        except Unavailable as error:
            if error.code != "delivery_lost":
                raise


def _back(
    binding: Binding,
    delivery: Delivery,
    to: str,
    only: frozenset[str],
    options: Mapping[str, Any],
) -> tuple[str, Frame]:
    frame = delivery.frame
    letter = decode(frame.body)
    queue = to or (letter.dead_letter.original_queue if letter.dead_letter else None)
    if letter.dead_letter is None or not queue:
        raise Rejected("no dead-letter block", code="no_block", pointer="/dead_letter")
    if only and letter.urn not in only:
        raise Rejected("none of those asked for", code="other_urn", pointer="/job")
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
    return queue, fresh(projected)


def fresh(frame: Frame) -> Frame:
    """Give it an id of its own where the broker would drop it as a copy of the first one."""
    held = frame.sections.get("parameters", {})
    if "MessageDeduplicationId" not in held:
        return frame
    unique = f"{held['MessageDeduplicationId']}-{uuid4().hex}"
    return Frame(
        frame.body, {**frame.sections, "parameters": {**held, "MessageDeduplicationId": unique}}
    )
