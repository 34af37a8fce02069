"""Read a topic without its consumer groups: every partition, from its beginning or from now on.

Partitions are assigned by hand. No group is joined and nothing is committed, so the consumer groups
of the topic are not affected. Partitions that are added later are not seen.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final
from uuid import uuid4

from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from tallystick.brokers.kafka.cluster import Cluster
from tallystick.brokers.kafka.record import read_frame
from tallystick.core.errors import Unavailable
from tallystick.core.frame import Frame
from tallystick.core.tap import Watch

__all__ = ["KafkaTap"]


class KafkaTap:
    """A consumer without a group."""

    def __init__(
        self,
        cluster: Cluster,
        watch: Watch,
        timeout: float,
        talking: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        self._talking: Final = talking
        self._cluster: Final = cluster
        with talking():
            self._consumer: Final = cluster.consumer(
                {"group.id": f"tally-tap-{uuid4().hex}", "enable.auto.commit": False}
            )
            topic = self._consumer.list_topics(watch.queue, timeout).topics[watch.queue]
            if topic.error is not None or not topic.partitions:
                self._consumer.close()
                raise Unavailable(f"there is no topic {watch.queue!r}", code="no_queue")
            self._consumer.assign([self._place(watch, one, timeout) for one in topic.partitions])

    def _place(self, watch: Watch, number: int, timeout: float) -> TopicPartition:
        place = TopicPartition(watch.queue, number, OFFSET_BEGINNING)
        if watch.start == "latest":
            place.offset = self._consumer.get_watermark_offsets(place, timeout)[1]
        return place

    def read(self, limit: int, timeout: float) -> list[Frame]:
        """Give the next records."""
        with self._talking():
            first = self._consumer.poll(timeout)
            if first is None:
                return []
            rest = self._consumer.consume(limit - 1, 0) if limit > 1 else []
            return [read_frame(one) for one in (first, *rest) if self._cluster.is_record(one)]

    def close(self) -> None:
        """End the consumer."""
        self._consumer.close()
