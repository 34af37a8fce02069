"""A commit is not waited for, is never forgotten, and says no more than what is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tallystick.brokers.kafka.cluster import Cluster
from tallystick.brokers.kafka.progress import Partition
from tallystick.brokers.kafka.reader import Reader

FAILURE = KafkaError(KafkaError.ILLEGAL_GENERATION)


class Consumer:
    """A client without records: it notes commits, as (offset, waited for), and closes."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.answer = settings["on_commit"]
        self.said: list[tuple[int, bool] | str] = []
        self.refuses = False

    def subscribe(self, _topics: Sequence[str], on_revoke: Any, on_lost: Any) -> None:
        self.revoke, self.lose = on_revoke, on_lost

    def commit(self, offsets: Sequence[Any], *, asynchronous: bool) -> None:
        self.said.append((offsets[0].offset, not asynchronous))
        if self.refuses and not asynchronous:
            raise KafkaException(FAILURE)

    def poll(self, _timeout: float) -> None:
        self.said.append("poll")

    def close(self) -> None:
        self.said.append("close")


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
        reader.partitions[0].finish(offset)
        reader.commit(0)


def answers(offset: int, error: KafkaError | None = None) -> tuple[KafkaError | None, list[Any]]:
    return error, [TopicPartition("q", 0, offset)]


def test_one_commit_is_on_its_way_and_the_next_says_all_that_was_done_since() -> None:
    reader, client = open_reader(7)
    finish(reader, 0, 1, 2, 3)
    assert client.said == [(1, False)]
    client.answer(*answers(1))
    assert reader.take(10, 0) == []
    assert client.said == [(1, False), (4, False), "poll"]


def test_a_broker_that_does_not_answer_is_waited_for_after_a_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tallystick.brokers.kafka.reader._SOON", 0.0)
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
    assert client.said == [(1, False), (1, False)]
    client.answer(*answers(1))
    assert reader.take(10, 0) == []


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


def test_a_last_commit_that_fails_is_logged_and_the_group_is_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reader, client = open_reader(3)
    finish(reader, 0)
    client.refuses = True
    reader.close()
    assert client.said == [(1, False), (1, True), "close"]
    assert "may come again" in caplog.text
