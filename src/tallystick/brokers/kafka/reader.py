"""One consumer of one topic: its unsettled records, and its committed offsets.

A commit is sent without waiting, so handlers continue. Only one commit is in flight, and the next
includes all records done since, so a slow broker gets fewer commits. A failed commit is sent again
after the next poll, because a consumer that does not poll cannot join its group again. If the
broker does not answer, a later commit waits for it. Before a partition goes to another consumer,
and at the end, the last commit is awaited.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
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
_SOON: Final = 0.1
"""Seconds after which the next commit is sent without waiting for the one before."""


class Reader:
    """A member of a group that reads one topic."""

    def __init__(self, cluster: Cluster, topic: str, group: str, protocol: str) -> None:
        self.partitions: Final[dict[int, Partition]] = {}
        self._cluster: Final = cluster
        self._topic: Final = topic
        self._unanswered = 0
        self._sent_at = 0.0
        self._due: Final[set[int]] = set()
        """Partitions that have done more than was sent."""
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
        """Poll for the group without taking a record."""
        held = {n for n, one in self.partitions.items() if one.resume_at is not None}
        self._cluster.attend(self._consumer, held)
        self.commit()

    def take(self, limit: int, timeout: float) -> list[Delivery]:
        """Return received records, or wait for the first; log the results of commits."""
        self._resume()
        self._check()
        first = self._consumer.poll(timeout)
        try:
            self.commit()
        except KafkaException as error:  # told when no record is at hand
            self._failure = error.args[0]
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

    def finish(self, number: int, offsets: Iterable[int]) -> None:
        """Note that records of a partition are done."""
        self.partitions[number].finish(*offsets)
        self._due.add(number)

    def commit(self) -> None:
        """Commit the finished positions of partitions: now, or with the next commit."""
        waiting = self._unanswered and monotonic() - self._sent_at < _SOON
        if waiting or not self._due:
            return
        positions = {number: self.partitions[number].position() for number in self._due}
        self._sent_at = monotonic()
        wait = self._unanswered >= _MOST_UNANSWERED
        self._cluster.commit(self._consumer, self._topic, positions, wait=wait)
        self._forget(positions)
        if not wait:
            self._sent.update(positions)
            self._unanswered += 1

    def rewind(self, number: int, pause: float) -> None:
        """Seek a partition back to its first unfinished record, after a pause."""
        partition = self.partitions[number]
        start, hold = partition.rewind(), pause > 0
        self._cluster.rewind(self._consumer, self._topic, number, start, hold=hold)
        partition.resume_at = monotonic() + pause if hold else None

    def close(self) -> None:
        """Leave the group; unfinished records are delivered again."""
        self._flush(self.partitions)
        self._consumer.close()

    def _hand_out(self, messages: list[Any]) -> tuple[list[Delivery], list[Any]]:
        """Return records to handle, and mark them as unsettled; errors are collected.

        The list is emptied while it is read: a message of the client is many objects, and hundreds
        of them at once slow the garbage collector.
        """
        taken: list[Delivery] = []
        errors: list[Any] = []
        topic, partition, last = self._topic, Partition(), -1
        messages.reverse()
        while messages:
            message = messages.pop()
            if message.error() is not None:
                errors.append(message)
                continue
            number, offset, frame = message.partition(), message.offset(), read_frame(message)
            if number != last:
                partition, last = self.partitions.setdefault(number, Partition()), number
            partition.hand_out(offset)
            key = frame.sections["record"]["key"]
            group = "" if key is None else f"{number}/{key!r}"
            handle = (number, partition.epoch, offset)
            taken.append(Delivery(frame, topic, handle, "", None, group))
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
        """Say why something could not be committed; it is sent again after the next poll."""
        failure, self._failure = self._failure, None
        if failure is not None:
            self._due.update(self._sent)
            raise KafkaException(failure)

    def _revoked(self, _consumer: Any, places: Sequence[Any]) -> None:
        self._flush([one.partition for one in places])
        self._lost(_consumer, places)

    def _lost(self, _consumer: Any, places: Sequence[Any]) -> None:
        numbers = [one.partition for one in places]
        self._forget(numbers)
        for number in numbers:
            self.partitions.setdefault(number, Partition()).rewind()

    def _forget(self, numbers: Iterable[int]) -> None:
        """Stop committing the present progress of these partitions."""
        for number in numbers:
            self._due.discard(number)
            self._sent.pop(number, None)

    def _flush(self, numbers: Iterable[int]) -> None:
        """Wait until the progress of these partitions is committed; try once."""
        open_ones = (self._due | self._sent.keys()).intersection(numbers)
        positions = {number: self.partitions[number].position() for number in open_ones}
        try:
            if positions:
                self._cluster.commit(self._consumer, self._topic, positions)
        except KafkaException as error:
            text = (
                "topic %s: offsets %s could not be committed, so messages before them may be "
                "delivered again: %s"
            )
            _LOG.warning(text, self._topic, positions, error)
        self._forget(positions)
