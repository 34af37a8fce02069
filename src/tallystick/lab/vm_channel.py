"""One channel of the in-process broker: AMQP methods in, AMQP methods out.

Transactions hold publishes and acknowledgements back until the commit; a rollback drops both. A
confirm follows the return of an unroutable message. After a rollback or a close, unacknowledged
messages go back to their queue, in order and marked as redelivered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pamqp.base import Frame
from pamqp.commands import Basic, Channel, Confirm, Exchange, Queue, Tx

from tallystick.lab.vm_broker import EXCHANGES, Broker, Consumer, Fault, Message
from tallystick.lab.vm_broker import Queue as Held

__all__ = ["VmChannel"]

_REASONS: Final = {312: "NO_ROUTE", 313: "NO_CONSUMERS"}

Write = Callable[[Frame], None]
WriteContent = Callable[[Frame, Message], None]


class _DeclareOk(Queue.DeclareOk):
    """Any name the client gave: pamqp refuses some that real brokers take."""

    def validate(self) -> None:
        """Take it as it is."""


class VmChannel:
    """A channel; `source` is its connection."""

    def __init__(
        self, broker: Broker, source: Any, write: Write, write_content: WriteContent
    ) -> None:
        self.source: Final = source
        self._broker: Final = broker
        self._write: Final = write
        self._write_content: Final = write_content
        self._consumers: dict[str, Consumer] = {}
        self._unacked: dict[int, tuple[Held, Message]] = {}
        self._tag = 0
        self._published = 0
        self._confirming = False
        self._transacted = False
        self._open_publishes: list[tuple[Basic.Publish, Message]] = []
        self._open_acks: list[int] = []
        self._prefetch = 0
        self._last = ""
        self._answers: Final[dict[type, Callable[[Any], Frame | None]]] = {
            Exchange.Declare: self._exchange_declare,
            Queue.Declare: self._queue_declare,
            Queue.Bind: self._bind,
            Queue.Unbind: self._unbind,
            Queue.Purge: self._purge,
            Queue.Delete: self._delete,
            Basic.Qos: self._qos,
            Basic.Consume: self._consume,
            Basic.Cancel: self._cancel,
            Basic.Get: self._get,
            Basic.Ack: self._ack,
            Basic.Nack: self._nack,
            Basic.Reject: self._nack,
            Confirm.Select: self._confirm_select,
            Tx.Select: self._tx_select,
            Tx.Commit: self._commit,
            Tx.Rollback: self._rollback,
            Channel.Flow: lambda asked: Channel.FlowOk(asked.active),
        }

    def handle(self, asked: Frame) -> None:
        """Perform a method and answer it."""
        action = self._answers.get(type(asked))
        if action is None:
            raise Fault("connection", 540, f"NOT_IMPLEMENTED - {asked.name}")
        answer = action(asked)
        if answer is not None and not getattr(asked, "nowait", False):
            self._write(answer)
        if isinstance(asked, Basic.Consume):
            self._consumers[asked.consumer_tag].queue.pump()

    def publish(self, asked: Basic.Publish, message: Message) -> None:
        """Take a whole message in."""
        self._broker.route(message.exchange, message.key)
        if self._transacted:
            self._open_publishes.append((asked, message))
            return
        self._put(asked, message)
        if self._confirming:
            self._published += 1
            self._write(Basic.Ack(self._published))

    def _put(self, asked: Basic.Publish, message: Message) -> None:
        code = self._broker.publish(message, mandatory=asked.mandatory, immediate=asked.immediate)
        if code:
            sent_back = Basic.Return(code, _REASONS[code], message.exchange, message.key)
            self._write_content(sent_back, message)

    def has_room(self, consumer: Consumer) -> bool:
        """Say whether the prefetch window is open."""
        return consumer.no_ack or not self._prefetch or len(self._unacked) < self._prefetch

    def deliver(self, consumer: Consumer, message: Message) -> None:
        """Write a delivery."""
        self._tag += 1
        if not consumer.no_ack:
            self._unacked[self._tag] = (consumer.queue, message)
        self._write_content(
            Basic.Deliver(
                consumer.tag, self._tag, message.redelivered, message.exchange, message.key
            ),
            message,
        )

    def close(self) -> None:
        """End the channel: consumers go, unacknowledged messages go back."""
        for consumer in list(self._consumers.values()):
            consumer.queue.consumers.remove(
                consumer
            ) if consumer in consumer.queue.consumers else None
        self._requeue(list(self._unacked))
        for consumer in self._consumers.values():
            if consumer.queue.auto_delete and not consumer.queue.consumers:
                self._broker.delete(consumer.queue)
        self._consumers.clear()

    def _exchange_declare(self, asked: Exchange.Declare) -> Frame:
        if asked.exchange not in EXCHANGES:
            raise Fault("channel", 404, f"NOT_FOUND - no exchange '{asked.exchange}'")
        return Exchange.DeclareOk()

    def _queue_declare(self, asked: Queue.Declare) -> Frame:
        queue = self._broker.declare(
            asked.queue,
            self.source,
            passive=asked.passive,
            exclusive=asked.exclusive,
            auto_delete=asked.auto_delete,
        )
        self._last = queue.name
        return _DeclareOk(queue.name, len(queue.messages), len(queue.consumers))

    def _find(self, name: str) -> Held:
        """Return a queue; an empty name means the last queue that the channel declared."""
        return self._broker.find(name or self._last, self.source)

    def _bind(self, asked: Queue.Bind) -> Frame:
        self._broker.bind(self._find(asked.queue), asked.exchange, asked.routing_key)
        return Queue.BindOk()

    def _unbind(self, asked: Queue.Unbind) -> Frame:
        self._broker.unbind(self._find(asked.queue), asked.exchange, asked.routing_key)
        return Queue.UnbindOk()

    def _purge(self, asked: Queue.Purge) -> Frame:
        queue = self._find(asked.queue)
        count = len(queue.messages)
        queue.messages.clear()
        return Queue.PurgeOk(count)

    def _delete(self, asked: Queue.Delete) -> Frame:
        if (asked.queue or self._last) not in self._broker.queues:
            return Queue.DeleteOk(0)
        return Queue.DeleteOk(self._broker.delete(self._find(asked.queue)))

    def _qos(self, asked: Basic.Qos) -> Frame:
        self._prefetch = asked.prefetch_count
        return Basic.QosOk()

    def _consume(self, asked: Basic.Consume) -> Frame:
        asked.consumer_tag = asked.consumer_tag or f"consumer-{id(self)}-{len(self._consumers)}"
        consumer = Consumer(
            asked.consumer_tag,
            self,
            self._find(asked.queue),
            no_ack=asked.no_ack,
            no_local=asked.no_local,
            exclusive=asked.exclusive,
        )
        self._broker.consume(consumer)
        self._consumers[asked.consumer_tag] = consumer
        return Basic.ConsumeOk(asked.consumer_tag)

    def _cancel(self, asked: Basic.Cancel) -> Frame:
        consumer = self._consumers.pop(asked.consumer_tag or "", None)
        if consumer:
            self._broker.cancel(consumer)
        return Basic.CancelOk(asked.consumer_tag)

    def _get(self, asked: Basic.Get) -> Frame | None:
        queue = self._find(asked.queue)
        if not queue.messages:
            return Basic.GetEmpty()
        message = queue.messages.popleft()
        self._tag += 1
        if not asked.no_ack:
            self._unacked[self._tag] = (queue, message)
        self._write_content(
            Basic.GetOk(
                self._tag, message.redelivered, message.exchange, message.key, len(queue.messages)
            ),
            message,
        )
        return None

    def _tags(self, tag: int, *, multiple: bool) -> list[int]:
        if multiple:
            return [one for one in self._unacked if one <= tag or not tag]
        if tag not in self._unacked:
            raise Fault("channel", 406, f"PRECONDITION_FAILED - unknown delivery tag {tag}")
        return [tag]

    def _ack(self, asked: Basic.Ack) -> None:
        tags = self._tags(asked.delivery_tag or 0, multiple=asked.multiple)
        if self._transacted:
            self._open_acks += tags
        else:
            self._settle(tags)

    def _settle(self, tags: list[int]) -> None:
        queues = {self._unacked.pop(tag)[0]: None for tag in tags if tag in self._unacked}
        for queue in queues:
            queue.pump()

    def _nack(self, asked: Basic.Nack | Basic.Reject) -> None:
        tags = self._tags(asked.delivery_tag or 0, multiple=getattr(asked, "multiple", False))
        if asked.requeue:
            self._requeue(tags)
        else:
            self._settle(tags)

    def _requeue(self, tags: list[int]) -> None:
        queues: dict[Held, None] = {}
        for tag in sorted(tags, reverse=True):
            queue, message = self._unacked.pop(tag)
            queue.put_back(message)
            queues[queue] = None
        for queue in queues:
            queue.pump()

    def _confirm_select(self, _asked: Confirm.Select) -> Frame:
        if self._transacted:
            raise Fault("channel", 406, "PRECONDITION_FAILED - the channel is transactional")
        self._confirming = True
        return Confirm.SelectOk()

    def _tx_select(self, _asked: Tx.Select) -> Frame:
        if self._confirming:
            raise Fault("channel", 406, "PRECONDITION_FAILED - the channel confirms")
        self._transacted = True
        return Tx.SelectOk()

    def _check_transacted(self) -> None:
        if not self._transacted:
            raise Fault("channel", 406, "PRECONDITION_FAILED - channel is not transactional")

    def _commit(self, _asked: Tx.Commit) -> Frame:
        self._check_transacted()
        publishes, acks = self._open_publishes, self._open_acks
        self._open_publishes, self._open_acks = [], []
        for asked, message in publishes:
            self._put(asked, message)
        self._settle(acks)
        return Tx.CommitOk()

    def _rollback(self, _asked: Tx.Rollback) -> Frame:
        self._check_transacted()
        self._open_publishes, self._open_acks = [], []
        return Tx.RollbackOk()
