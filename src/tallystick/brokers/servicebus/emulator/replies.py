"""Requests and replies on `$cbs` and `<entity>/$management`: which link and which form.

The correlation-id of a reply is the message-id of the request, with the same AMQP type. The reply
goes to a link of the same connection whose source is that node: the link named by reply-to (by
target or by link name), else a link of the same session, else any link.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from proton import Message, int32, symbol

from tallystick.brokers.servicebus.emulator.entity import Refusal
from tallystick.brokers.servicebus.emulator.management import answer
from tallystick.brokers.servicebus.emulator.space import Space

__all__ = ["CBS", "MANAGEMENT", "Outbox", "choose_outbox", "is_request_node", "reply_to_request"]

CBS: Final = "$cbs"
MANAGEMENT: Final = "/$management"
_ACCEPTED: Final = 202

Answer = tuple[dict[str, Any], dict[str, Any] | None]
"""The application properties and the body of a reply."""


def is_request_node(path: str) -> bool:
    """Return whether a node answers requests and holds no messages."""
    return path == CBS or path.lower().endswith(MANAGEMENT)


class Outbox:
    """The replies of one link that wait for credit."""

    def __init__(self, link: Any) -> None:
        self.link: Final = link
        self._waiting: Final[list[bytes]] = []
        self._number = 0

    def put(self, reply: Message) -> None:
        """Send a reply, when there is credit for it."""
        self._waiting.append(bytes(reply.encode()))
        self.flush()

    def flush(self) -> None:
        """Send as many replies as the credit allows, settled."""
        while self._waiting and self.link.credit > 0:
            self._number += 1
            delivery = self.link.delivery(f"{self._number}")
            self.link.stream(self._waiting.pop(0))
            self.link.advance()
            delivery.settle()


def reply_to_request(space: Space, path: str, data: bytes) -> tuple[Message, str]:
    """Answer one request; return the reply and the address that the client named."""
    request = Message()
    request.decode(data)
    status, body = _accept() if path == CBS else _manage(space, path, request)
    reply = Message(body=body, correlation_id=request.id, properties=status)
    return reply, request.reply_to or ""


def _accept() -> Answer:
    text = "Accepted by the emulator, which does not check tokens"
    return {"status-code": int32(_ACCEPTED), "status-description": text}, None


def _manage(space: Space, path: str, request: Message) -> Answer:
    entity = path[: -len(MANAGEMENT)]
    properties: Any = request.properties or {}
    operation = properties.get("operation")
    body: Any = request.body
    try:
        code, found = answer(space, entity, operation, body)
    except Refusal as refusal:
        return {
            "statusCode": int32(refusal.code),
            "statusDescription": refusal.text,
            "errorCondition": symbol(refusal.condition),
        }, {}
    return {"statusCode": int32(code), "statusDescription": "OK"}, found


def choose_outbox(outboxes: Iterable[Outbox], reply_to: str, session: Any) -> Outbox | None:
    """Find the link for a reply."""

    def rank(box: Outbox) -> tuple[bool, bool]:
        named = reply_to in (box.link.remote_target.address, box.link.name)
        return (bool(reply_to) and named, box.link.session == session)

    return max(outboxes, key=rank, default=None)
