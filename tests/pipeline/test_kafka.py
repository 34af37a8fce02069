"""Kafka as input, on a real broker: what is read is what a tap would have captured, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from shutil import copytree
from time import monotonic
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tallystick.core.capture import read_sections, write_sections
from tallystick.core.errors import TallystickError
from tallystick.core.tap import Watch
from tallystick.pipeline import kafka as reading
from tallystick.pipeline import run
from tallystick.pipeline.capture import Record
from tallystick.pipeline.kafka import find_partitions, read_access
from tallystick.pipeline.lake import Lake, open_lake, write_json
from tallystick.pipeline.ranges import check_grown, check_unread, find_new
from tallystick.pipeline.read import read_records
from tallystick.pipeline.sources import Source, split
from tallystick.pipeline.stream import make_stream
from tallystick.runtime.tap import tapping
from tests.pipeline.held import wait_for
from tests.pipeline.planted import plant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBER = count()


@pytest.fixture(scope="session")
def kafka(broker_url: Callable[[str], str]) -> str:
    return broker_url("kafka")


def make_topic(admin: AdminClient, name: str) -> None:
    """Make a topic of three partitions; one of that name may still be on its way out."""
    deadline = monotonic() + 60
    while True:
        try:
            admin.create_topics([NewTopic(name, 3, 1)])[name].result(60)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS or monotonic() > deadline:
                raise
        else:
            return


@pytest.fixture
def topic(kafka: str) -> str:
    name = f"pipeline-{next(NUMBER)}"
    make_topic(AdminClient({"bootstrap.servers": kafka.partition("://")[2]}), name)
    return name


def produce(kafka: str, topic: str, records: list[Record], start: int = 0) -> None:
    producer = Producer({"bootstrap.servers": kafka.partition("://")[2], "linger.ms": 5})
    for number, one in enumerate(records, start):
        headers = read_sections(one.sections or "{}").get("headers", {})
        producer.produce(topic, one.body, key=str(number), headers=headers, partition=number % 3)
    assert producer.flush(60) == 0


def bodies(count: int) -> list[Record]:
    return [one.record for one in plant(count, seed=3, broken=0.05)[1]]


def read_table(parts: Path, name: str) -> Any:
    """Give a table of rows of all parts."""
    return pa.concat_tables([pq.read_table(one) for one in parts.glob(f"*/{name}-*.parquet")])


def read_all(url: str) -> list[Record]:
    return [
        record
        for source in find_partitions(url)
        for part in split(source, 20_000)
        for record in read_records(part)
    ]


def test_a_record_is_the_frame_that_a_tap_captures(kafka: str, topic: str) -> None:
    records = bodies(100)
    produce(kafka, topic, records)
    found = read_all(f"{kafka}/{topic}")
    with tapping(kafka, Watch(queue=topic)) as tap:
        tapped: list[Any] = []
        while len(tapped) < len(records):
            tapped += tap.read(500, 1.0)
    assert sorted((one.body, one.sections) for one in found) == sorted(
        (one.body, write_sections(one.sections)) for one in tapped
    )
    assert {(one.source, one.position) for one in found} == {
        (f"{kafka}/{topic}/{at % 3}", at // 3) for at in range(len(records))
    }
    assert {(one.direction, one.broker, one.queue) for one in found} == {("tapped", "kafka", topic)}


@pytest.mark.parametrize(
    ("milliseconds", "at"),
    [
        (1_763_000_000_123, 1_763_000_000_123_000_000),
        (1_763_000_000_123_456_789, None),
        (-(2**63), None),
    ],
)
def test_a_time_stamp_in_another_unit_is_no_time(
    milliseconds: int, at: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hold no run up by a producer that writes nanoseconds where milliseconds belong."""
    message, consumer = Mock(), Mock()
    message.configure_mock(**{
        "timestamp.return_value": (1, milliseconds), "offset.return_value": 7,
        "value.return_value": b"{}", "key.return_value": None, "headers.return_value": None,
        "error.return_value": None,
    })  # fmt: skip
    consumer.get_watermark_offsets.return_value = (7, 8)
    consumer.consume.return_value = [message]
    monkeypatch.setattr("confluent_kafka.Consumer", lambda _: consumer)
    (part,) = split(Source("kafka://h:9092/t/0", "kafka", 1, None, 7))
    assert [(one.position, one.at) for one in read_records(part)] == [(7, at)]


