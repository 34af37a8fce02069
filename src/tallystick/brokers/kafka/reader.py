"""One consumer of one topic: what is out with handlers, and how far it has committed.

A commit is sent and not waited for: handlers go on meanwhile. A commit says all that earlier ones
said, so one that failed is simply sent again with the next. Only a few may be on their way; the
next one waits for its answer, so that no worker runs far ahead of a broker that does not answer.
Before a partition goes to another consumer, and at the end, the last commit is waited for.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaError, KafkaException

from tallystick.brokers.kafka.progress import Partition
from tallystick.brokers.kafka.record import read_frame
from tallystick.core.transport import Delivery

if TYPE_CHECKING:
    from tallystick.brokers.kafka.cluster import Cluster

__all__ = ["Reader"]

_LOG: Final = logging.getLogger("tallystick.kafka")
_SESSION_MS: Final = 10_000
_DAY_MS: Final = 86_400_000
_MOST_UNANSWERED: Final = 4


class Reader:
    """A member of a group that reads one topic."""

    def __init__(self, cluster: Cluster, topic: str, group: str, protocol: str) -> None:
        self.partitions: Final[dict[int, Partition]] = {}
        self._cluster: Final = cluster
        self._topic: Final = topic
        self._unanswered = 0
        self._sent: Final[dict[int, int]] = {}
        """Partition -> the offset that was last sent to be committed, until it is."""
        self._failure: KafkaError | None = None
        settings = {
            "group.id": group,
            "group.protocol": protocol,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "max.poll.interval.ms": _DAY_MS,
            "on_commit": self._answered,
        }
        if protocol == "classic":  # the other protocol has this from the broker
            settings["session.timeout.ms"] = _SESSION_MS
        self._consumer: Final = cluster.consumer(settings)
        self._consumer.subscribe([topic], on_revoke=self._revoked, on_lost=self._lost)

    def attend(self) -> None:
        """Take part in the group and take no record."""
        held = {n for n, one in self.partitions.items() if one.resume_at is not None}
        self._cluster.attend(self._consumer, held)

    def take(self, limit: int, timeout: float) -> list[Delivery]:
        """Give records that have come, or wait for the first; say what commits came to."""
        self._resume()
        self._check()
        first = self._consumer.poll(timeout)
        if first is None:
            self._check()
            return []
        messages = self._consumer.consume(limit - 1, 0) if limit > 1 else []
        messages.insert(0, first)
        del first
        taken, errors = self._hand_out(messages)
        if not taken:  # an error never takes records with it: they would be committed over
            for one in errors:
                self._cluster.is_record(one)
        return taken

    def commit(self, number: int) -> None:
        """Say how far a partition is done."""
        position = self.partitions[number].position()
        wait = self._unanswered >= _MOST_UNANSWERED
        self._sent[number] = position
        self._cluster.commit(self._consumer, self._topic, number, position, wait=wait)
        if wait:
            del self._sent[number]
        else:
            self._unanswered += 1

    def rewind(self, number: int, pause: float) -> None:
        """Begin a partition again at the first record that is not done, after a pause."""
        partition = self.partitions[number]
        start, hold = partition.rewind(), pause > 0
        self._cluster.rewind(self._consumer, self._topic, number, start, hold=hold)
        partition.resume_at = monotonic() + pause if hold else None

    def close(self) -> None:
        """Leave the group; what is not done is handed out again."""
        self._flush(tuple(self._sent))
        self._consumer.close()

    def _hand_out(self, messages: list[Any]) -> tuple[list[Delivery], list[Any]]:
        """Give records to be handled, and note that they are out; errors stand aside.

        The list is emptied on the way: a message of the client is many objects, and hundreds of
        them at once make work for the collector.
        """
        taken: list[Delivery] = []
        errors: list[Any] = []
        messages.reverse()
        while messages:
            message = messages.pop()
            if message.error() is not None:
                errors.append(message)
                continue
            number, offset, key = message.partition(), message.offset(), message.key()
            partition = self.partitions.get(number)
            if partition is None:
                partition = self.partitions[number] = Partition()
            partition.hand_out(offset)
            group = "" if key is None else f"{number}/{key!r}"
            handle = (number, partition.epoch, offset)
            taken.append(Delivery(read_frame(message), self._topic, handle, "", None, group))
        return taken, errors

    def _resume(self) -> None:
        for number, partition in self.partitions.items():
            if partition.resume_at is not None and partition.resume_at <= monotonic():
                self._cluster.resume(self._consumer, self._topic, number)
                partition.resume_at = None

    def _answered(self, error: KafkaError | None, places: Sequence[Any]) -> None:
        self._unanswered -= 1
        for place in places:
            failure = error or place.error
            if failure is not None:
                self._failure = failure
            elif self._sent.get(place.partition) == place.offset:
                del self._sent[place.partition]

    def _check(self) -> None:
        """Send again what could not be committed, and say why it could not."""
        failure, self._failure = self._failure, None
        if failure is None:
            return
        for number in tuple(self._sent):
            self.commit(number)
        raise KafkaException(failure)

    def _revoked(self, _consumer: Any, places: Sequence[Any]) -> None:
        self._flush([one.partition for one in places])
        self._lost(_consumer, places)

    def _lost(self, _consumer: Any, places: Sequence[Any]) -> None:
        for one in places:
            self._sent.pop(one.partition, None)
            self.partitions.setdefault(one.partition, Partition()).rewind()

    def _flush(self, numbers: Collection[int]) -> None:
        """Wait until what these partitions have done is committed."""
        for number in self._sent.keys() & numbers:
            position = self._sent.pop(number)
            try:
                self._cluster.commit(self._consumer, self._topic, number, position)
            except KafkaException as error:
                text = "topic %s: what was done before offset %d may come again: %s"
                _LOG.warning(text, self._topic, position, error)
