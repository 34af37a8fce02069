"""Kafka topics as input.

`kafka://[user:password@]host[:port]/topic[,topic]?option=...`: the options are those of the
transport for connection and login (`brokers/kafka/settings.py`).

A partition is a source, and offsets are its positions. Its end is fixed when a run begins; later
records belong to the next run. Only committed records count. A record becomes the frame that a tap
would have captured, with its own time stamp. Records that the broker deleted before they were read
are one quarantined record; a partition that ends too early fails the run. A topic that was deleted
and created again has another id (since Kafka 2.8) and is a different source. No group is joined and
nothing is committed.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from tallystick.brokers.kafka.record import read_frame
from tallystick.brokers.kafka.settings import ACCESS, read_servers, read_settings
from tallystick.brokers.tls import find_fault
from tallystick.core.capture import write_sections
from tallystick.core.capture_columns import LEAST, MOST
from tallystick.core.errors import Unavailable, UsageError
from tallystick.core.extras import importing
from tallystick.core.transport import check_options, read_number, unreachable
from tallystick.pipeline.capture import Record, faulty
from tallystick.pipeline.sources import Access, Source, Split
from tallystick.runtime.address import read_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tallystick.core.transport import Address

__all__ = ["find_partitions", "read_access", "read_partition"]

_BATCH: Final = 4096
_WAIT: Final = 0.5
_TIMEOUT: Final = 30.0
_GROUP: Final = {"group.id": "tally-pipeline", "enable.auto.commit": False, "log_level": 0}
_READ: Final = {
    **_GROUP,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "queued.max.messages.kbytes": 32 << 10,
}


def _address(url: str) -> Address:
    address = read_address(url)
    if address.broker != "kafka":
        raise UsageError(
            f"{address.scheme}:// cannot be read directly",
            code="input.broker",
            hint="record it with `tally capture`, and pass the folder of captures",
        )
    check_options(address, ACCESS)
    if not address.path.strip(","):
        raise UsageError(f"{address}: the URL has no topic", code="input.topic",
                         hint="kafka://host:9092/orders,invoices")  # fmt: skip
    return address


def read_access(url: str) -> tuple[str, Access]:
    """Give the name that the sources of a URL begin with, and how to get in, for any machine."""
    address = _address(url)
    settings, tls = read_settings(address)
    if tls is not None and tls.ca:
        with open(settings.pop("ssl.ca.location"), encoding="utf-8") as file:  # noqa: PTH123
            settings["ssl.ca.pem"] = file.read()
    return f"kafka://{read_servers(address)}/", tuple(settings.items())


def find_partitions(url: str) -> list[Source]:
    """Give every partition of the topics, from its first record to its last committed one."""
    with importing("kafka"):
        from confluent_kafka import KafkaException  # noqa: PLC0415

        from tallystick.brokers.kafka.cluster import Cluster  # noqa: PLC0415
    address = _address(url)
    timeout = read_number(address, "timeout", _TIMEOUT)
    prefix, access = read_access(url)
    cluster = Cluster(dict(access), timeout, 1, 1)
    topics = list(dict.fromkeys(one for one in address.path.split(",") if one))
    try:
        consumer = cluster.consumer({**_GROUP, "isolation.level": "read_committed"})
        try:
            ends = {topic: list(_look(consumer, topic, timeout)) for topic in topics}
            ids = cluster.identify(topics)
            return [
                Source(f"{prefix}{topic}/{number}", "kafka", last - first, None, first, access,
                       identity=ids[topic])
                for topic in topics
                for number, first, last in ends[topic]
            ]  # fmt: skip
        finally:
            consumer.close()
    except KafkaException as error:
        tls = read_settings(address)[1]
        fault = cluster.fault or find_fault(tls, address.host, address.port or 9092, timeout)
        raise unreachable(address, OSError(fault or error.args[0].str())) from error


def _look(consumer: Any, topic: str, timeout: float) -> Iterator[tuple[int, int, int]]:
    from confluent_kafka import TopicPartition  # noqa: PLC0415

    found = consumer.list_topics(topic, timeout).topics[topic]
    if found.error is not None or not found.partitions:
        raise Unavailable(
            f"there is no topic {topic!r}",
            code="input.missing",
            hint="check the topic name in kafka://host:port/topic[,topic]",
        )
    for number in sorted(found.partitions):
        yield number, *consumer.get_watermark_offsets(TopicPartition(topic, number), timeout)


def read_partition(split: Split) -> Iterator[Record]:
    """Give the records of a range of offsets in order."""
    from confluent_kafka import Consumer, TopicPartition  # noqa: PLC0415

    path = split.source.path
    _, topic, number = path.rsplit("/", 2)
    consumer = Consumer({**dict(split.source.access), **_READ})
    try:
        place = TopicPartition(topic, int(number), split.start)
        first, _ = consumer.get_watermark_offsets(place, _TIMEOUT)
        if first > split.start:
            place.offset = min(first, split.stop)
            reason = (
                f"offsets {split.start} to {place.offset - 1} were deleted before they were read"
            )
            yield faulty(path, split.start, b"", "kafka.gone", reason)
        if place.offset < split.stop:
            consumer.assign([place])
            for message in _consume(consumer, path, place.offset, split.stop):
                yield _record(path, topic, message)
    finally:
        consumer.close()


def _consume(consumer: Any, path: str, at: int, stop: int) -> Iterator[Any]:
    """Give messages until the range ends; offsets may have holes.

    A partition that ends before the range may be a copy that lags behind: it has time to catch up.
    """
    from confluent_kafka import KafkaError  # noqa: PLC0415

    moved = monotonic()
    while at < stop:
        for message in consumer.consume(min(_BATCH, stop - at), _WAIT):
            error = message.error()
            if error is None:
                at = message.offset() + 1
                if at > stop:
                    return
                yield message
                moved = monotonic()  # what the reader did meanwhile is no silence
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                if message.offset() >= stop:
                    return
            elif not error.retriable():
                raise Unavailable(f"{path}: {error.str()}", code="input.kafka")
        if monotonic() - moved > _TIMEOUT:
            raise Unavailable(
                f"{path}: no record arrived from offset {at} on, but the topic has {stop}",
                code="input.kafka",
            )


def _record(path: str, topic: str, message: Any) -> Record:
    frame = read_frame(message)
    kind, milliseconds = message.timestamp()
    at = milliseconds * 1_000_000  # producers write what they like: some do in other units
    return Record(
        path, message.offset(), "tapped", "kafka", topic, None,
        at if kind and LEAST <= at <= MOST else None, None, message.offset(), frame.body,
        write_sections(frame.sections),
    )  # fmt: skip
