"""Run one circuit on a real broker with raw frames, and report what was seen (sheet, 5.1).

A lane has its own connections for the coordinator, the publisher, the receiver and the second
consumer (the broker may close the last one when it refuses), and a new queue for every circuit.
Nothing waits for a fixed time: the end of a drain is a sentinel message from another connection, a
synchronous method follows each method without an answer, and the depth is the count of a purge.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from typing import Any, Final, Self

from pamqp import commands, header

from tallystick.lab.combinations import BODY_SIZES, Parameters
from tallystick.lab.expected import FRAME_MAX, MESSAGES, Observation
from tallystick.lab.payload import first_difference
from tallystick.lab.raw import Address, Channel, Content, Gone, Refusal, Wire, encode

__all__ = [
    "EXCHANGE", "NOT_FOUND", "SYNCHRONISE", "Lane", "acknowledgements", "content_head", "declare",
    "make_body", "probe",
]  # fmt: skip

EXCHANGE: Final = "amq.direct"
NOT_FOUND: Final = 404
_SENTINEL: Final = "sentinel"
_SWEEPING: Final = 10.0
SYNCHRONISE: Final = commands.Basic.Qos()
"""Changes nothing, and is answered when all that was published before it has been dealt with."""


def make_body(seed: str, size: int) -> bytes:
    """Give `size` bytes that only this seed gives: nothing big travels in a report."""
    blocks = (sha256(f"{seed}/{index}".encode()).digest() for index in range(-(-size // 32)))
    return b"".join(blocks)[:size]


def content_head(size: int, **properties: Any) -> bytes:
    """Give the payload of a content header frame."""
    return header.ContentHeader(0, size, commands.Basic.Properties(**properties)).marshal()


class Lane:
    """Four connections that are opened when needed, and again after the broker closed one."""

    def __init__(self, address: Address, prefix: str) -> None:
        self.address: Final = address
        self._prefix: Final = prefix
        self._numbers: Final = count()
        self._wires: Final[dict[str, Wire]] = {}
        self._queues: Final[set[str]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.discard()
        with suppress(Refusal, Gone, OSError, TimeoutError):  # then no queue is within our reach
            async with asyncio.timeout(_SWEEPING):
                await self._sweep()
        await self.discard()

    async def wire(self, role: str) -> Wire:
        """Give the connection of a role."""
        wire = self._wires.get(role)
        if wire is None or wire.refusal:
            wire = self._wires[role] = await Wire.open(self.address, FRAME_MAX)
        return wire

    async def open(self, role: str, *more: Any) -> Channel:
        """Give a fresh channel of a role, with more methods in the same burst."""
        channel = (await self.wire(role)).channel()
        await channel.ask(commands.Channel.Open(), *more)
        return channel

    def fresh(self) -> str:
        """Return a new, unused queue name."""
        name = f"{self._prefix}.{next(self._numbers)}"
        self._queues.add(name)
        return name

    def forget(self, queue: str) -> None:
        """Note that a queue is deleted, or must stay after this lane."""
        self._queues.discard(queue)

    async def _sweep(self) -> None:
        """Delete the queues of unfinished circuits."""
        for queue in sorted(self._queues):
            try:
                channel = await self.open("sweep")
                await channel.ask(commands.Queue.Delete(queue=queue))
                await channel.close()
            except Refusal as refusal:
                if refusal.code != NOT_FOUND:
                    raise
        self._queues.clear()

    async def discard(self) -> None:
        """Close every connection, so that the next circuit starts clean."""
        for wire in self._wires.values():
            wire.cut()
            await wire.ended()
        self._wires.clear()


@dataclass(slots=True)
class _Circuit:
    """The connections and queues of one circuit."""

    parameters: Parameters
    queue: str
    control: Channel
    receiver: Channel | None = None
    publisher: Channel | None = None
    second: str = ""
    sentinels: int = 0


def declare(queue: str, *, durable: bool) -> commands.Queue.Declare:
    """Give the declaration of a circuit's queue."""
    return commands.Queue.Declare(queue=queue, durable=durable)


async def probe(lane: Lane, parameters: Parameters, *, local: bool = False) -> Observation:
    """Run one circuit and return the observations."""
    queue = lane.fresh()
    control = await lane.open("control")
    steps: list[Any] = [declare(queue, durable=parameters.durable)]
    if parameters.bind_out_route:
        steps.append(commands.Queue.Bind(queue=queue, exchange=EXCHANGE, routing_key=queue))
    try:
        await control.ask(*steps)
    except Refusal as refusal:
        lane.forget(queue)
        return Observation(refused=refusal.word)
    circuit = _Circuit(parameters, queue, control)
    if parameters.consumer_out_active:
        await _consume(lane, circuit, "publisher" if local else "receiver")
        circuit.second = await _second_consumer(lane, circuit)
    refused, early = await _publish(lane, circuit)
    received = await _drain(circuit)
    await _acknowledge(circuit)
    depth = await _finish(circuit)
    lane.forget(queue)
    return _observe(circuit, refused, received, depth, early)


async def _consume(lane: Lane, circuit: _Circuit, role: str) -> None:
    given = circuit.parameters
    select = [commands.Tx.Select()] if given.ack_mode == "tx" else []
    circuit.receiver = await lane.open(
        role,
        *select,
        commands.Basic.Consume(
            queue=circuit.queue,
            consumer_tag="first",
            no_local=given.no_local,
            no_ack=given.ack_mode == "no_ack",
            exclusive=given.exclusive,
        ),
    )


