"""Move records from the retry topics back to their topics when their delay ends (clause 6.5).

Value and key are unchanged, without the two headers of the wait. A record whose time has not come
blocks its partition; it is committed after the broker has confirmed its copy. A header names the
topic; a record without that header goes to the topic of its tier. If the topic never accepts a
record, the record goes unchanged to the dead-letter topic of its tier, so it does not block the
records behind it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from threading import Event, Thread
from time import time
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tallystick.brokers.kafka.binding import BINDING
from tallystick.brokers.kafka.cluster import Cluster
from tallystick.brokers.kafka.record import NOW
from tallystick.brokers.kafka.reinject import PARKED_HEADERS, return_topic
from tallystick.core.delay import due_at
from tallystick.core.errors import Rejected
from tallystick.core.names import name

__all__ = ["Reinjector"]

_LOG: Final = logging.getLogger("tallystick.kafka")
_TICK: Final = 0.05
_PAUSE: Final = 1.0
_NEVER: Final = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
    KafkaError.TOPIC_EXCEPTION,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.POLICY_VIOLATION,
    KafkaError.INVALID_RECORD,
    KafkaError.MSG_SIZE_TOO_LARGE,
)
"""Errors of a topic that will never accept the record."""


class Reinjector:
    """A thread with its own consumer over the tier topics of one work topic."""

    def __init__(
        self, cluster: Cluster, tiers_ms: Mapping[str, int], group: Mapping[str, str]
    ) -> None:
        self._cluster: Final = cluster
        self._tiers_ms: Final = tiers_ms
        self._group: Final = group
        self._stopping: Final = Event()
        self._thread: Final = Thread(target=self._run, name="tallystick-reinject", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop; records whose time has not come stay in their retry topic."""
        self._stopping.set()
        self._thread.join()
        self._cluster.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._attend()
            except Exception as error:  # noqa: BLE001 (a thread that ends brings nothing back)
                _LOG.warning("the records in retry topics wait; will try again: %s", error)
                self._stopping.wait(_PAUSE)

    def _attend(self) -> None:
        consumer = self._cluster.consumer(
            {**self._group, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        )
        try:
            self._consume(consumer)
        finally:
            consumer.close()

    def _consume(self, consumer: Any) -> None:
        held: dict[tuple[str, int], tuple[int, Any]] = {}

        def revoked(_consumer: Any, places: list[Any]) -> None:
            for place in places:
                held.pop((place.topic, place.partition), None)

        consumer.subscribe(list(self._tiers_ms), on_revoke=revoked, on_lost=revoked)
        while not self._stopping.is_set():
            message = consumer.poll(_TICK)
            if message is not None and self._cluster.is_record(message):
                place = (message.topic(), message.partition())
                if place in held:
                    continue  # it comes again when its partition goes on
                held[place] = (self._due(message), message)
                consumer.pause([TopicPartition(*place)])
            now = int(time() * 1000)
            for place, (due, message) in list(held.items()):
                if due <= now:
                    self._return(consumer, message)
                    held.pop(place, None)
                    consumer.seek(TopicPartition(*place, message.offset() + 1))
                    consumer.resume([TopicPartition(*place)])

    def _due(self, message: Any) -> int:
        kind, stamp = message.timestamp()
        wait = self._tiers_ms[message.topic()]
        return due_at(stamp if kind else None, wait, int(time() * 1000))

    def _return(self, consumer: Any, message: Any) -> None:
        headers = message.headers() or []
        home = message.topic().rpartition(".retry.")[0]
        try:
            topic = return_topic(dict(headers))
        except Rejected as fault:
            _LOG.warning("a record of a retry topic is sent to %s: %s", home, fault)
            topic = home
        kept = [(key, value) for key, value in headers if key not in PARKED_HEADERS]
        record = message.value(), message.key()
        try:
            self._cluster.produce([(topic, *record, kept, NOW)])
        except KafkaException as error:
            if error.args[0].code() not in _NEVER:
                raise
            grave = name(BINDING.names, "dead_letter", home)
            _LOG.error(
                "a record of a retry topic could not be sent to %s and is now in %s: %s",
                topic,
                grave,
                error,
            )
            self._cluster.ensure([grave])
            self._cluster.produce([(grave, *record, headers, NOW)])
        done = {message.partition(): message.offset() + 1}
        self._cluster.commit(consumer, message.topic(), done)
