"""Nothing ends in silence: not a handler that exits, not a worker that dies, not a record."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError

from tallystick import App
from tallystick.brokers.kafka.cluster import Cluster
from tallystick.brokers.kafka.reinject import return_topic
from tallystick.brokers.kafka.transport import KafkaTransport
from tallystick.brokers.memory.transport import MemoryTransport
from tallystick.core.errors import Rejected, Unavailable
from tallystick.core.transport import Address, Delivery
from tallystick.runtime.retry import Backoff

URN = "urn:babel:a:b"


def test_a_handler_that_exits_is_a_handler_that_failed() -> None:
    app = App("memory://exits", queue="q", concurrency=1, backoff=Backoff())
    ran: list[int] = []

    @app.handler(URN)
    def handle(data: dict[str, Any]) -> None:
        ran.append(data["n"])
        if ran == [0]:
            sys.exit(3)

    for n in range(3):
        app.publish(URN, {"n": n})
    counts = app.run(limit=4, signals=False)
    assert sorted(ran) == [0, 0, 1, 2]
    assert (counts["handled"], counts["retried"]) == (3, 1)


def test_a_worker_that_dies_ends_the_run_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    app = App("memory://dies", queue="a")
    receive = MemoryTransport.receive

    def broken(self: MemoryTransport, queue: str, limit: int, timeout: float) -> list[Delivery]:
        if queue == "a":
            raise ValueError("the client is gone")
        return receive(self, queue, limit, timeout)

    monkeypatch.setattr(MemoryTransport, "receive", broken)
    with pytest.raises(ValueError, match="the client is gone"):
        app.run(["a", "b"], signals=False)


def test_a_run_that_ends_when_idle_does_not_end_well_without_its_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = App("memory://away", queue="a")
    away = Unavailable("nobody answers", code="broker", hint="is it up?")

    def receive(*_: Any) -> list[Delivery]:
        raise away

    monkeypatch.setattr(MemoryTransport, "receive", receive)
    with pytest.raises(Unavailable) as caught:
        app.run(idle=0.01, signals=False)
    assert caught.value is away


def test_a_broker_that_was_away_and_is_back_is_forgiven(monkeypatch: pytest.MonkeyPatch) -> None:
    app = App("memory://back", queue="a")
    receive, asked = MemoryTransport.receive, []

    def once(self: MemoryTransport, queue: str, limit: int, timeout: float) -> list[Delivery]:
        asked.append(queue)
        if len(asked) == 1:
            raise Unavailable("nobody answers", code="broker")
        return receive(self, queue, limit, timeout)

    monkeypatch.setattr(MemoryTransport, "receive", once)
    app.handler(URN)(lambda _: None)
    app.publish(URN, {})
    assert app.run(idle=1, signals=False) == {"handled": 1}


class Message:
    """What a consumer of Kafka hands out: a record, or an error."""

    def __init__(self, offset: int, fault: Any = None) -> None:
        self._offset, self._fault = offset, fault

    def error(self) -> Any:
        return self._fault

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return b"{}"

    def key(self) -> None:
        return None

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return (1, 0)

    def topic(self) -> str:
        return "q"


class Consumer:
    """A consumer of one partition that remembers what was committed."""

    def __init__(self, log: Sequence[Message]) -> None:
        self.log, self.at, self.committed = log, 0, 0

    def subscribe(self, *_: Any, **__: Any) -> None:
        """Nothing to do."""

    def poll(self, _timeout: float) -> Message | None:
        return next(iter(self.consume(1, 0)), None)

    def consume(self, count: int, _timeout: float) -> list[Message]:
        taken = list(self.log[self.at : self.at + count])
        self.at += len(taken)
        return taken

    def commit(self, offsets: Any, **_: Any) -> list[Any]:
        self.committed = offsets[0].offset
        return []

    def close(self) -> None:
        """Nothing to do."""


class OneConsumer(Cluster):
    def __init__(self, consumer: Consumer) -> None:
        super().__init__({}, 1, 1, 1)
        self._one = consumer

    def ensure(self, *_: Any) -> None:
        """Nothing to do."""

    def consumer(self, settings: Any) -> Any:  # noqa: ARG002 (as in the original)
        return self._one


def test_an_error_of_kafka_takes_no_records_with_it() -> None:
    fault = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    log = [Message(0), Message(1), Message(-1001, fault), Message(2), Message(-1001, fault)]
    consumer = Consumer(log)
    transport = KafkaTransport(
        Address("kafka", "kafka", "h"), OneConsumer(consumer), tiers_ms=(), group="g",
        protocol="classic", reinject_group="",
    )  # fmt: skip
    first = transport.receive("q", 3, 0.01)
    assert [one.handle[2] for one in first] == [0, 1]
    transport.ack(first)
    assert consumer.committed == 2
    assert [one.handle[2] for one in transport.receive("q", 1, 0.01)] == [2]
    with pytest.raises(Unavailable):
        transport.receive("q", 1, 0.01)


def test_a_parked_record_whose_topic_is_no_text_is_rejected() -> None:
    with pytest.raises(Rejected):
        return_topic({"bq-original-topic": b"\xff"})
