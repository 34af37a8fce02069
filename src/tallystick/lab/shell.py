"""The I/O of the coordinator over pika: it performs the actions of `step` and reports events.

There are two connections: one for control messages, one for the queues of the cases, so that a
refusal there does not end the conversation (IOP-37). Messages to a client's private key are
mandatory: a returned one means that the client has stopped. A broken connection is `Lost`, and the
run ends with a verdict for every case.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from time import monotonic, monotonic_ns, time_ns
from typing import Any, Final

import pika  # type: ignore[import-untyped]
import pika.exceptions  # type: ignore[import-untyped]

from tallystick.core.errors import Rejected, Unavailable
from tallystick.lab.control import EXCHANGE, Control, Kind, read_control, write_control
from tallystick.lab.coordinator import begin, step
from tallystick.lab.instance import QueueSpec
from tallystick.lab.stages import call_off
from tallystick.lab.state import (
    Action,
    Drain,
    Drained,
    Ended,
    Event,
    Garbled,
    Heard,
    Lost,
    Member,
    Plan,
    Prepare,
    Prepared,
    Say,
    State,
    Ticked,
    Unrouted,
)  # fmt: skip

__all__ = ["Place", "conduct"]

_TICK: Final = 0.05
_HEARTBEAT: Final = 30
_TIMEOUT: Final = 30
_REFUSED: Final = (
    pika.exceptions.ChannelClosedByBroker,
    pika.exceptions.ConnectionClosedByBroker,
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the broker is."""

    host: str = "127.0.0.1"
    port: int = 5672
    vhost: str = "/"
    username: str = "guest"
    password: str = "guest"  # noqa: S105 (the default of every AMQP broker)

    def parameters(self) -> pika.ConnectionParameters:
        """Return the connection parameters for pika."""
        return pika.ConnectionParameters(
            self.host,
            self.port,
            self.vhost,
            pika.PlainCredentials(self.username, self.password),
            heartbeat=_HEARTBEAT,
            blocked_connection_timeout=_TIMEOUT,
            socket_timeout=_TIMEOUT,
            connection_attempts=1,
        )


def conduct(
    plan: Plan, place: Place, report: Callable[[State, Action], object]
) -> Mapping[str, Member]:
    """Run a plan to its end; `report` gets every action. Returns the participants."""
    try:
        shell = _Shell(plan, place)
    except (pika.exceptions.AMQPError, OSError) as error:
        raise Unavailable(
            f"no broker answers at {place.host}:{place.port}{place.vhost}: {_words(error)}",
            code="broker_unreachable",
            hint="start one with `tally broker up rabbitmq`, then pass its port with -p",
        ) from error
    try:
        return shell.run(report)
    finally:
        shell.close()


