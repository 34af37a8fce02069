"""The loop that a competent engineer writes on each client library, with our durability.

Every loop writes the same bytes and native fields, hand-made with msgspec; waits for the same
confirms, `BATCH` at a time; takes up to `TAKE` at once; reads the JSON; and acknowledges after
that, together where the client can. Connections stay open between rounds. `publish` and `consume`
give the seconds that so many messages took.

Kafka and Pulsar hand a message's native fields out only when asked, and a loop does not ask.
`AWARE` has the same loops with that one call more: the contract has a worker read the version there
before it reads the body.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, Final, Protocol
from urllib.parse import parse_qs, urlsplit

import boto3  # type: ignore[import-untyped]
import pulsar  # type: ignore[import-untyped]
import redis
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from transports_amqp import ArtemisLoop, RabbitLoop
from transports_message import BATCH, TAKE, Made, batches, look, make

__all__ = ["AWARE", "BARE", "Bare"]

_PATIENCE: Final = 30.0


class Bare(Protocol):
    """A loop on one client library."""

    def publish(self, count: int) -> float:
        """Publish so many; give the seconds."""

    def consume(self, count: int) -> float:
        """Handle and acknowledge so many; give the seconds."""

    def close(self) -> None:
        """End the connections."""


class RedisLoop:
    """The reliable queue of Redis's own manual: LMOVE to a second list, LREM when done."""

    def __init__(self, url: str, queue: str) -> None:
        self._client = redis.Redis.from_url(url, protocol=2)
        self._queue, self._taken = queue, f"{queue}:taken"

    def publish(self, count: int) -> float:
        start = perf_counter()
        for numbers in batches(count, BATCH):
            self._client.rpush(self._queue, *[make(n).body for n in numbers])
        return perf_counter() - start

    def consume(self, count: int) -> float:
        start, done = perf_counter(), 0
        while done < count:
            with self._client.pipeline(transaction=False) as pipe:
                for _ in range(min(TAKE, count - done)):
                    pipe.lmove(self._queue, self._taken, "LEFT", "RIGHT")
                bodies = [one for one in pipe.execute() if one is not None]
            for body in bodies:
                look(body)
            with self._client.pipeline(transaction=False) as pipe:
                for body in bodies:
                    pipe.lrem(self._taken, 1, body)
                pipe.execute()
            done += len(bodies)
        return perf_counter() - start

    def close(self) -> None:
        self._client.close()


