"""Run a circuit on a small model of AMQP 0-9-1, written from the text of the specification.

It has bindings, queues, consumers and transactions, and does not use the rule tables: so running
all 9216 circuits on it checks both. A `Fault` turns it into an impostor, to show that the judgement
can fail: each names one error of a broker or a client.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from tallystick.lab.combinations import BODY_SIZES, Parameters
from tallystick.lab.expected import FRAME_MAX, MESSAGES, Observation

__all__ = ["Fault", "probe_vm"]

_NO_ROUTE, _NO_CONSUMERS = 312, 313
_PAYLOAD: Final = FRAME_MAX - 8


class Fault(StrEnum):
    """The error of an impostor."""

    NONE = "none"
    LOSES_ONE = "loses_one"
    DOUBLES_ONE = "doubles_one"
    REORDERS = "reorders"
    CORRUPTS = "corrupts"
    SHOWS_UNCOMMITTED = "shows_uncommitted"
    FORGETS_MODE = "forgets_mode"
    SHARES_EXCLUSIVE = "shares_exclusive"
    SWALLOWS_RETURNS = "swallows_returns"
    WRONG_CODE = "wrong_code"


@dataclass(frozen=True, slots=True)
class _Message:
    number: int
    mode: int
    body: bytes


@dataclass(slots=True)
class _Queue:
    held: deque[_Message] = field(default_factory=deque)
    consumer: Callable[[_Message], None] | None = None
    no_local_to: str = ""
    """The connection whose own messages the consumer does not take."""

    def takes(self, connection: str) -> bool:
        return self.consumer is not None and self.no_local_to != connection

    def put(self, message: _Message, connection: str) -> None:
        if self.consumer and self.takes(connection):
            self.consumer(message)
        else:
            self.held.append(message)


def probe_vm(
    parameters: Parameters, *, local: bool = False, fault: Fault = Fault.NONE
) -> Observation:
    """Run one circuit in this process and return the observations."""
    queue = _Queue()
    received: list[_Message] = []
    returned: list[int] = []
    second = ""
    if parameters.consumer_out_active:
        queue.consumer = received.append
        queue.no_local_to = ("one" if local else "receiver") if parameters.no_local else ""
        refused = parameters.exclusive and fault is not Fault.SHARES_EXCLUSIVE
        second = "channel 403" if refused else "admitted"
    routes = {"key": queue} if parameters.bind_out_route else {}
    connection = "one" if local else "publisher"
    buffered: list[_Message] = []
    for message in _spoil(_made(parameters, fault), fault):
        if parameters.transactional and fault is not Fault.SHOWS_UNCOMMITTED:
            buffered.append(message)
        else:
            _route(message, parameters, routes, connection, returned)
    early = len(received) + len(returned) + len(queue.held) if parameters.transactional else 0
    for message in buffered:
        _route(message, parameters, routes, connection, returned)
    if fault is Fault.SWALLOWS_RETURNS:
        returned = []
    if fault is Fault.WRONG_CODE:
        returned = [code ^ 1 for code in returned]
    return Observation(
        returned=tuple(returned),
        received=tuple(one.number for one in received),
        depth=len(queue.held),
        early=early,
        delivery_modes=tuple(one.mode for one in received),
        body_frames=tuple(-(-len(one.body) // _PAYLOAD) for one in received),
        altered=tuple(f"message {one.number} at byte 0" for one in received if any(one.body)),
        second_consumer=second,
    )


def _made(parameters: Parameters, fault: Fault) -> list[_Message]:
    size = BODY_SIZES[parameters.message_size]
    mode = 2 if parameters.persistent and fault is not Fault.FORGETS_MODE else 1
    return [_Message(number, mode, bytes(size)) for number in range(MESSAGES)]


def _spoil(messages: list[_Message], fault: Fault) -> list[_Message]:
    first, *rest = messages
    spoilt = {
        Fault.LOSES_ONE: rest,
        Fault.DOUBLES_ONE: [first, *messages],
        Fault.REORDERS: messages[::-1],
        Fault.CORRUPTS: [_Message(first.number, first.mode, b"\x01" + first.body[1:]), *rest],
    }
    return spoilt.get(fault, messages)


def _route(
    message: _Message,
    parameters: Parameters,
    routes: dict[str, _Queue],
    connection: str,
    returned: list[int],
) -> None:
    queue = routes.get("key")
    if queue is None:
        if parameters.mandatory or parameters.immediate:
            returned.append(_NO_ROUTE)
    elif parameters.immediate and not queue.takes(connection):
        returned.append(_NO_CONSUMERS)
    else:
        queue.put(message, connection)