async def _second_consumer(lane: Lane, circuit: _Circuit) -> str:
    channel = await lane.open("second")
    try:
        await channel.ask(commands.Basic.Consume(queue=circuit.queue, consumer_tag="second"))
    except Refusal as refusal:
        return refusal.word
    await channel.ask(commands.Basic.Cancel("second"))
    await channel.close()
    return "admitted"


async def _publish(lane: Lane, circuit: _Circuit) -> tuple[str, int]:
    """Publish; return the refusal, if any, and the messages visible before the commit."""
    given = circuit.parameters
    early = 0
    select = [commands.Tx.Select()] if given.transactional else []
    publisher = circuit.publisher = await lane.open("publisher", *select)
    try:
        await publisher.ask(*_messages(circuit, publisher), SYNCHRONISE)
        if given.transactional:
            early = await _visible(circuit)
            await publisher.ask(commands.Tx.Commit())
            await publisher.ask(SYNCHRONISE)
    except Refusal as refusal:
        return refusal.word, early
    await publisher.close()
    return "", early


def _messages(circuit: _Circuit, publisher: Channel) -> list[bytes]:
    given = circuit.parameters
    size = BODY_SIZES[given.message_size]
    publish = commands.Basic.Publish(
        exchange=EXCHANGE,
        routing_key=circuit.queue,
        mandatory=given.mandatory,
        immediate=given.immediate,
    )
    mode = 2 if given.persistent else 1
    return [
        encode(
            publisher,
            publish,
            content_head(size, delivery_mode=mode, message_id=str(number)),
            make_body(f"{circuit.queue}/{number}", size),
            FRAME_MAX,
        )
        for number in range(MESSAGES)
    ]


async def _visible(circuit: _Circuit) -> int:
    """Count the visible messages of an open transaction."""
    returned = len(circuit.publisher.returns) if circuit.publisher else 0
    if circuit.receiver:
        return returned + len(await _drain(circuit))
    (purged,) = await circuit.control.ask(commands.Queue.Purge(queue=circuit.queue))
    return returned + int(purged.message_count)


async def _drain(circuit: _Circuit) -> list[Content]:
    """Give all that the receiver has got, up to a sentinel sent now from another connection."""
    receiver = circuit.receiver
    if receiver is None:
        return []
    if receiver.refusal is None:
        circuit.sentinels += 1
        publish = commands.Basic.Publish(routing_key=circuit.queue)
        head = content_head(0, message_id=_SENTINEL)
        circuit.control.send(encode(circuit.control, publish, head, b"", FRAME_MAX))
        await receiver.until(lambda: len(_split(receiver)[1]) >= circuit.sentinels)
    return _split(receiver)[0]


def _split(receiver: Channel) -> tuple[list[Content], list[Content]]:
    messages: list[Content] = []
    sentinels: list[Content] = []
    for content in receiver.deliveries:
        which = sentinels if content.properties.message_id == _SENTINEL else messages
        which.append(content)
    return messages, sentinels


async def _acknowledge(circuit: _Circuit) -> None:
    """Acknowledge as the mode says, and end the receiver."""
    receiver = circuit.receiver
    if receiver is None or receiver.refusal:
        return
    tags = [content.method.delivery_tag for content in receiver.deliveries]
    steps = acknowledgements(circuit.parameters.ack_mode, tags)
    await receiver.ask(*steps)  # nothing may follow a commit before its answer (RabbitMQ: 504)
    await receiver.ask(commands.Basic.Cancel("first"))
    await receiver.close()


def acknowledgements(mode: str, tags: list[int]) -> list[Any]:
    """Give the methods that settle these deliveries in an acknowledge mode."""
    if mode == "no_ack" or not tags:
        return []
    if mode in {"client", "dups_ok"}:
        return [commands.Basic.Ack(tags[-1], multiple=True)]
    each: list[Any] = [commands.Basic.Ack(tag) for tag in tags]
    return [*each, commands.Tx.Commit()] if mode == "tx" else each


async def _finish(circuit: _Circuit) -> int:
    """Return the messages left on the queue, and delete the queue."""
    control = circuit.control
    purged, _ = await control.ask(
        commands.Queue.Purge(queue=circuit.queue), commands.Queue.Delete(queue=circuit.queue)
    )
    await control.close()
    return int(purged.message_count)


def _observe(
    circuit: _Circuit, refused: str, received: list[Content], depth: int, early: int
) -> Observation:
    returned = circuit.publisher.returns if circuit.publisher else []
    numbers = [int(content.properties.message_id or -1) for content in received]
    altered = [
        f"message {number} at byte {offset}"
        for number, content in zip(numbers, received, strict=True)
        if (offset := _first_difference(circuit, number, content)) is not None
    ]
    return Observation(
        refused=refused,
        returned=tuple(content.method.reply_code for content in returned),
        received=tuple(numbers),
        depth=depth,
        early=early,
        delivery_modes=tuple(content.properties.delivery_mode or 0 for content in received),
        body_frames=tuple(content.frames for content in received),
        altered=tuple(altered),
        second_consumer=circuit.second,
    )


def _first_difference(circuit: _Circuit, number: int, content: Content) -> int | None:
    sent = make_body(f"{circuit.queue}/{number}", BODY_SIZES[circuit.parameters.message_size])
    return first_difference(sent, bytes(content.body))
