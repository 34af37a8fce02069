"""The crash and restart circuits, which show the effect of acknowledge modes and persistence.

Crash: four messages are delivered, the receiver acts as its mode and the cut say, and its
connection is cut. The broker has noticed when the receiver's exclusive queue is gone and the other
queue has no consumer; then the remaining messages are taken one by one (sheet, 5.5). Restart:
messages are made safe by a confirm or a commit, the broker is restarted, and the remaining messages
are counted.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from pamqp import commands

from tallystick.lab.expected import CRASH_MESSAGES, FRAME_MAX, MESSAGES
from tallystick.lab.probe import (
    NOT_FOUND,
    SYNCHRONISE,
    Lane,
    acknowledgements,
    content_head,
    declare,
    make_body,
)
from tallystick.lab.raw import Channel, Content, Refusal, Wire, encode

__all__ = ["Kept", "look_after_restart", "probe_crash", "put_in_safety"]

_LOOK: Final = 0.01
_BODY: Final = 512


@dataclass(frozen=True, slots=True)
class Kept:
    """The state of a queue: whether it exists, its messages, how many are redelivered."""

    there: bool = True
    left: tuple[int, ...] = ()
    redelivered: int = 0
    altered: tuple[int, ...] = ()


async def probe_crash(lane: Lane, cut: str, *, durable: bool, persistent: bool) -> Kept:
    """Cut a receiver at `mode/cut`, and return the remaining messages."""
    queue = lane.fresh()
    control = await lane.open("control", declare(queue, durable=durable))
    messages = _messages(control, queue, CRASH_MESSAGES, _BODY, persistent=persistent)
    await control.ask(*messages, SYNCHRONISE)
    mode, _, point = cut.partition("/")
    wire = await Wire.open(lane.address, FRAME_MAX)
    try:
        await _receive(wire, queue, mode, point)
    finally:
        wire.cut()
        await wire.ended()
    await _until_noticed(lane, queue)
    kept = await _take_all(control, queue, _BODY)
    await control.ask(commands.Queue.Delete(queue=queue))
    await control.close()
    lane.forget(queue)
    return kept


async def _receive(wire: Wire, queue: str, mode: str, point: str) -> None:
    channel = wire.channel()
    await channel.ask(
        commands.Channel.Open(),
        commands.Queue.Declare(queue=f"{queue}.alive", exclusive=True),
        *([commands.Tx.Select()] if mode == "tx" else []),
        commands.Basic.Consume(queue=queue, no_ack=mode == "no_ack"),
    )
    await channel.until(lambda: len(channel.deliveries) >= CRASH_MESSAGES)
    tags = [content.method.delivery_tag for content in channel.deliveries]
    for step in _steps(mode, point, tags):
        await channel.ask(step)
    await channel.ask(SYNCHRONISE)


def _steps(mode: str, point: str, tags: list[int]) -> list[Any]:
    """Return the methods that a receiver has sent before this cut."""
    if mode == "pre_ack":  # acknowledged before it is processed, wherever that is cut
        return acknowledgements(mode, tags)
    if point == "before":
        return []
    if point in {"acked", "rolled_back"}:
        ends = [commands.Tx.Rollback()] if point == "rolled_back" else []
        return [*acknowledgements("auto", tags), *ends]
    return acknowledgements(mode, tags[: len(tags) // 2] if point == "half" else tags)


async def _until_noticed(lane: Lane, queue: str) -> None:
    """Wait until the broker has cleared away the connection that was cut."""
    while True:
        there = await _passive(lane, f"{queue}.alive")
        found = None if there else await _passive(lane, queue)
        if found and not found.consumer_count:
            return
        await asyncio.sleep(_LOOK)


async def _passive(lane: Lane, queue: str) -> Any:
    """Give the queue as declared, nothing when it is not there; a locked one is there."""
    channel = await lane.open("look")
    try:
        (found,) = await channel.ask(commands.Queue.Declare(queue=queue, passive=True))
    except Refusal as refusal:
        return None if refusal.code == NOT_FOUND else refusal
    await channel.close()
    return found


def _messages(
    channel: Channel, queue: str, number: int, size: int, *, persistent: bool
) -> list[bytes]:
    publish = commands.Basic.Publish(routing_key=queue)
    mode = 2 if persistent else 1
    return [
        encode(
            channel,
            publish,
            content_head(size, delivery_mode=mode, message_id=str(index)),
            make_body(f"{queue}/{index}", size),
            FRAME_MAX,
        )
        for index in range(number)
    ]


async def _take_all(channel: Channel, queue: str, size: int) -> Kept:
    left: list[int] = []
    redelivered = 0
    altered: list[int] = []
    while True:
        (found,) = await channel.ask(commands.Basic.Get(queue=queue, no_ack=True))
        if not isinstance(found, Content):
            return Kept(True, tuple(left), redelivered, tuple(altered))
        number = int(found.properties.message_id or -1)
        left.append(number)
        redelivered += bool(found.method.redelivered)
        if bytes(found.body) != make_body(f"{queue}/{number}", size):
            altered.append(number)


async def put_in_safety(
    lane: Lane, *, durable: bool, persistent: bool, transactional: bool, size: int
) -> str:
    """Publish on a fresh queue, wait for the commit or the confirms, and give the queue."""
    queue = lane.fresh()
    control = await lane.open("control", declare(queue, durable=durable))
    await control.ask(commands.Tx.Select() if transactional else commands.Confirm.Select())
    control.send(*_messages(control, queue, MESSAGES, size, persistent=persistent))
    if transactional:
        await control.ask(commands.Tx.Commit())
    else:
        await control.until(lambda: _confirmed(control) >= MESSAGES)
    await control.close()
    return queue


def _confirmed(channel: Channel) -> int:
    tags: set[int] = set()
    for one in channel.confirms:
        if isinstance(one, commands.Basic.Ack):
            tags |= set(range(1, one.delivery_tag + 1)) if one.multiple else {one.delivery_tag}
    return len(tags)


async def look_after_restart(lane: Lane, queue: str, size: int) -> Kept:
    """Return the messages that a queue has after a restart, and delete the queue."""
    there = await _passive(lane, queue)
    lane.forget(queue)
    if there is None:
        return Kept(there=False)
    control = await lane.open("control")
    kept = await _take_all(control, queue, size)
    await control.ask(commands.Queue.Delete(queue=queue))
    await control.close()
    return kept
