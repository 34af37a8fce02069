"""Kafka over confluent-kafka: process, then commit; wait in tier topics.

URL: `kafka://[user:password@]host[:port]`, `kafka+ssl://` for TLS, with the options

    group=babelqueue         the consumer group; `reinject_group` is that of the reinjector
    tiers=5000,30000,...     delay of each retry tier in ms (default: the four of the contract)
    reinject=1               move records from retry topics back while consuming
    partitions=1 replication=1   for new topics
    group_protocol=classic   or `consumer` (KIP-848)
    bootstrap=h1:9092,h2:9092    instead of the host
    tls=1                    the same as `kafka+ssl://`; ca, verify: `brokers/tls.py`
    mechanism=PLAIN          login mechanism: also SCRAM-SHA-256, SCRAM-SHA-512
    timeout=30               maximum seconds of any single call

A record is committed when it and all records before it in its partition are done. If a record is
left unsettled, its partition starts again there after a pause: the order is kept and no record is
skipped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tallystick.brokers.kafka.binding import BINDING
from tallystick.brokers.kafka.record import write_record
from tallystick.brokers.kafka.settings import ACCESS, read_settings
from tallystick.brokers.tls import find_fault
from tallystick.core.delay import DEFAULT_RETRY_TIERS_MS
from tallystick.core.errors import UsageError
from tallystick.core.extras import importing
from tallystick.core.frame import Frame
from tallystick.core.names import name
from tallystick.core.tap import Tap, Watch
from tallystick.core.transport import (
    Address,
    Capabilities,
    Delivery,
    check_options,
    is_on,
    lost,
    read_number,
    unreachable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tallystick.brokers.kafka.cluster import Cluster
    from tallystick.brokers.kafka.progress import Partition
    from tallystick.brokers.kafka.reader import Reader
    from tallystick.brokers.kafka.reinjector import Reinjector

__all__ = ["KafkaTransport", "connect"]

_OPTIONS: Final = (
    "group", "tiers", "reinject", "partitions", "replication", "group_protocol", "reinject_group",
    *ACCESS,
)  # fmt: skip
_PAUSE: Final = 1.0
_JOINING: Final = 10.0


class KafkaTransport:
    """Producers and consumers of one cluster, created on first use."""

    def __init__(
        self,
        address: Address,
        cluster: Cluster,
        *,
        tiers_ms: tuple[int, ...],
        group: str,
        protocol: str,
        reinject_group: str,
        find_fault: Callable[[], str] = str,
    ) -> None:
        self.capabilities: Final = Capabilities(
            delays=bool(tiers_ms),
            waits=True,
            headers=True,
            ordered=True,
            returns="connection",
            counts=False,
            keyed=True,
            warm_up=_JOINING,
            log=True,
            buffered=True,
            options={"tiers_ms": tiers_ms},
        )
        self._address: Final = address
        self._cluster: Final = cluster
        self._find_fault: Final = find_fault
        self._tiers_ms: Final = tiers_ms
        self._group: Final = group
        self._protocol: Final = protocol
        self._reinject_group: Final = reinject_group
        self._readers: Final[dict[str, Reader]] = {}
        self._reinjectors: Final[dict[str, Reinjector]] = {}

    def ensure(self, queues: Sequence[str]) -> None:
        """Create the topics that do not exist."""
        with self._talking():
            self._cluster.ensure(queues)

    def send(self, queue: str, frames: Sequence[Frame]) -> None:
        """Produce and wait for every delivery report; a frame may name its tier topic itself."""
        tiers = {frame.get("record", "topic") or queue for frame in frames} - {queue}
        with self._talking():
            self._cluster.ensure_tiers(sorted(tiers))
            self._cluster.produce(write_record(frame, queue) for frame in frames)

    def receive(self, queue: str, limit: int, timeout: float) -> list[Delivery]:
        """Return received records, or wait for the first."""
        with self._talking():
            reader = self._reader(queue)
            if limit:
                return reader.take(limit, timeout)
            reader.attend()
            return []

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Commit up to the first record that is not done."""
        stale = 0
        touched: dict[str, Reader] = {}
        done: defaultdict[tuple[str, int, int], list[int]] = defaultdict(list)
        for one in deliveries:
            number, epoch, offset = one.handle
            done[one.queue, number, epoch].append(offset)
        for (queue, number, epoch), offsets in done.items():
            if self._find(queue, number, epoch) is None:
                stale += len(offsets)
                continue
            touched[queue] = self._readers[queue]
            touched[queue].finish(number, offsets)
        with self._talking():
            for reader in touched.values():
                reader.commit()
        if stale:
            raise lost()

    def release(self, delivery: Delivery, delay: float = 0.0) -> None:
        """Seek the partition back to this record, after the delay."""
        self._rewind(delivery, delay)

    def replace(self, delivery: Delivery, queue: str, frame: Frame) -> None:
        """Produce, wait for the report, then commit."""
        if self._partition(delivery) is None:
            raise lost()
        self.send(queue, [frame])
        self.ack([delivery])

    def leave(self, delivery: Delivery) -> None:
        """Seek the partition back to this record, after a pause."""
        self._rewind(delivery, _PAUSE)

    def give_up(self, delivery: Delivery, reason: str) -> None:  # noqa: ARG002
        """Do the same as `leave`: Kafka has no dead-letter policy."""
        self._rewind(delivery, _PAUSE)

    def renew(self, deliveries: Sequence[Delivery]) -> list[Delivery]:  # noqa: ARG002
        """Do nothing: a record stays valid as long as its partition is assigned."""
        return []

    def close(self) -> None:
        """Leave the groups; uncommitted records are delivered again."""
        for reinjector in self._reinjectors.values():
            reinjector.close()
        self._reinjectors.clear()
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()
        self._cluster.close()

    def backlog(self, queue: str) -> int:
        """Count the records after the last commit of the group."""
        with self._talking():
            return self._cluster.lag(queue, self._group)

    def tap(self, watch: Watch) -> Tap:
        """Read a topic without a group."""
        from tallystick.brokers.kafka.tap import KafkaTap  # noqa: PLC0415

        timeout = read_number(self._address, "timeout", 30.0)
        return KafkaTap(self._cluster, watch, timeout, self._talking)

    def _reader(self, queue: str) -> Reader:
        if queue not in self._readers:
            self._cluster.ensure([queue])
            dead = queue.endswith(BINDING.names.suffix)
            if self._reinject_group and not dead and queue not in self._reinjectors:
                self._start_reinjector(queue)
            from tallystick.brokers.kafka.reader import Reader  # noqa: PLC0415

            self._readers[queue] = Reader(self._cluster, queue, self._group, self._protocol)
        return self._readers[queue]

    def _start_reinjector(self, queue: str) -> None:
        from tallystick.brokers.kafka.reinjector import Reinjector  # noqa: PLC0415

        topics = {
            name(BINDING.names, "retry", queue, n=n): wait
            for n, wait in enumerate(self._tiers_ms, start=1)
        }
        if topics:
            self._cluster.ensure_tiers(list(topics))
            group = {"group.id": self._reinject_group, "group.protocol": self._protocol}
            self._reinjectors[queue] = Reinjector(self._cluster.again(), topics, group)

    def _partition(self, delivery: Delivery) -> Partition | None:
        number, epoch, _ = delivery.handle
        return self._find(delivery.queue, number, epoch)

    def _find(self, queue: str, number: int, epoch: int) -> Partition | None:
        reader = self._readers.get(queue)
        partition = reader.partitions.get(number) if reader else None
        return partition if partition is not None and partition.epoch == epoch else None

    def _rewind(self, delivery: Delivery, pause: float) -> None:
        if self._partition(delivery) is None:
            raise lost()
        with self._talking():
            self._readers[delivery.queue].rewind(delivery.handle[0], pause)

    @contextmanager
    def _talking(self) -> Iterator[None]:
        from confluent_kafka import KafkaException  # noqa: PLC0415

        try:
            yield
        except (KafkaException, OSError) as error:
            fault = self._cluster.fault or self._find_fault()
            if not fault and isinstance(error, KafkaException):
                fault = error.args[0].str()
            raise unreachable(self._address, OSError(fault or str(error))) from error


