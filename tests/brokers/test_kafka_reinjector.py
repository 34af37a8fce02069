"""No parked record stops those behind it, and the way back never ends unheard."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from threading import Event
from time import monotonic
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import KafkaError, KafkaException

from tallystick.brokers.kafka.cluster import Cluster
from tallystick.brokers.kafka.record import Record
from tallystick.brokers.kafka.reinjector import Reinjector
from tallystick.brokers.kafka.transport import KafkaTransport
from tallystick.core.errors import Unavailable
from tallystick.core.frame import Frame
from tallystick.core.transport import Address
from tallystick.runtime.address import link_to

PATIENCE = 60.0


class Parked:
    """A record in a tier, long due."""

    def __init__(self, offset: int, topic: bytes) -> None:
        self._offset, self._topic = offset, topic

    def error(self) -> None:
        return None

    def topic(self) -> str:
        return "orders.retry.1"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        return (1, 1)

    def headers(self) -> list[tuple[str, bytes]]:
        return [("bq-original-topic", self._topic), ("bq-attempts", b"1")]

    def value(self) -> bytes:
        return b"%d" % self._offset

    def key(self) -> None:
        return None


class Consumer:
    """A client that hands out records one by one, and nothing after them."""

    def __init__(self, records: Iterable[Parked]) -> None:
        self._records: Iterator[Parked] = iter(records)

    def poll(self, _timeout: float) -> Parked | None:
        return next(self._records, None)

    def subscribe(self, *_: Any, **__: Any) -> None:
        """Nothing to do."""

    pause = seek = resume = close = subscribe


class Tiers(Cluster):
    """A cluster with one topic that takes nothing, and clients that fail to start at first."""

    def __init__(self, records: Iterable[Parked], failures: int = 0) -> None:
        super().__init__({}, 1, 1, 1)
        self._records, self._failures = records, failures
        self.produced: list[tuple[str, bytes | None, Any]] = []
        self.committed: list[int] = []
        self.done = Event()

    def consumer(self, settings: dict[str, Any]) -> Any:  # noqa: ARG002 (as in the original)
        self._failures -= 1
        if self._failures >= 0:
            raise KafkaException(KafkaError(KafkaError._INVALID_ARG))
        return Consumer(self._records)

    def ensure(self, *_: Any) -> None:
        """Nothing to do."""

    def produce(self, records: Iterable[Record]) -> None:
        for topic, value, _key, headers, _stamp in records:
            if topic == "gone":
                raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
            self.produced.append((topic, value, headers))

    def commit(  # type: ignore[override]
        self, _consumer: Any, _topic: str, positions: dict[int, int]
    ) -> None:
        self.committed.append(positions[0])
        if positions[0] == 2:
            self.done.set()


def bring_back(cluster: Tiers) -> None:
    reinjector = Reinjector(cluster, {"orders.retry.1": 1}, {"group.id": "g"})
    came = cluster.done.wait(PATIENCE)
    reinjector.close()
    assert came


def test_a_record_that_its_topic_never_takes_is_a_dead_letter_and_stops_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = Tiers([Parked(0, b"gone"), Parked(1, b"orders")])
    bring_back(cluster)
    whole = Parked(0, b"gone").headers()
    assert cluster.produced == [
        ("orders.dlq", b"0", whole),
        ("orders", b"1", [("bq-attempts", b"1")]),
    ]
    assert cluster.committed == [1, 2]
    assert "could not be sent to gone and is now in orders.dlq" in caplog.text


@pytest.mark.parametrize("bad", [b"no topic!", b"..", b"a\0b", b"x" * 250, b"\xff"])
def test_a_name_that_no_topic_can_have_means_the_topic_of_the_tier(
    bad: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Tiers([Parked(0, bad), Parked(1, b"orders.v2")])
    bring_back(cluster)
    assert [topic for topic, *_ in cluster.produced] == ["orders", "orders.v2"]
    assert "a record of a retry topic is sent to orders" in caplog.text


def test_a_client_that_cannot_be_made_is_said_and_made_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    cluster = Tiers([Parked(1, b"orders")], failures=1)
    bring_back(cluster)
    assert "the records in retry topics wait; will try again" in caplog.text


def test_a_reader_that_fails_to_start_leaves_one_way_back_and_not_two(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[str] = []

    class Way:
        def __init__(self, *_: Any) -> None:
            started.append("started")

        def close(self) -> None:
            started.append("closed")

    monkeypatch.setattr("tallystick.brokers.kafka.reinjector.Reinjector", Way)
    transport = KafkaTransport(
        Address("kafka", "kafka", "h"), Tiers((), failures=2), tiers_ms=(1,), group="g",
        protocol="classic", reinject_group="back",
    )  # fmt: skip
    for _ in range(2):
        with pytest.raises(Unavailable):
            transport.receive("orders", 1, 0)
    transport.close()
    assert started == ["started", "closed"]


@pytest.mark.xdist_group("brokers")
def test_on_a_real_cluster_a_bad_name_stops_nobody(broker_url: Callable[[str], str]) -> None:
    topic, end = f"parked-{uuid4().hex}", monotonic() + PATIENCE
    options = f"tiers=100&group={topic}&reinject_group={topic}-back"
    transport = link_to(f"{broker_url('kafka')}?{options}").open()
    try:
        transport.ensure([topic])
        for body, home in ((b"bad", b"no topic!"), (b"good", topic.encode())):
            headers = {"bq-original-topic": home}
            parked = Frame(body, {"headers": headers, "record": {"topic": f"{topic}.retry.1"}})
            transport.send(topic, [parked])
        seen: set[bytes] = set()
        while len(seen) < 2 and monotonic() < end:
            seen |= {one.frame.body for one in transport.receive(topic, 10, 1.0)}
        assert seen == {b"bad", b"good"}
    finally:
        transport.close()
