"""The two roles of the Python client. Each lists what it did, message by message.

Impostors in the tests override single methods.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import pika
from wire import WRITE, Closed, Link, first_difference, long, make_body, tag_table

CHUNK = 64
PROPERTIES = ("content_type", "content_encoding", "delivery_mode", "priority", "correlation_id",
              "reply_to", "expiration", "message_id", "type", "user_id", "app_id")  # fmt: skip


class Role:
    """What both have: parameters, connections, what happened since the last report."""

    def __init__(self, client: Any, parameters: Mapping[str, Any]) -> None:
        self.client, self.p = client, parameters
        self.correlation = f"{client.instance}.{next(client.numbers)}"
        self.requests: asyncio.Queue[tuple[Any, str, Mapping[str, Any]]] = asyncio.Queue()
        self.links: list[Link] = []
        self.messages: list[dict[str, Any]] = []
        self.returned: list[dict[str, Any]] = []
        self.count = self.left = self.started = self.ended = 0
        self.failure: BaseException | None = None
        self.news = asyncio.Event()

    async def open_channel(self) -> tuple[Link, Any]:
        self.links.append(Link(self.client.connection_parameters(), self.news.set))
        return self.links[-1], await self.links[-1].channel()

    async def attempt(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something; keep what went wrong, first of all how the broker closed."""
        try:
            await work
        except Exception as error:  # noqa: BLE001 (whatever it is, it belongs in the report)
            ends = (link.closed.result() for link in self.links if link.closed.done())
            self.failure = next(ends, error)

    async def until(self, ready: Callable[[], bool], seconds: float | None = None) -> None:
        """Wait until something is so, or so long; raise what closed a connection meanwhile."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not ready():
                    for link in self.links:
                        link.check()
                    self.news.clear()
                    await self.news.wait()

    def hash(self, body: bytes) -> str:
        return hashlib.sha256(body).hexdigest() if self.p["check"] == "hash" else ""

    def body(self, sequence: int) -> bytes:
        return make_body(self.p["seed"], sequence, self.p["message_bytes"])

    def report(self) -> dict[str, Any]:
        closed = self.failure.view if isinstance(self.failure, Closed) else None
        told = {
            "messages": self.messages, "returned": self.returned, "left": self.left,
            "started_ns": str(self.started), "ended_ns": str(self.ended), "closed": closed,
            "error": repr(self.failure) if self.failure and not closed else "",
        }  # fmt: skip
        self.messages, self.returned = [], []
        return told


class Sender(Role):
    """Publishes when it is told to."""

    async def begin(self) -> None:
        """Open one connection with a channel for each publisher."""
        link, first = await self.open_channel()
        more = [await link.channel() for _ in range(1, self.p["num_publishers"])]
        self.channels = [first, *more]
        self.tags = [0] * len(self.channels)
        self.unconfirmed: list[set[int]] = [set() for _ in self.channels]
        # Broker-J has confirms and does not say so: pika refuses to ask for them.
        self.confirms = bool(link.connection.publisher_confirms) and not self.p["transactional"]
        for channel, waiting in zip(self.channels, self.unconfirmed, strict=True):
            channel.add_on_return_callback(self.on_return)
            if self.p["transactional"]:
                await link.call(channel.tx_select)
            elif self.confirms:
                await link.call(channel.confirm_delivery, partial(self.on_confirm, waiting))

    def on_confirm(self, waiting: set[int], frame: Any) -> None:
        last, many = frame.method.delivery_tag, frame.method.multiple
        waiting.difference_update([one for one in waiting if one <= last] if many else [last])
        if not waiting:
            self.news.set()

    def on_return(self, _channel: Any, method: Any, properties: Any, _body: bytes) -> None:
        told = {"code": method.reply_code, "headers": tag_table(properties.headers)}
        self.returned.append(told)

    async def start(self, fields: Mapping[str, Any]) -> None:
        self.started = time.time_ns()
        numbers = range(fields["FIRST"], fields["FIRST"] + fields["MESSAGE_COUNT"])
        await asyncio.gather(*(self.send(one, numbers) for one in range(len(self.channels))))
        self.ended = time.time_ns()

    async def send(self, publisher: int, numbers: range) -> None:
        """Send one publisher's batch and wait until the broker has it."""
        link, channel = self.links[0], self.channels[publisher]
        rate, began = self.p["outgoing_rate"], time.monotonic()
        for done, sequence in enumerate(numbers, start=1):
            self.send_one(publisher, sequence)
            if rate:
                await asyncio.sleep(max(0.0, began + done / rate - time.monotonic()))
            elif done % CHUNK == 0:
                await asyncio.sleep(0)
            if self.p["transactional"] and done % self.p["tx_batch_size"] == 0:
                await link.call(channel.tx_commit)
        if self.p["transactional"]:
            await link.call(channel.tx_commit)
        await self.until(lambda: not self.unconfirmed[publisher])
        await link.call(channel.basic_qos, prefetch_count=0)

    def send_one(self, publisher: int, sequence: int) -> None:
        headers, properties, body = self.make(publisher, sequence)
        self.publish(publisher, sequence, pika.BasicProperties(headers=headers, **properties), body)
        told = {"publisher": publisher, "sequence": sequence, "sha256": self.hash(body)}
        self.messages.append(told)
        self.count += 1

    def publish(self, publisher: int, sequence: int, properties: Any, body: bytes) -> None:
        place = self.p["destinations"][(publisher + sequence) % len(self.p["destinations"])]
        self.channels[publisher].basic_publish(
            place["exchange"], place["key"], body, properties, mandatory=self.p["mandatory"]
        )
        if self.confirms:
            self.tags[publisher] += 1
            self.unconfirmed[publisher].add(self.tags[publisher])

    def make(self, publisher: int, sequence: int) -> tuple[dict[str, Any], dict[str, Any], bytes]:
        """Give headers, properties and body of one message."""
        if envelopes := self.p["envelopes"]:
            return project(base64.b64decode(envelopes[sequence % len(envelopes)]))
        headers = {
            **WRITE["F"](self.p["header_fields"]), "CLIENT_NAME": self.client.name,
            "PUBLISHER": publisher, "SEQUENCE": sequence, "SENT_NS": long(time.time_ns()),
        }  # fmt: skip
        properties = {
            "correlation_id": self.correlation, "content_type": "application/octet-stream",
            "delivery_mode": 2 if self.p["persistent"] else 1,
        }  # fmt: skip
        return headers, properties, self.body(sequence)

    async def status(self, fields: Mapping[str, Any]) -> None:
        """Nothing to wait for."""


