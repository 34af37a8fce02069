"""Clocks over UDP and over the broker, and the reference that answers both (Appendix E).

UDP: bursts of questions without pauses; if no answer arrives, a new question is sent, and answers
to older questions are ignored. Broker: a question is a message to the queue of the reference, and
the answer goes to the queue of the asker. `clocks` decides how often to ask and how to use the
answers. The clock of the reference can be given a known offset, which makes the error measurable.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from itertools import count
from struct import Struct
from time import monotonic_ns, sleep
from typing import Final

from pamqp import commands

from tallystick.core.errors import Unavailable
from tallystick.lab.clocks import Estimate, Sample, fit, intersect, wants_more
from tallystick.lab.probe import content_head
from tallystick.lab.raw import Address, Channel, Gone, Refusal, Wire, encode

__all__ = ["BrokerClock", "UdpClock", "answer_broker", "answer_udp"]

_QUESTION: Final = Struct(">Q")
_ANSWER: Final = Struct(">Qqq")
_FRAME_MAX: Final = 4096


def answer_udp(
    port: int, inject: int, ready: Callable[[int], None], host: str = "127.0.0.1"
) -> None:
    """Answer questions until the process ends; `ready` is called with the port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        try:
            here.bind((host, port))
        except OSError as error:
            raise Unavailable(
                f"cannot listen on {host}:{port}: {error.strerror}",
                code="clock",
                hint="use an address of this machine and a free port; port 0 takes any free one",
            ) from error
        ready(here.getsockname()[1])
        while True:
            packet, peer = here.recvfrom(64)
            there = monotonic_ns() + inject
            if len(packet) == _QUESTION.size:
                (number,) = _QUESTION.unpack(packet)
                here.sendto(_ANSWER.pack(number, there, monotonic_ns() + inject), peer)


class UdpClock:
    """Asks in bursts, so that the rate shows too."""

    def __init__(
        self, host: str, port: int, *, bursts: int = 4, pause: float = 0.05, limit: float = 30.0
    ) -> None:
        self._peer: Final = (host, port)
        self._bursts: Final = bursts
        self._pause: Final = pause
        self._limit: Final = limit

    def estimate(self) -> Estimate:
        """Ask the reference."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
            here.connect(self._peer)
            here.settimeout(0.2)
            bursts: list[list[Sample]] = []
            numbers = count()
            for _ in range(self._bursts):
                if bursts:
                    sleep(self._pause)  # between bursts only: the rate shows over time
                burst: list[Sample] = []
                while wants_more(burst):
                    burst.append(self._ask(here, numbers))
                bursts.append(burst)
        return fit(bursts)

    def _ask(self, here: socket.socket, numbers: Iterator[int]) -> Sample:
        end = monotonic_ns() + int(self._limit * 1e9)
        while monotonic_ns() < end:
            number, sent = next(numbers), monotonic_ns()
            try:
                here.send(_QUESTION.pack(number))
                while monotonic_ns() < end:
                    packet, back = here.recv(64), monotonic_ns()
                    if len(packet) == _ANSWER.size and _ANSWER.unpack(packet)[0] == number:
                        _, there, answered = _ANSWER.unpack(packet)
                        return Sample(sent, there, answered, back)
            except (TimeoutError, ConnectionRefusedError):
                continue
        raise Unavailable(
            f"no clock answers at {self._peer[0]}:{self._peer[1]}",
            code="clock",
            hint="start one with: tally lab clock-reference --udp PORT",
        )


async def answer_broker(
    address: Address, queue: str, inject: int, ready: Callable[[str], None]
) -> None:
    """Answer questions on a queue, until the process ends."""
    try:
        channel = (await Wire.open(address, _FRAME_MAX)).channel()
        await channel.ask(
            commands.Channel.Open(),
            commands.Queue.Declare(queue=queue, exclusive=True),
            commands.Basic.Consume(queue=queue, no_ack=True),
        )
        ready(queue)
        while True:
            await channel.until(lambda: channel.deliveries)
            there = monotonic_ns() + inject
            content = channel.deliveries.pop(0)
            if len(content.body) == _QUESTION.size:
                (number,) = _QUESTION.unpack(bytes(content.body))
                to = content.properties.reply_to or ""
                _send(channel, to, _ANSWER.pack(number, there, monotonic_ns() + inject))
    except (Refusal, Gone, OSError) as error:
        raise Unavailable(f"the connection to the broker is lost: {error}", code="clock") from error


def _send(channel: Channel, to: str, body: bytes, reply_to: str | None = None) -> None:
    head = content_head(len(body), delivery_mode=1, reply_to=reply_to)
    channel.send(encode(channel, commands.Basic.Publish(routing_key=to), head, body, _FRAME_MAX))


class BrokerClock:
    """Asks over the broker, in one burst."""

    def __init__(self, address: Address, queue: str, *, limit: float = 30.0) -> None:
        self._address: Final = address
        self._queue: Final = queue
        self._limit: Final = limit

    def estimate(self) -> Estimate:
        """Ask the reference."""
        try:
            return intersect(asyncio.run(self._burst()))
        except TimeoutError as late:
            raise Unavailable(
                f"no clock answers on the queue {self._queue!r}",
                code="clock",
                hint="check that the clock reference is running",
            ) from late
        except (Refusal, Gone, OSError) as error:
            raise Unavailable(
                f"the connection to the broker is lost: {error}", code="clock"
            ) from error

    async def _burst(self) -> list[Sample]:
        wire = await Wire.open(self._address, _FRAME_MAX)
        try:
            channel = wire.channel()
            async with asyncio.timeout(self._limit):
                _, declared, _ = await channel.ask(
                    commands.Channel.Open(),
                    commands.Queue.Declare(queue="", exclusive=True),
                    commands.Basic.Consume(queue="", no_ack=True),
                )
            burst: list[Sample] = []
            while wants_more(burst):
                async with asyncio.timeout(self._limit):
                    burst.append(await self._ask(channel, declared.queue, len(burst)))
            return burst
        finally:
            wire.cut()
            await wire.ended()

    async def _ask(self, channel: Channel, mine: str, number: int) -> Sample:
        sent = monotonic_ns()
        _send(channel, self._queue, _QUESTION.pack(number), mine)
        await channel.until(lambda: channel.deliveries)
        back = monotonic_ns()
        answer = bytes(channel.deliveries.pop(0).body)
        _, there, answered = _ANSWER.unpack(answer)
        return Sample(sent, there, answered, back)
