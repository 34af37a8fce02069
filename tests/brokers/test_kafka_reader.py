"""A commit is not waited for, is never forgotten, and says no more than what is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tallystick.brokers.kafka.cluster import Cluster
from tallystick.brokers.kafka.progress import Partition
from tallystick.brokers.kafka.reader import Reader
from tallystick.brokers.kafka.transport import KafkaTransport
from tallystick.core.errors import Unavailable
from tallystick.core.frame import Frame
from tallystick.core.transport import Address, Delivery

FAILURE = KafkaError(KafkaError.ILLEGAL_GENERATION)
SOON = "tallystick.brokers.kafka.reader._SOON"


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a commit be on its way for longer than any test takes."""
    monkeypatch.setattr(SOON, 60.0)


class Record:
    """One record of partition 0, at an offset."""

    def __init__(self, offset: int) -> None:
        self.offset = lambda: offset

    def partition(self) -> int:
        return 0

    def timestamp(self) -> tuple[int, int]:
        return 1, 1

    def value(self) -> bytes:
        return b"{}"

    def nothing(self) -> None: ...

    error = key = headers = nothing


class Consumer:
    """A client that notes commits, as (offset, waited for), polls, and the end."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.answer = settings["on_commit"]
        self.said: list[tuple[int, bool] | str] = []
        self.last: dict[int, int] = {}
        self.refuses = False
        self.records: list[Record] = []

    def subscribe(self, _topics: Sequence[str], on_revoke: Any, on_lost: Any) -> None:
        self.revoke, self.lose = on_revoke, on_lost

    def commit(self, offsets: Sequence[Any], *, asynchronous: bool) -> None:
        self.said.append((offsets[0].offset, not asynchronous))
        if self.refuses:
            raise KafkaException(FAILURE)
        self.last = {one.partition: one.offset for one in offsets}

    def poll(self, _timeout: float) -> Record | None:
        self.said.append("poll")
        return self.records.pop() if self.records else None

    def close(self) -> None:
        self.said.append("close")
        self.revoke(None, [TopicPartition("q", 0)])


class OneConsumer(Cluster):
    def __init__(self) -> None:
        super().__init__({}, 1, 1, 1)

    def consumer(self, settings: dict[str, Any]) -> Any:
        return Consumer(settings)


def open_reader(records: int) -> tuple[Reader, Any]:
    """Give a reader that has so many records of partition 0 out, and its client."""
    reader = Reader(OneConsumer(), "q", "g", "classic")
    partition = reader.partitions[0] = Partition()
    for offset in range(records):
        partition.hand_out(offset)
    return reader, reader._consumer


def finish(reader: Reader, *offsets: int) -> None:
    for offset in offsets:
        reader.finish(0, [offset])
        reader.commit()


def answers(offset: int, error: KafkaError | None = None) -> tuple[KafkaError | None, list[Any]]:
    return error, [TopicPartition("q", 0, offset)]


def test_one_commit_is_on_its_way_and_the_next_says_all_that_was_done_since() -> None:
    reader, client = open_reader(7)
    finish(reader, 0, 1, 2, 3)
    assert client.said == [(1, False)]
    client.answer(*answers(1))
    assert reader.take(10, 0) == []
    assert client.said == [(1, False), "poll", (4, False)]


def test_a_broker_that_does_not_answer_is_waited_for_after_a_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SOON, 0.0)
    reader, client = open_reader(7)
    finish(reader, 0, 1, 2, 3, 4)
    assert client.said == [(1, False), (2, False), (3, False), (4, False), (5, True)]
    for offset in (1, 2, 3, 4):
        client.answer(*answers(offset))
    finish(reader, 5)
    assert client.said[-1] == (6, False)


def test_a_commit_that_failed_is_told_by_the_next_receive_and_sent_again() -> None:
    reader, client = open_reader(3)
    finish(reader, 0)
    client.answer(*answers(1, FAILURE))
    with pytest.raises(KafkaException):
        reader.take(10, 0)
    assert reader.take(10, 0) == []
    assert client.said == [(1, False), "poll", (1, False)]
    client.answer(*answers(1))
    reader.close()
    assert client.said[3:] == ["close"]


def test_a_commit_that_was_waited_for_in_vain_is_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SOON, 0.0)
    reader, client = open_reader(7)
    finish(reader, 0, 1, 2, 3)
    client.refuses = True
    with pytest.raises(KafkaException):
        finish(reader, 4)
    client.refuses = False
    assert reader.take(10, 0) == []
    assert client.said[4:] == [(5, True), "poll", (5, True)]
    assert reader.take(10, 0) == []
    assert client.said[7:] == ["poll"]


def test_a_commit_that_keeps_failing_is_told_and_keeps_no_record_back() -> None:
    reader, client = open_reader(1)
    client.refuses = True
    with pytest.raises(KafkaException):
        finish(reader, 0)
    with pytest.raises(KafkaException):
        reader.take(1, 0)
    assert client.said == [(1, False), "poll", (1, False)]
    client.records = [Record(1)]
    assert [one.handle[2] for one in reader.take(1, 0)] == [1]
    with pytest.raises(KafkaException):
        reader.take(1, 0)
    client.refuses = False
    assert reader.take(1, 0) == []
    assert client.last == {0: 1}


def test_no_partition_is_forgotten_when_what_many_have_done_cannot_be_committed() -> None:
    reader, client = open_reader(1)
    reader.partitions[1] = Partition()
    reader.partitions[1].hand_out(5)
    transport = KafkaTransport(
        Address("kafka", "kafka"), OneConsumer(), tiers_ms=(), group="g", protocol="classic",
        reinject_group="",
    )  # fmt: skip
    transport._readers["q"] = reader
    client.refuses = True
    with pytest.raises(Unavailable):
        transport.ack(
            [Delivery(Frame(b"{}"), "q", (n, 0, offset)) for n, offset in ((0, 0), (1, 5))]
        )
    client.refuses = False
    assert transport.receive("q", 10, 0) == []
    assert client.last == {0: 1, 1: 6}
    assert client.said == [(1, False), "poll", (1, False)]


def test_a_worker_without_room_sends_what_was_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, client = open_reader(3)
    finish(reader, 0, 1)
    monkeypatch.setattr(OneConsumer, "attend", lambda *_: client.answer(*answers(1)))
    reader.attend()
    assert client.said == [(1, False), (2, False)]


def test_a_partition_goes_to_another_consumer_after_all_that_is_done_was_committed() -> None:
    reader, client = open_reader(3)
    finish(reader, 0, 1)
    client.revoke(None, [TopicPartition("q", 0)])
    assert client.said == [(1, False), (2, True)]
    reader.close()
    assert client.said == [(1, False), (2, True), "close"]


def test_what_was_confirmed_is_not_committed_again_at_the_end() -> None:
    reader, client = open_reader(3)
    finish(reader, 0)
    client.answer(*answers(1))
    reader.close()
    assert client.said == [(1, False), "close"]


def test_nothing_is_committed_for_a_partition_that_was_lost() -> None:
    reader, client = open_reader(3)
    finish(reader, 0, 1)
    client.lose(None, [TopicPartition("q", 0)])
    reader.close()
    assert client.said == [(1, False), "close"]


def test_what_is_done_is_committed_once_at_the_end() -> None:
    reader, client = open_reader(3)
    finish(reader, 0, 1)
    reader.close()
    assert client.said == [(1, False), (2, True), "close"]


def test_a_last_commit_that_fails_is_logged_and_the_group_is_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reader, client = open_reader(3)
    finish(reader, 0)
    client.refuses = True
    reader.close()
    assert client.said == [(1, False), (1, True), "close"]
    assert "may be delivered again" in caplog.text
