"""The calls of confluent-kafka that a transport needs, each with a timeout.

A produce call succeeds when nothing is left to deliver and no delivery report has an error. Tier
topics are created with the broker's own time stamps, because the wait of a record starts when it is
written to the tier topic (clause 6.5).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
    Uuid,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tallystick.brokers.kafka.record import Record

__all__ = ["Cluster"]

_NEW_TOPICS: Final = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)  # noqa: SLF001
_TIER: Final = {"message.timestamp.type": "LogAppendTime"}
_NO_ID: Final = str(Uuid(0, 0))
_REFUSALS: Final = (KafkaError._AUTHENTICATION, KafkaError._SSL)  # noqa: SLF001


class Cluster:
    """Access to a cluster: a producer and an admin client, created on first use."""

    def __init__(
        self, settings: dict[str, Any], timeout: float, partitions: int, replication: int
    ) -> None:
        self._settings: Final = settings
        self._timeout: Final = timeout
        self._partitions: Final = partitions
        self._replication: Final = replication
        self._producer: Producer | None = None
        self._known: Final[set[str]] = set()
        self.fault = ""
        """What the cluster refused, where the library only says that it has no connection."""

    def again(self) -> Cluster:
        """Return a second access to the same cluster, for another thread."""
        return Cluster(self._settings, self._timeout, self._partitions, self._replication)

    def consumer(self, settings: dict[str, Any]) -> Consumer:
        """Create a consumer."""
        return Consumer({**self._settings, **self._quiet(), **settings})

    def ensure(self, topics: Sequence[str], config: dict[str, str] | None = None) -> None:
        """Create the topics that do not exist."""
        if set(topics) <= self._known:
            return
        admin = AdminClient({**self._settings, **self._quiet()})
        self.fault = ""
        try:
            there = admin.list_topics(timeout=self._timeout).topics
        except KafkaException:
            admin.poll(0)
            raise
        missing = [
            NewTopic(topic, self._partitions, self._replication, config=config or {})
            for topic in topics
            if topic not in there
        ]
        made = admin.create_topics(missing, operation_timeout=self._timeout) if missing else {}
        for future in made.values():
            try:
                future.result(self._timeout)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
        self._known.update(topics)

    def identify(self, topics: Sequence[str]) -> dict[str, str]:
        """Return the id of each topic; a recreated topic has a new id; "" means unknown."""
        admin = AdminClient({**self._settings, **self._quiet()})
        asked = admin.describe_topics(TopicCollection(list(topics)), request_timeout=self._timeout)
        found = {topic: str(one.result(self._timeout).topic_id) for topic, one in asked.items()}
        return {topic: "" if one == _NO_ID else one for topic, one in found.items()}

    def _quiet(self) -> dict[str, Any]:
        return {"log_level": 0, "error_cb": self._note}

    def _note(self, error: KafkaError) -> None:
        if error.code() in _REFUSALS:
            self.fault = error.str()

    def ensure_tiers(self, topics: Sequence[str]) -> None:
        """Create the tier topics that do not exist."""
        self.ensure(topics, _TIER)

    def produce(self, records: Iterable[Record]) -> None:
        """Produce in order, and wait until the broker has confirmed every record."""
        producer = self._producer or self._start_producer()
        failures: list[KafkaError] = []

        def report(error: KafkaError | None, _message: Any) -> None:
            if error is not None:
                failures.append(error)

        for topic, value, key, headers, stamp in records:
            while True:
                try:
                    producer.produce(
                        topic, value, key, on_delivery=report, timestamp=stamp, headers=headers
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
        left = producer.flush(self._timeout)
        if failures:
            raise KafkaException(failures[0])
        if left:
            self._producer = None  # what it still holds may yet arrive: a duplicate, not a loss
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001

    def _start_producer(self) -> Producer:
        self._producer = Producer(
            {
                **self._settings,
                **self._quiet(),
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 2,
                "delivery.report.only.error": True,
                "message.timeout.ms": int(self._timeout * 1000),
            }
        )
        return self._producer

    @staticmethod
    def is_record(message: Any) -> bool:
        """Return a record, None for an event of the topic, or raise an error."""
        error = message.error()
        if error is None:
            return True
        if error.code() in _NEW_TOPICS or error.retriable():
            return False
        raise KafkaException(error)

    def attend(self, consumer: Any, held: Collection[int]) -> None:
        """Poll without taking a record, because a group waits for members that do not poll."""
        places = [one for one in consumer.assignment() if one.partition not in held]
        consumer.pause(places)
        try:
            message = consumer.poll(0)
            if message is not None and self.is_record(message):  # of a partition that is new
                consumer.seek(
                    TopicPartition(message.topic(), message.partition(), message.offset())
                )
        finally:
            consumer.resume(places)  # also what was taken away just now, for when it comes back

    @staticmethod
    def commit(
        consumer: Any, topic: str, positions: Mapping[int, int], *, wait: bool = True
    ) -> None:
        """Commit offsets by partition and wait; or a later poll reports it to `on_commit`."""
        places = [TopicPartition(topic, *position) for position in positions.items()]
        done = consumer.commit(offsets=places, asynchronous=not wait)
        for one in done or ():
            if one.error is not None:
                raise KafkaException(one.error)

    @staticmethod
    def rewind(consumer: Any, topic: str, partition: int, offset: int, *, hold: bool) -> None:
        """Seek a partition back to an offset, and pause it if requested."""
        place = TopicPartition(topic, partition, offset)
        consumer.seek(place)
        if hold:
            consumer.pause([place])

    @staticmethod
    def resume(consumer: Any, topic: str, partition: int) -> None:
        """Resume a paused partition."""
        consumer.resume([TopicPartition(topic, partition)])

    def lag(self, topic: str, group: str) -> int:
        """Count the records that a group has not committed, without joining it."""
        consumer = self.consumer({"group.id": group, "enable.auto.commit": False})
        try:
            known = consumer.list_topics(topic, self._timeout).topics[topic].partitions
            places = [TopicPartition(topic, number) for number in known]
            total = 0
            for place in consumer.committed(places, self._timeout):
                first, last = consumer.get_watermark_offsets(place, self._timeout)
                total += max(last - max(place.offset, first), 0)
            return total
        finally:
            consumer.close()

    def close(self) -> None:
        """Release the producer; all its deliveries have been reported."""
        self._producer = None
