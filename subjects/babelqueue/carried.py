"""What `babelqueue` hands to a broker's client library, seen by a client that only takes notes.

Its transports take a ready-made client, so no broker and no client library is needed for SQS,
Kafka, Pulsar and Redis. Service Bus, Artemis and RabbitMQ build objects of their client library
first; those libraries are extras and not installed here.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

from babelqueue import EnvelopeCodec, ReceivedMessage
from babelqueue.kafka_transport import DEFAULT_RETRY_TIERS_MS, KafkaTransport, retry_topic
from babelqueue.pulsar_transport import PulsarTransport
from babelqueue.redis_transport import RedisTransport
from babelqueue.sqs_transport import SqsTransport
from wire import Given, Result, Unsupported, to_base64, to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["BROKER_OPERATIONS"]

_MESSAGE = EnvelopeCodec.encode(EnvelopeCodec.make("urn:tallystick:probe", {}))
_NEEDS_CLIENT = "babelqueue's {} transport needs its client library, which is not installed here"


def _kafka(tiers_ms: Sequence[int] = ()) -> tuple[KafkaTransport, list[tuple[str, Given]]]:
    produced: list[tuple[str, Given]] = []

    def produce(topic: str, **record: Any) -> None:
        confirm = record.pop("on_delivery", None)
        produced.append((topic, record))
        if confirm:
            confirm(None, MagicMock())

    producer = MagicMock()
    producer.produce.side_effect = produce
    producer.flush.return_value = 0
    transport = KafkaTransport(
        producer=producer, consumer_factory=lambda _topic: MagicMock(), retry_tiers_ms=tiers_ms
    )
    return transport, produced


def _headers(record: Given) -> dict[str, str]:
    return {name: value.decode() for name, value in record["headers"]}


def _project_sqs(body: str) -> Result:
    client = MagicMock()
    SqsTransport(client=client).publish("orders", body)
    sent = client.send_message.call_args.kwargs
    sections = {"message_attributes": sent["MessageAttributes"]}
    return {"sections": sections, "body_base64": to_base64(sent["MessageBody"])}


def _project_kafka(body: str) -> Result:
    transport, produced = _kafka()
    transport.publish("orders", body)
    record = produced[0][1]
    sections = {"headers": _headers(record), "record": {"timestamp": record.get("timestamp")}}
    return {"sections": sections, "body_base64": base64.b64encode(record["value"]).decode()}


def _project_pulsar(body: str) -> Result:
    client = MagicMock()
    PulsarTransport(client=client).publish("orders", body)
    sent = client.create_producer.return_value.send.call_args
    sections = {"properties": sent.kwargs["properties"]}
    return {"sections": sections, "body_base64": base64.b64encode(sent.args[0]).decode()}


def _project_redis(body: str) -> Result:
    client = MagicMock()
    RedisTransport(client=client).publish("orders", body)
    return {"sections": {}, "body_base64": to_base64(client.rpush.call_args.args[1])}


_PROJECTIONS: dict[str, Callable[[str], Result]] = {
    "sqs": _project_sqs,
    "kafka": _project_kafka,
    "pulsar": _project_pulsar,
    "redis": _project_redis,
}


def _project(given: Given) -> Result:
    if given["broker"] not in _PROJECTIONS:
        raise Unsupported(_NEEDS_CLIENT.format(given["broker"]))
    if given.get("options"):
        raise Unsupported(f"options {sorted(given['options'])} are not mapped to babelqueue's")
    return _PROJECTIONS[given["broker"]](to_text(given))


def _delay(given: Given) -> Result:
    if given["broker"] != "sqs":
        raise Unsupported(f"the fields of a delay on {given['broker']} cannot be seen from outside")
    client, fifo = MagicMock(), given.get("queue_type") == "fifo"
    queue = "orders.fifo" if fifo else "orders"
    SqsTransport(client=client, fifo=fifo).publish(
        queue, _MESSAGE, delay_seconds=given["delay_seconds"]
    )
    sent = client.send_message.call_args.kwargs
    return {"fields": {name: sent[name] for name in ("DelaySeconds",) if name in sent}}


def _visibility(given: Given) -> Result:
    if given["broker"] != "sqs":
        raise Unsupported(f"{given['broker']} has no visibility timeout")
    client = MagicMock()
    message = ReceivedMessage(body=_MESSAGE, queue="orders", handle="receipt")
    SqsTransport(client=client).redeliver(message, _MESSAGE, given["delay_seconds"])
    changed = client.change_message_visibility.call_args.kwargs
    return {"visibility_timeout": changed["VisibilityTimeout"]}


def _requested(given: Given) -> Result:
    transport, produced = _kafka(given["tiers_ms"])
    transport.publish_delayed(given["topic"], _MESSAGE, given["delay_ms"])
    return _parked(given, *produced[0])


def _retried(given: Given) -> Result:
    transport, produced = _kafka(given["tiers_ms"])
    body = EnvelopeCodec.encode({**EnvelopeCodec.decode(_MESSAGE), "attempts": given["attempts"]})
    key = base64.b64decode(given["key_base64"]) if "key_base64" in given else None
    message = ReceivedMessage(body=body, queue=given["topic"], handle=MagicMock(), key=key)
    transport.redeliver(message, body, 0.0)
    topic, record = produced[0]
    result = _parked(given, topic, record)
    result["attempts"] = EnvelopeCodec.decode(record["value"].decode())["attempts"]
    if record.get("key") is not None:
        result["key_base64"] = base64.b64encode(record["key"]).decode()
    return result


def _parked(given: Given, topic: str, record: Given) -> Result:
    number = int(topic.rpartition(".")[2])
    tier_ms = given["tiers_ms"][number - 1]
    return {"topic": topic, "tier_ms": tier_ms, "headers": _headers(record)}


def _tier(given: Given) -> Result:
    match given["mode"]:
        case "requested":
            return _requested(given)
        case "retry":
            return _retried(given)
        case "name":
            return {"topic": retry_topic(given["topic"], given["n"])}
        case "default":
            return {"tiers_ms": list(DEFAULT_RETRY_TIERS_MS)}
        case mode:
            raise Unsupported(f"there is no mode {mode!r}")


def _names(given: Given) -> Result:
    if given["broker"] != "sqs":
        raise Unsupported(f"babelqueue names the keys of {given['broker']} inside its transport")
    transport = SqsTransport(client=MagicMock(), fifo=bool(given.get("fifo")))
    name = transport.dead_letter_queue_name(given["queue"], given.get("suffix"))
    return {"keys": {"dead_letter": name}}


def _redis_score(given: Given) -> Result:
    client = MagicMock()
    transport = RedisTransport(client=client, laravel_compat=True, clock=lambda: given["now"])
    transport.publish_delayed("orders", _MESSAGE, given["delay"])
    ((_key, members), _) = client.zadd.call_args
    return {"score": members[_MESSAGE]}


BROKER_OPERATIONS: dict[str, Callable[[Given], Result]] = {
    "project": _project,
    "delay": _delay,
    "visibility": _visibility,
    "tier": _tier,
    "names": _names,
    "redis_score": _redis_score,
}