class KafkaLoop:
    """acks=all, idempotent, delivery reports, a commit that is waited for after every batch."""

    def __init__(self, url: str, queue: str, *, aware: bool = False) -> None:
        self._aware = aware
        servers: dict[str, Any] = {"bootstrap.servers": urlsplit(url).netloc}
        admin = AdminClient(servers)
        admin.create_topics([NewTopic(queue, 1, 1)])[queue].result(_PATIENCE)
        self._queue = queue
        self._producer = Producer(
            {**servers, "acks": "all", "enable.idempotence": True, "linger.ms": 2}
        )
        self._consumer = Consumer(
            {
                **servers,
                "group.id": queue,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        self._consumer.subscribe([queue])

    def publish(self, count: int) -> float:
        failures: list[Any] = []

        def report(error: Any, _message: Any) -> None:
            if error is not None:
                failures.append(error)

        start = perf_counter()
        for numbers in batches(count, BATCH):
            for made in map(make, numbers):
                self._producer.produce(
                    self._queue,
                    made.body,
                    headers=[
                        ("bq-job", made.urn.encode()),
                        ("bq-trace-id", made.trace_id.encode()),
                        ("bq-message-id", made.id.encode()),
                        ("bq-schema-version", b"1"),
                        ("bq-source-lang", b"python"),
                        ("bq-attempts", b"0"),
                    ],
                    timestamp=made.created_at,
                    on_delivery=report,
                )
            if self._producer.flush(_PATIENCE) or failures:
                raise SystemExit(f"not every record was confirmed: {failures}")
        return perf_counter() - start

    def consume(self, count: int) -> float:
        start, done = perf_counter(), 0
        while done < count:
            records = self._consumer.consume(min(TAKE, count - done), 1.0)
            for record in records:
                if record.error() is not None:
                    raise SystemExit(record.error())
                if self._aware:
                    record.headers()
                look(record.value() or b"")
            if records:
                self._consumer.commit(message=records[-1], asynchronous=False)
            done += len(records)
        return perf_counter() - start

    def close(self) -> None:
        self._consumer.close()


class SqsLoop:
    """Batches of ten each way."""

    def __init__(self, url: str, queue: str) -> None:
        parts = urlsplit(url)
        self._client = boto3.Session().client(
            "sqs",
            region_name=parts.hostname,
            endpoint_url=parse_qs(parts.query)["endpoint"][0],
            aws_access_key_id="local",
            aws_secret_access_key="local",
        )
        self._url = self._client.create_queue(QueueName=queue)["QueueUrl"]

    def publish(self, count: int) -> float:
        start = perf_counter()
        for numbers in batches(count, 10):
            entries = [_sqs_entry(make(n)) for n in numbers]
            answer = self._client.send_message_batch(QueueUrl=self._url, Entries=entries)
            if answer.get("Failed"):
                raise SystemExit(answer["Failed"])
        return perf_counter() - start

    def consume(self, count: int) -> float:
        start, done = perf_counter(), 0
        while done < count:
            answer = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=min(10, count - done),
                WaitTimeSeconds=1,
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
            messages = answer.get("Messages", ())
            if not messages:
                continue
            for message in messages:
                look(message["Body"].encode())
            entries = [
                {"Id": str(n), "ReceiptHandle": message["ReceiptHandle"]}
                for n, message in enumerate(messages)
            ]
            self._client.delete_message_batch(QueueUrl=self._url, Entries=entries)
            done += len(messages)
        return perf_counter() - start

    def close(self) -> None:
        self._client.close()


def _sqs_entry(made: Made) -> dict[str, Any]:
    texts = {"bq-job": made.urn, "bq-trace-id": made.trace_id, "bq-message-id": made.id}
    numbers = {"bq-schema-version": "1", "bq-created-at": str(made.created_at)}
    return {
        "Id": str(made.number % 10),
        "MessageBody": made.body.decode(),
        "MessageAttributes": {
            **{k: {"DataType": "String", "StringValue": v} for k, v in texts.items()},
            "bq-source-lang": {"DataType": "String", "StringValue": "python"},
            **{k: {"DataType": "Number", "StringValue": v} for k, v in numbers.items()},
        },
    }


class ServiceBusLoop:
    """Batches out; PeekLock, and one completion each, which is all that the client offers.

    The client waits for the answer to each; our transport waits for the last of a batch.
    """

    def __init__(self, url: str, queue: str) -> None:
        self._client = ServiceBusClient.from_connection_string(
            f"Endpoint={url};SharedAccessKeyName=a;SharedAccessKey=b;UseDevelopmentEmulator=true"
        )
        self._sender = self._client.get_queue_sender(queue)
        self._receiver = self._client.get_queue_receiver(queue)

    def publish(self, count: int) -> float:
        start = perf_counter()
        for numbers in batches(count, BATCH):
            batch = self._sender.create_message_batch()
            for made in map(make, numbers):
                batch.add_message(
                    ServiceBusMessage(
                        made.body,
                        subject=made.urn,
                        correlation_id=made.trace_id,
                        message_id=made.id,
                        content_type="application/json",
                        application_properties=_servicebus_properties(made),
                    )
                )
            self._sender.send_messages(batch)
        return perf_counter() - start

    def consume(self, count: int) -> float:
        start, done = perf_counter(), 0
        while done < count:
            messages = self._receiver.receive_messages(min(TAKE, count - done), max_wait_time=1)
            for message in messages:
                look(b"".join(message.body))
                self._receiver.complete_message(message)
            done += len(messages)
        return perf_counter() - start

    def close(self) -> None:
        self._client.close()


def _servicebus_properties(made: Made) -> Any:
    created = {"TYPE": "LONG", "VALUE": made.created_at}
    return {"bq-schema-version": 1, "bq-source-lang": "python", "bq-created-at": created}


class PulsarLoop:
    """A shared subscription; sends that are waited for in batches; an ack for each message."""

    def __init__(self, url: str, queue: str, *, aware: bool = False) -> None:
        self._aware = aware
        self._client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        topic = f"persistent://public/default/{queue}"
        self._consumer = self._client.subscribe(
            topic, queue, consumer_type=pulsar.ConsumerType.Shared,
            initial_position=pulsar.InitialPosition.Earliest,
        )  # fmt: skip
        self._producer = self._client.create_producer(
            topic, block_if_queue_full=True, batching_enabled=True, batching_max_publish_delay_ms=1
        )

    def publish(self, count: int) -> float:
        start = perf_counter()
        for numbers in batches(count, BATCH):
            results: list[Any] = []
            for made in map(make, numbers):
                self._producer.send_async(
                    made.body,
                    lambda result, _: results.append(result),  # noqa: B023 (flushed below)
                    properties={
                        "bq-job": made.urn,
                        "bq-trace-id": made.trace_id,
                        "bq-message-id": made.id,
                        "bq-schema-version": "1",
                        "bq-source-lang": "python",
                        "bq-attempts": "0",
                    },
                )
            self._producer.flush()
            if results.count(pulsar.Result.Ok) != len(numbers):
                raise SystemExit("not every message was confirmed")
        return perf_counter() - start

    def consume(self, count: int) -> float:
        start = perf_counter()
        for _ in range(count):
            message = self._consumer.receive(int(_PATIENCE * 1000))
            if self._aware:
                message.properties()
            look(message.data())
            self._consumer.acknowledge(message)
        return perf_counter() - start

    def close(self) -> None:
        self._client.close()


BARE: Final[dict[str, Callable[[str, str], Bare]]] = {
    "redis": RedisLoop,
    "rabbitmq": RabbitLoop,
    "kafka": KafkaLoop,
    "sqs": SqsLoop,
    "servicebus": ServiceBusLoop,
    "pulsar": PulsarLoop,
    "artemis": ArtemisLoop,
}
AWARE: Final[dict[str, Callable[[str, str], Bare]]] = {
    "kafka": partial(KafkaLoop, aware=True),
    "pulsar": partial(PulsarLoop, aware=True),
}