def connect(address: Address) -> Callable[[], KafkaTransport]:
    """Give a way to open connections to the cluster that the address names."""
    check_options(address, _OPTIONS)
    timeout = read_number(address, "timeout", 30.0)
    partitions = int(read_number(address, "partitions", 1))
    replication = int(read_number(address, "replication", 1))
    tiers_ms = _read_tiers(address)
    with importing("kafka"):
        from tallystick.brokers.kafka.cluster import Cluster  # noqa: PLC0415
    settings, tls = read_settings(address)
    reinject_group = address.options.get("reinject_group") or name(
        BINDING.names, "reinject_group", ""
    )
    return lambda: KafkaTransport(
        address,
        Cluster(settings, timeout, partitions, replication),
        tiers_ms=tiers_ms,
        group=address.options.get("group") or name(BINDING.names, "group", ""),
        protocol=address.options.get("group_protocol", "classic"),
        reinject_group=reinject_group if is_on(address, "reinject", default=True) else "",
        find_fault=lambda: find_fault(tls, address.host, address.port or 9092, timeout),
    )


def _read_tiers(address: Address) -> tuple[int, ...]:
    text = address.options.get("tiers")
    if text is None:
        return DEFAULT_RETRY_TIERS_MS
    try:
        tiers = tuple(int(one) for one in text.split(",") if one)
    except ValueError:
        tiers = (0,)
    if any(one < 1 for one in tiers):
        raise UsageError(f"tiers must be milliseconds, 1 or more, not {text!r}", code="url_option")
    return tiers