def test_a_partition_that_ends_before_its_plan_fails_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is lost in silence: a part that is short must not be called whole."""
    end, consumer = Mock(), Mock()
    end.error.return_value = KafkaError(KafkaError._PARTITION_EOF)
    consumer.get_watermark_offsets.return_value = (7, 9)
    consumer.consume.return_value = [end]
    monkeypatch.setattr("confluent_kafka.Consumer", lambda _: consumer)
    monkeypatch.setattr(reading, "_TIMEOUT", -1.0)
    (part,) = split(Source("kafka://h:9092/t/0", "kafka", 2, None, 7))
    end.offset.return_value = 8
    with pytest.raises(TallystickError, match="from offset 7 on, but the topic has 9"):
        list(read_records(part))
    end.offset.return_value = 9
    assert list(read_records(part)) == []


def _ends_at(url: str, end: int) -> bool:
    return find_partitions(url)[0].stop == end


def test_a_record_counts_when_its_transaction_is_committed(kafka: str, topic: str) -> None:
    servers = kafka.partition("://")[2]
    producer = Producer({"bootstrap.servers": servers, "transactional.id": topic})
    producer.init_transactions(60)
    for number, finish in enumerate(("commit_transaction", "abort_transaction")):
        producer.begin_transaction()
        producer.produce(topic, b"%d" % number, partition=0)
        producer.flush(60)
        assert [one.body for one in read_all(f"{kafka}/{topic}")] == [b"0"][:number]
        getattr(producer, finish)(60)
        end = 2 * number + 2  # the broker answers before it has written the mark behind the record
        wait_for(partial(_ends_at, f"{kafka}/{topic}", end), "no mark was written")
        assert [one.body for one in read_all(f"{kafka}/{topic}")] == [b"0"]


def test_what_the_broker_removed_unread_is_a_record_that_says_so(kafka: str, topic: str) -> None:
    produce(kafka, topic, bodies(30))
    (before, *_) = find_partitions(f"{kafka}/{topic}")
    admin = AdminClient({"bootstrap.servers": kafka.partition("://")[2]})
    admin.delete_records([TopicPartition(topic, 0, 6)])[TopicPartition(topic, 0)].result(60)
    gone, *rest = read_records(split(before)[0])
    assert (gone.fault, gone.position) == ("kafka.gone", 0)
    assert "0 to 5" in (gone.reason or "")
    assert [one.position for one in rest] == list(range(6, before.stop))
    (now, *_) = find_partitions(f"{kafka}/{topic}")
    assert now.start == 6
    known = [Source(now.path, "kafka", 3, None)]
    assert [(one.start, one.stop) for one in find_new(known, now)] == [(3, now.stop)]


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("kafka://127.0.0.1:9/x?timeout=1", "broker"),
        ("kafka://127.0.0.1:9092", "input.topic"),
        ("kafka://127.0.0.1:9092/x?group=y", "url_option"),
        ("amqp://127.0.0.1/x", "input.broker"),
    ],
)
def test_a_url_that_leads_nowhere_is_told(url: str, code: str) -> None:
    with pytest.raises(TallystickError) as told:
        find_partitions(url)
    assert told.value.code == code


def test_a_topic_that_is_not_there_is_told(kafka: str) -> None:
    with pytest.raises((TallystickError, KafkaException)) as told:
        find_partitions(f"{kafka}/nobody")
    assert isinstance(told.value, TallystickError)
    assert told.value.code == "input.missing"


def test_a_password_is_not_in_what_is_written_down() -> None:
    prefix, access = read_access("kafka://me:s3cret@host:9092/x?mechanism=SCRAM-SHA-256")
    assert dict(access)["sasl.password"] == "s3cret"
    assert dict(access)["sasl.mechanism"] == "SCRAM-SHA-256"
    source = Source(f"{prefix}x/0", "kafka", 1, None, 0, access)
    assert "s3cret" not in f"{source!r}{source.as_json()}"
    assert source.key == Source(f"{prefix}x/0", "kafka", 1, None).key


def ranges(*bounds: tuple[int, int]) -> Iterator[Source]:
    return (Source("p", "kafka", stop - start, None, start) for start, stop in bounds)


@pytest.mark.parametrize(
    ("known", "log", "new"),
    [
        ([], (5, 9), [(5, 9)]),
        ([(0, 5)], (0, 9), [(5, 9)]),
        ([(0, 5)], (7, 9), [(5, 9)]),
        ([(0, 5)], (0, 5), []),
        ([(0, 2), (4, 6)], (0, 9), [(2, 4), (6, 9)]),
        ([(0, 2), (2, 6)], (1, 6), []),
        ([(0, 5), (8, 9)], (2, 4), []),
    ],
)
def test_what_stands_in_the_lake_is_not_read_again(
    known: list[tuple[int, int]], log: tuple[int, int], new: list[tuple[int, int]]
) -> None:
    found = find_new(list(ranges(*known)), next(ranges(log)))
    assert [(one.start, one.stop) for one in found] == new


@pytest.mark.parametrize("bounds", [(0, 4), (4, 9), (4, 5), (0, 12)])
def test_a_range_that_was_read_since_it_was_planned_is_told(
    bounds: tuple[int, int], tmp_path: Path
) -> None:
    (planned,) = ranges((3, 9))
    check_unread(tmp_path, [planned])
    (read,) = ranges(bounds)
    (tmp_path / read.key).mkdir()
    write_json(tmp_path / read.key / "part.json", {**read.as_json(), "rows": {}})
    with pytest.raises(TallystickError) as told:
        check_unread(tmp_path, [planned])
    assert told.value.code == "lake.changed"


def test_a_log_shorter_than_what_was_read_is_told() -> None:
    with pytest.raises(TallystickError) as told:
        check_grown(list(ranges((0, 5))), next(ranges((0, 4))))
    assert told.value.code == "input.rewound"


@pytest.mark.parametrize(
    ("before", "now", "is_told"),
    [("a", "b", True), ("a", "a", False), ("", "b", False), ("a", "", False)],
)
def test_another_log_under_the_same_name_is_told(before: str, now: str, is_told: bool) -> None:
    (known,), (log,) = (ranges((0, 5)), ranges((0, 9)))
    with pytest.raises(TallystickError) if is_told else nullcontext() as told:
        check_grown([replace(known, identity=before)], replace(log, identity=now))
    assert told is None or told.value.code == "input.replaced"


def test_a_topic_made_anew_is_told_even_when_it_is_longer(
    registry: Path, kafka: str, topic: str, tmp_path: Path
) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.partition("://")[2]})
    url, lake = f"{kafka}/{topic}", tmp_path / "lake"
    produce(kafka, topic, bodies(30))
    plan = run.make_plan([url], registry, lake)
    parts = Lake(lake).part(plan.rules, "")
    for one in plan.fresh:
        (parts / one.key).mkdir(parents=True)
        write_json(parts / one.key / "part.json", {**one.as_json(), "rows": {}})
    assert not run.make_plan([url], registry, lake).fresh
    admin.delete_topics([topic])[topic].result(60)
    make_topic(admin, topic)
    produce(kafka, topic, bodies(60))
    for look in (run.make_plan, make_stream):
        with pytest.raises(TallystickError) as told:
            look([url], registry, lake)
        assert told.value.code == "input.replaced"


def test_a_second_run_reads_only_what_is_new(
    spark: SparkSession, registry: Path, kafka: str, topic: str, tmp_path: Path
) -> None:
    records = bodies(300)
    url, lake = f"{kafka}/{topic}", tmp_path / "lake"
    for start, stop in ((0, 200), (200, len(records))):
        produce(kafka, topic, records[start:stop], start)
        plan = run.make_plan([url], registry, lake)
        assert sum(one.size for one in plan.fresh) == stop - start
        with open_lake(lake) as there:
            run.read_fresh(plan, there, spark, lambda *_: None)
    assert not run.make_plan([url], registry, lake).fresh
    made = read_table(lake / "parts" / plan.rules, "messages")
    assert sorted(made["body"].to_pylist()) == sorted(one.body for one in records)
    assert len(set(zip(*(made[name].to_pylist() for name in ("source", "position")),
                       strict=True))) == len(records)  # fmt: skip


def test_another_registry_judges_what_the_broker_has_long_removed(
    spark: SparkSession, registry: Path, kafka: str, topic: str, tmp_path: Path
) -> None:
    records = bodies(300)
    url, lake = f"{kafka}/{topic}", tmp_path / "lake"
    other = copytree(registry.parent, tmp_path / "other") / registry.name
    schema = other.parent / "schemas" / "orders-created.json"
    schema.write_text(schema.read_text().replace('"type": "object"', '"not": {}', 1))
    admin = AdminClient({"bootstrap.servers": kafka.partition("://")[2]})
    for place, start, stop in ((registry, 0, 200), (other, 200, len(records))):
        produce(kafka, topic, records[start:stop], start)
        plan = run.make_plan([url], place, lake)
        with open_lake(lake) as there:
            run.read_fresh(plan, there, spark, lambda *_: None)
        gone = [TopicPartition(topic, number, 60) for number in range(3)]
        for removed in admin.delete_records(gone).values():
            removed.result(60)
    assert [(one.start, bool(one.copy)) for one in plan.fresh][:2] == [(0, True), (67, False)]
    found = read_table(lake / "parts" / plan.rules, "messages")
    assert sorted(found["body"].to_pylist()) == sorted(one.body for one in records)
    refused = read_table(lake / "parts" / plan.rules, "quarantine")
    assert {"urn:babel:orders:created"} <= set(refused["urn"].to_pylist())