class _Shell:
    def __init__(self, plan: Plan, place: Place) -> None:
        self._plan: Final = plan
        self._place: Final = place
        self._origin: Final = time_ns() - monotonic_ns()
        self._events: deque[Event] = deque()
        self._control = pika.BlockingConnection(place.parameters())
        self._channel = self._control.channel()
        self._queues: Any = None
        self._made: Final[set[str]] = set()
        self._reply_to = self._channel.queue_declare("", exclusive=True).method.queue
        self._channel.add_on_return_callback(self._on_return)
        self._channel.basic_consume(self._reply_to, self._on_message, auto_ack=True)
        self._state, self._actions = begin(plan, monotonic())

    def run(self, report: Callable[[State, Action], object]) -> Mapping[str, Member]:
        """Go on until the plan has ended."""
        while True:
            for action in self._actions:
                self._safely(partial(self._do, action))
                report(self._state, action)
                if isinstance(action, Ended):
                    return self._state.members
            if not self._events:
                self._safely(partial(self._control.process_data_events, _TICK))
                self._keep_queues_alive()
                self._events.append(Ticked(monotonic()))
            self._state, self._actions = step(self._state, self._events.popleft())

    def _time(self) -> int:
        """Return Unix time in ns from a steady clock that was set at the start of the run."""
        return self._origin + monotonic_ns()

    def _safely(self, do: Callable[[], object]) -> None:
        try:
            do()
        except (pika.exceptions.AMQPError, OSError) as error:
            self._events.appendleft(Lost(monotonic(), _words(error)))

    def _do(self, action: Action) -> None:
        match action:
            case Say(control, client):
                self._say(control, client)
            case Prepare(number, queues):
                refusal = self._prepare(queues)
                self._events.append(Prepared(monotonic(), number, refusal))
            case Drain(number, queues):
                self._events.append(Drained(monotonic(), number, self._drain(queues)))
            case _:
                pass

    def _say(self, control: Control, client: str) -> None:
        headers, body = write_control(control)
        if control.kind is Kind.CLOCK_SYNCH:
            headers["T1"] = self._time()
        properties = pika.BasicProperties(
            headers=headers, reply_to=self._reply_to, correlation_id=control.assignment
        )
        key = f"{self._plan.key}.{client}" if client else self._plan.key
        self._channel.basic_publish(EXCHANGE, key, body, properties, mandatory=bool(client))

    def _on_message(self, _channel: Any, _method: Any, properties: Any, body: bytes) -> None:
        stamp = self._time()
        try:
            control = read_control(
                properties.headers or {}, body, str(properties.correlation_id or "")
            )
        except Rejected as why:
            sender = (properties.headers or {}).get("CLIENT_NAME", "somebody")
            self._events.append(Garbled(monotonic(), f"{sender!r} sent it: {why}"))
            return
        self._events.append(Heard(monotonic(), control, stamp))

    def _on_return(self, _channel: Any, method: Any, _properties: Any, _body: bytes) -> None:
        client = str(method.routing_key).removeprefix(f"{self._plan.key}.")
        self._events.append(Unrouted(monotonic(), client))

    def _keep_queues_alive(self) -> None:
        """Answer the heartbeats of the connection that has nothing to do for long."""
        if self._queues is None:
            return
        try:
            self._queues.process_data_events(0)
        except (pika.exceptions.AMQPError, OSError):
            self._queues = None  # the next case that needs queues opens it again, or is lost

    def _own_channel(self) -> Any:
        if self._queues is None or not self._queues.is_open:
            self._queues = pika.BlockingConnection(self._place.parameters())
        return self._queues.channel()

    def _prepare(self, queues: tuple[QueueSpec, ...]) -> str:
        if not queues:
            return ""
        try:
            channel = self._own_channel()
            for queue in queues:
                self._made.add(queue.name)
                channel.queue_declare(queue.name, durable=queue.durable)
                if queue.exchange:
                    channel.queue_bind(queue.name, queue.exchange, queue.key)
            channel.close()
        except _REFUSED as error:
            level = "channel" if isinstance(error, _REFUSED[0]) else "connection"
            return f"{level} {error.reply_code} {error.reply_text}"
        return ""

    def _drain(self, queues: tuple[QueueSpec, ...]) -> int:
        if not queues:
            return 0
        left = self._delete(self._own_channel(), [queue.name for queue in queues])
        self._made.difference_update(queue.name for queue in queues)
        return left

    def _delete(self, channel: Any, queues: Iterable[str]) -> int:
        left = sum(int(channel.queue_delete(queue).method.message_count) for queue in queues)
        channel.close()
        return left

    def close(self) -> None:
        """Close the connections; end the roles and queues of unfinished cases."""
        for connection in (self._queues, self._control):
            if connection is not None and connection.is_open:
                with suppress(pika.exceptions.AMQPError, AttributeError):
                    # it went while we closed it, or pika was interrupted while it opened a channel
                    connection.close()
        calls = [call for number in self._state.live for call in call_off(self._state, number)]
        if calls or self._made:
            with suppress(pika.exceptions.AMQPError, OSError):  # then none is within our reach
                fresh = pika.BlockingConnection(self._place.parameters())
                self._channel = fresh.channel()
                for call in calls:
                    self._say(call.control, call.client)
                for queue in sorted(self._made):
                    with suppress(pika.exceptions.ChannelClosedByBroker):  # it is not there
                        self._delete(fresh.channel(), [queue])
                fresh.close()


def _words(error: BaseException) -> str:
    """Return the innermost text of an error that pika wraps."""
    wrapped = getattr(error, "exception", None)
    inner = (wrapped,) if wrapped else getattr(error, "exceptions", None) or error.args
    if inner and isinstance(inner[-1], BaseException):
        return _words(inner[-1])
    return str(error) or type(error).__name__
