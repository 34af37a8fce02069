"""Kafka over confluent-kafka: process, then commit; wait in tier topics.

URL: `kafka://[user:password@]host[:port]`, `kafka+ssl://` for TLS, with the options

    group=babelqueue         the consumer group; `reinject_group` that of the way back
    tiers=5000,30000,...     how long each retry tier waits, in ms (default: the contract's four)
    reinject=1               bring parked records back to work while consuming
    partitions=1 replication=1   for topics that have to be made
    group_protocol=classic   or `consumer` (KIP-848)
    bootstrap=h1:9092,h2:9092    instead of the host
    tls=1                    the same as `kafka+ssl://`; ca, verify: `brokers/tls.py`
    mechanism=PLAIN          how to log in: also SCRAM-SHA-256, SCRAM-SHA-512
    timeout=30               seconds any single call may take

A record is committed when it and all before it in its partition are done. One that is left makes
its partition begin again there, after a pause: order is kept and nothing is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from itertools import groupby
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from tallystick.brokers.kafka.binding import BINDING
from tallystick.brokers.kafka.progress import Partition
from tallystick.brokers.kafka.record import read_frame, write_record
from tallystick.brokers.kafka.settings import ACCESS, read_settings
from tallystick.brokers.tls import find_fault
from tallystick.core.delay import DEFAULT_RETRY_TIERS_MS
from tallystick.core.errors import UsageError
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
    missing_client,
    read_number,
    unreachable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tallystick.brokers.kafka.cluster import Cluster
    from tallystick.brokers.kafka.reinjector import Reinjector

__all__ = ["KafkaTransport", "connect"]

_OPTIONS: Final = (
    "group", "tiers", "reinject", "partitions", "replication", "group_protocol", "reinject_group",
    *ACCESS,
)  # fmt: skip
_PAUSE: Final = 1.0
_JOINING: Final = 10.0
_SESSION_MS: Final = 10_000
_DAY_MS: Final = 86_400_000


class _Reader:
    """One consumer of one topic, and how far it has come."""

    def __init__(self, cluster: Cluster, topic: str, group: str, protocol: str) -> None:
        self.partitions: Final[dict[int, Partition]] = {}
        settings = {
            "group.id": group,
            "group.protocol": protocol,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "max.poll.interval.ms": _DAY_MS,
        }
        if protocol == "classic":  # the other protocol has this from the broker
            settings["session.timeout.ms"] = _SESSION_MS
        self.consumer: Final = cluster.consumer(settings)
        self.consumer.subscribe([topic], on_revoke=self._moved, on_lost=self._moved)

    def hand_out(self, queue: str, messages: list[Any]) -> tuple[list[Delivery], list[Any]]:
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
            taken.append(Delivery(read_frame(message), queue, handle, "", None, group))
        return taken, errors

    def _moved(self, _consumer: Any, revoked: Sequence[Any]) -> None:
        for one in revoked:
            self.partitions.setdefault(one.partition, Partition()).rewind()


class KafkaTransport:
    """Producers and consumers of one cluster, made when they are first needed."""

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
        self._readers: Final[dict[str, _Reader]] = {}
        self._reinjectors: Final[dict[str, Reinjector]] = {}

    def ensure(self, queues: Sequence[str]) -> None:
        """Make the topics that do not exist."""
        with self._talking():
            self._cluster.ensure(queues)

    def send(self, queue: str, frames: Sequence[Frame]) -> None:
        """Produce and wait for every delivery report; a frame may name its tier topic itself."""
        records = [write_record(frame, queue) for frame in frames]
        with self._talking():
            self._cluster.ensure_tiers(sorted({topic for topic, *_ in records} - {queue}))
            self._cluster.produce(records)

    def receive(self, queue: str, limit: int, timeout: float) -> list[Delivery]:
        """Give records that have come, or wait for the first."""
        with self._talking():
            reader = self._reader(queue)
            if not limit:
                held = {n for n, one in reader.partitions.items() if one.resume_at is not None}
                self._cluster.attend(reader.consumer, held)
                return []
            self._resume(reader, queue)
            first = reader.consumer.poll(timeout)
            if first is None:
                return []
            messages = reader.consumer.consume(limit - 1, 0) if limit > 1 else []
            messages.insert(0, first)
            del first
            taken, errors = reader.hand_out(queue, messages)
            if not taken:  # an error never takes records with it: they would be committed over
                for one in errors:
                    self._cluster.is_record(one)
            return taken

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Commit as far as everything before is done."""
        stale = 0
        touched: set[tuple[str, int]] = set()
        for (queue, number, epoch), group in groupby(deliveries, _place):
            offsets = [one.handle[2] for one in group]
            partition = self._find(queue, number, epoch)
            if partition is None:
                stale += len(offsets)
                continue
            partition.finish(*offsets)
            touched.add((queue, number))
        with self._talking():
            for queue, number in touched:
                reader = self._readers[queue]
                position = reader.partitions[number].position()
                self._cluster.commit(reader.consumer, queue, number, position)
        if stale:
            raise lost()

    def release(self, delivery: Delivery, delay: float = 0.0) -> None:
        """Begin the partition again at this record, after the delay."""
        self._rewind(delivery, delay)

    def replace(self, delivery: Delivery, queue: str, frame: Frame) -> None:
        """Produce, wait for the report, then commit."""
        if self._partition(delivery) is None:
            raise lost()
        self.send(queue, [frame])
        self.ack([delivery])

    def leave(self, delivery: Delivery) -> None:
        """Begin the partition again at this record, after a pause."""
        self._rewind(delivery, _PAUSE)

    def give_up(self, delivery: Delivery, reason: str) -> None:  # noqa: ARG002
        """Do the same: Kafka has no policy."""
        self._rewind(delivery, _PAUSE)

    def renew(self, deliveries: Sequence[Delivery]) -> list[Delivery]:  # noqa: ARG002
        """Do nothing: a record is ours as long as its partition is."""
        return []

    def close(self) -> None:
        """Leave the groups; what is not committed is handed out again."""
        for reinjector in self._reinjectors.values():
            reinjector.close()
        self._reinjectors.clear()
        for reader in self._readers.values():
            reader.consumer.close()
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

    def _reader(self, queue: str) -> _Reader:
        if queue not in self._readers:
            self._cluster.ensure([queue])
            if self._reinject_group and not queue.endswith(BINDING.names.suffix):
                self._start_reinjector(queue)
            self._readers[queue] = _Reader(self._cluster, queue, self._group, self._protocol)
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
        partition = self._partition(delivery)
        if partition is None:
            raise lost()
        consumer = self._readers[delivery.queue].consumer
        number = delivery.handle[0]
        with self._talking():
            self._cluster.rewind(
                consumer, delivery.queue, number, partition.rewind(), hold=pause > 0
            )
        partition.resume_at = monotonic() + pause if pause > 0 else None

    def _resume(self, reader: _Reader, queue: str) -> None:
        for number, partition in reader.partitions.items():
            if partition.resume_at is not None and partition.resume_at <= monotonic():
                self._cluster.resume(reader.consumer, queue, number)
                partition.resume_at = None

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


def _place(delivery: Delivery) -> tuple[str, int, int]:
    number, epoch, _ = delivery.handle
    return delivery.queue, number, epoch


def connect(address: Address) -> Callable[[], KafkaTransport]:
    """Give a way to open connections to the cluster that the address names."""
    check_options(address, _OPTIONS)
    timeout = read_number(address, "timeout", 30.0)
    partitions = int(read_number(address, "partitions", 1))
    replication = int(read_number(address, "replication", 1))
    tiers_ms = _read_tiers(address)
    try:
        from tallystick.brokers.kafka.cluster import Cluster  # noqa: PLC0415
    except ImportError as error:
        raise missing_client("kafka", error) from error
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
        raise UsageError(f"tiers is {text!r}, not milliseconds from 1", code="url_option")
    return tiers
