"""The AMQP 1.0 side: connections, links, transfers and the clock (brokers sheet, 10.3 to 10.9).

Every attach is answered with the source and the target of the client. A sending client gets credit
at once. Only ANONYMOUS is offered: the login of Service Bus is the token on `$cbs`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from proton import Condition, Delivery, Handler, ProtonException
from proton.reactor import Container

from tallystick.brokers.servicebus.emulator.attach import Waiting, read_filter
from tallystick.brokers.servicebus.emulator.entity import Entity, Refusal
from tallystick.brokers.servicebus.emulator.outlet import Outlet
from tallystick.brokers.servicebus.emulator.replies import (
    MANAGEMENT,
    Outbox,
    choose_outbox,
    is_request_node,
    reply_to_request,
)
from tallystick.brokers.servicebus.emulator.sections import read_transfer
from tallystick.brokers.servicebus.emulator.space import DEAD, Space, read_path

__all__ = ["Listener", "serve"]

_TICK: Final = 0.05
_CREDIT: Final = 500
_LARGEST: Final = 1 << 20


class Listener(Handler):
    """Applies the events of all connections to the entities."""

    def __init__(self, space: Space) -> None:
        self._space: Final = space
        self._outlets: Final[dict[str, deque[Outlet]]] = {}
        self._waiting: list[Waiting] = []

    def on_reactor_init(self, event: Any) -> None:
        """Start the clock."""
        event.container.schedule(_TICK, self)

    def on_timer_task(self, event: Any) -> None:
        """End locks and sessions, append scheduled messages, serve waiting receivers."""
        event.container.schedule(_TICK, self)
        for name, entity in list(self._space.entities.items()):
            for link in self._space.sessions[name].expire():
                _refuse(link, Refusal("com.microsoft:session-lock-lost", 410, "its lock expired"))
            if entity.tick():
                self._pump(entity)
        self._waiting = [one for one in self._waiting if not self._serve(one)]

    def on_reactor_quiesced(self, event: Any) -> None:  # noqa: ARG002 (proton's signature)
        """Write all changes to disk once, before the answers are sent."""
        self._space.flush()

    def on_connection_bound(self, event: Any) -> None:
        """Offer the one mechanism that all SDKs use."""
        event.transport.sasl().allowed_mechs("ANONYMOUS")

    def on_connection_remote_open(self, event: Any) -> None:
        """Open our side."""
        event.connection.container = "tallystick-servicebus-emulator"
        event.connection.outboxes = []
        event.connection.open()

    def on_connection_remote_close(self, event: Any) -> None:
        """Close our side."""
        event.connection.close()

    def on_session_remote_open(self, event: Any) -> None:
        """Open our side."""
        event.session.open()

    def on_session_remote_close(self, event: Any) -> None:
        """Close our side, and forget its links."""
        self._forget(event.connection, lambda link: link.session == event.session)
        event.session.close()

    def on_transport_closed(self, event: Any) -> None:
        """Forget the links of a closed connection."""
        if event.connection is not None:
            self._forget(event.connection, lambda _: True)

    def on_link_remote_open(self, event: Any) -> None:
        """Attach: a sender to a node, replies of a node, or a receiver of an entity."""
        link = event.link
        link.source.copy(link.remote_source)
        link.target.copy(link.remote_target)
        link.snd_settle_mode = link.remote_snd_settle_mode
        link.rcv_settle_mode = link.remote_rcv_settle_mode
        link.role = None
        node = link.remote_target if link.is_receiver else link.remote_source
        link.path = read_path(node.address)
        if not link.path:
            link.open()
            _refuse(link, Refusal("amqp:not-implemented", 501, "a link needs a node name"))
        elif link.is_receiver:
            link.max_message_size = _LARGEST
            link.open()
            link.flow(_CREDIT)
        elif is_request_node(link.path):
            link.role = Outbox(link)
            link.connection.outboxes.append(link.role)
            link.open()
        else:
            self._attach(link)

    def on_link_remote_close(self, event: Any) -> None:
        """Detach."""
        self._forget(event.connection, lambda link: link == event.link)
        event.link.close()

    on_link_remote_detach = on_link_remote_close

    def on_link_flow(self, event: Any) -> None:
        """Use new credit; a drain uses up the remaining credit."""
        link = event.link
        if link.is_receiver:
            return
        if isinstance(link.role, Outbox):
            link.role.flush()
        elif isinstance(link.role, Outlet):
            self._pump(link.role.entity)
        if link.drain_mode:
            link.drained()

    def on_delivery(self, event: Any) -> None:
        """Process a transfer of a client, or the outcome of one of our deliveries."""
        delivery, link = event.delivery, event.link
        if link.is_sender:
            if isinstance(link.role, Outlet) and delivery.updated:
                link.role.settle(delivery)
                self._pump(link.role.entity)
        elif delivery.readable and not delivery.partial:
            data = bytes(link.recv(delivery.pending) or b"")
            link.advance()
            self._take_in(link, delivery, data)
            if link.credit < _CREDIT // 2:
                link.flow(_CREDIT - link.credit)

    def _take_in(self, link: Any, delivery: Any, data: bytes) -> None:
        outcome, moved = Delivery.ACCEPTED, list[Entity]()
        try:
            if is_request_node(link.path):
                moved = self._reply(link, data)
            else:
                moved = self._space.send(link.path, read_transfer(data))
        except (ValueError, TypeError, ProtonException) as error:  # not what a message looks like
            outcome = Delivery.REJECTED
            delivery.local.condition = Condition("amqp:decode-error", str(error))
        delivery.update(outcome)
        delivery.settle()
        for entity in moved:
            self._pump(entity)

    def _reply(self, link: Any, data: bytes) -> list[Entity]:
        """Answer a request; give the entities that it may have changed."""
        reply, reply_to = reply_to_request(self._space, link.path, data)
        boxes = [box for box in link.connection.outboxes if box.link.path == link.path]
        box = choose_outbox(boxes, reply_to, link.session)
        if box is not None:
            box.put(reply)
        if not link.path.lower().endswith(MANAGEMENT):
            return []
        return self._space.entities_of(link.path[: -len(MANAGEMENT)])

    def _attach(self, link: Any) -> None:
        entity = self._space.find(link.path)
        sessions = self._space.sessions_of(entity)
        wanted = read_filter(link)
        if wanted is None:
            link.open()
            self._add(Outlet(link, entity, sessions, None))
            return
        waiting = Waiting(link, entity, sessions, wanted)
        if not self._serve(waiting):
            self._waiting.append(waiting)

    def _serve(self, waiting: Waiting) -> bool:
        """Give a link its session, or refuse it; say whether it waits no more."""
        try:
            outlet = waiting.serve()
        except Refusal as refusal:
            waiting.link.open()
            _refuse(waiting.link, refusal)
            return True
        if outlet is not None:
            self._add(outlet)
        return outlet is not None

    def _add(self, outlet: Outlet) -> None:
        outlet.link.role = outlet
        self._outlets.setdefault(outlet.entity.path.lower(), deque()).append(outlet)
        self._pump(outlet.entity)

    def _pump(self, entity: Entity) -> None:
        """Hand out what there is, in turn, there and in its dead-letter queue."""
        for path in (entity.path.lower(), entity.path.lower() + DEAD):
            outlets = self._outlets.get(path, deque())
            idle = 0
            while idle < len(outlets):
                idle = 0 if outlets[0].hand_out() else idle + 1
                outlets.rotate(-1)

    def _forget(self, connection: Any, gone: Callable[[Any], bool]) -> None:
        """Let go of links; one that still knew its role would be kept alive by it for ever."""

        def ends(link: Any) -> bool:
            return bool(link.connection == connection and gone(link))

        self._waiting = [one for one in self._waiting if not ends(one.link)]
        for box in [one for one in getattr(connection, "outboxes", ()) if ends(one.link)]:
            connection.outboxes.remove(box)
            box.link.role = None
        for outlets in self._outlets.values():
            for outlet in [one for one in outlets if ends(one.link)]:
                outlets.remove(outlet)
                outlet.link.role = None
                outlet.close()
                self._pump(outlet.entity)


def _refuse(link: Any, refusal: Refusal) -> None:
    link.condition = Condition(refusal.condition, refusal.text)
    link.close()


def serve(space: Space, host: str, port: int) -> None:
    """Listen until the process ends."""
    container = Container(Listener(space))
    container.listen(f"amqp://{host}:{port}")
    container.run()