def project(body: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Carry an envelope as the RabbitMQ binding says; what is absent stays absent."""
    envelope = json.loads(body)
    meta = envelope.get("meta") or {}
    headers = {"x-schema-version": meta.get("schema_version"), "x-source-lang": meta.get("lang"),
               "x-attempts": envelope.get("attempts")}  # fmt: skip
    job = envelope.get("job")
    named = isinstance(job, str) and job.strip(" \t\n\v\f\r")
    properties = {
        "type": job if named else envelope.get("urn"), "message_id": meta.get("id"),
        "correlation_id": envelope.get("trace_id"), "app_id": "babelqueue", "delivery_mode": 2,
        "content_type": "application/json", "content_encoding": "utf-8",
    }  # fmt: skip
    there = {name: value for name, value in headers.items() if value is not None}
    return there, properties, body


@dataclass
class Consumer:
    """One consumer on a connection of its own."""

    index: int
    link: Link
    channel: Any
    queue: str
    own: bool
    tag: int = 0
    open: int = 0
    acknowledged: int = 0
    waiting: int = 0
    due: float = 0.0


class Receiver(Role):
    """Consumes from the moment it accepts the role."""

    async def begin(self) -> None:
        self.put_back = 0
        self.consumers: list[Consumer] = []
        await asyncio.gather(*(self.consume(one) for one in self.p["consumers"]))

    async def consume(self, asked: Mapping[str, Any]) -> None:
        """Open a connection, a queue where none is named, and consume."""
        link, channel = await self.open_channel()
        place = self.p["destinations"][asked["destination"]]
        one = Consumer(asked["index"], link, channel, place["queue"], own=not place["queue"])
        if one.own:
            made = await link.call(channel.queue_declare, "", exclusive=True)
            one.queue = made.method.queue
            await link.call(channel.queue_bind, one.queue, place["exchange"], place["key"])
        if self.p["prefetch_count"]:
            await link.call(channel.basic_qos, prefetch_count=self.p["prefetch_count"])
        if self.p["ack_tx"]:
            await link.call(channel.tx_select)
        self.consumers.append(one)
        await link.call(
            channel.basic_consume, one.queue, lambda _channel, *message: self.pace(one, *message),
            auto_ack=self.p["no_ack"], exclusive=self.p["exclusive"], consumer_tag="lab",
        )  # fmt: skip

    def pace(self, one: Consumer, *message: Any) -> None:
        """Take a message now, or when the inbound rate allows it."""
        self.client.heard()
        one.waiting += 1
        if not self.p["inbound_rate"]:
            self.take(one, *message)
            return
        loop = asyncio.get_running_loop()
        one.due = max(loop.time(), one.due) + 1 / self.p["inbound_rate"]
        loop.call_at(one.due, self.take, one, *message)

    def take(self, one: Consumer, method: Any, properties: Any, body: bytes) -> None:
        """Look at one delivery and acknowledge it as we were told, or put it back."""
        one.waiting -= 1
        self.news.set()
        if self.put_back < self.p["requeue_first"] and not method.redelivered:
            self.put_back += 1
            self.note(one.index, method, properties, body, put_back=True)
            one.channel.basic_nack(method.delivery_tag, requeue=True)
            return
        one.tag = method.delivery_tag
        one.open += not self.p["no_ack"]
        if self.p["ack_first"]:
            self.acknowledge(one)
        self.count += 1
        self.note(one.index, method, properties, body)
        if one.open == self.p["ack_every"]:
            self.acknowledge(one)

    def acknowledge(self, one: Consumer) -> None:
        """Acknowledge what is open; a transaction ends after so many."""
        if one.open:
            one.channel.basic_ack(one.tag, multiple=self.p["ack_every"] != 1)
            one.open = 0
            one.acknowledged += 1
            if self.p["ack_tx"] and one.acknowledged % self.p["tx_batch_size"] == 0:
                one.channel.tx_commit(lambda _frame: None)

    def note(self, index: int, method: Any, properties: Any, body: bytes, *,
             put_back: bool = False) -> None:  # fmt: skip
        """List one delivery; the properties are written out later, not while messages come."""
        told = {
            "consumer": index, "redelivered": bool(method.redelivered), "put_back": put_back,
            "arrived_ns": str(time.time_ns()), "length": len(body), "sha256": self.hash(body),
            "differs": -1, "properties": properties,
        }  # fmt: skip
        if told["sha256"]:
            sequence = (properties.headers or {}).get("SEQUENCE", 0)
            told["differs"] = first_difference(self.body(sequence), body)
        if self.p["echo"]:
            told["body"] = base64.b64encode(body).decode()
        self.messages.append(told)

    def report(self) -> dict[str, Any]:
        for told in self.messages:
            held = told["properties"]
            told["headers"] = tag_table(held.headers)
            shown = {name: getattr(held, name) for name in PROPERTIES}
            told["properties"] = {name: one for name, one in shown.items() if one is not None}
        return super().report()

    async def status(self, fields: Mapping[str, Any]) -> None:
        """Wait for so many messages, or so long; then end the role if it is final."""
        enough, seconds = fields["WAIT_COUNT"], fields["WAIT_MS"] / 1000
        await self.until(lambda: self.count >= enough, seconds)
        for one in self.consumers if fields["FINAL"] else ():
            await self.finish(one)

    async def finish(self, one: Consumer) -> None:
        """Cancel, take in what is on the way, acknowledge, delete what is ours."""
        call = one.link.call
        await call(one.channel.basic_cancel, "lab")
        await self.until(lambda: not one.waiting)
        self.acknowledge(one)
        if self.p["ack_tx"]:
            await call(one.channel.tx_commit)
        await call(one.channel.basic_qos, prefetch_count=0)
        if one.own:
            deleted = await call(one.channel.queue_delete, one.queue)
            self.left += deleted.method.message_count
