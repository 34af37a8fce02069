"""The two roles of the Python client: what the protocol calls Sender and Receiver.

A role is begun by ASSIGN_ROLE, does what START or STATUS_REQUEST says, and gives a report. It
judges nothing. Impostors in the tests override single methods.
"""

# ruff: noqa: INP001 (a program of its own, not a package)

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import time
from collections.abc import Mapping
from typing import Any

import pika
import pika.exceptions
from wire import Closed, Link, first_difference, make_body, tag, untag_table, write_runs

CHUNK = 64
PROPERTIES = ("content_type", "content_encoding", "delivery_mode", "priority", "correlation_id",
              "reply_to", "expiration", "message_id", "type", "user_id", "app_id")  # fmt: skip


class Role:
    """What both have: parameters, connections, and how the end came."""

    def __init__(self, client: Any, parameters: Mapping[str, Any]) -> None:
        self.client = client
        self.parameters = parameters
        self.links: list[Link] = []
        self.failure: BaseException | None = None
        self.lock = asyncio.Lock()

    def get(self, name: str, default: Any) -> Any:
        """Give a parameter."""
        return self.parameters.get(name, default)

    async def open_link(self) -> Link:
        """Open a test connection."""
        link = Link(self.client.connection_parameters())
        self.links.append(link)
        return await link.open()

    def trouble(self) -> dict[str, Any]:
        """Say what closed or broke it."""
        closed = self.failure.view if isinstance(self.failure, Closed) else None
        error = "" if closed or self.failure is None else repr(self.failure)
        return {"closed": closed, "error": error}

    async def close(self) -> None:
        """Close all connections."""
        for link in self.links:
            await link.close()


class Sender(Role):
    """Publishes when it is told to."""

    def __init__(self, client: Any, parameters: Mapping[str, Any]) -> None:
        super().__init__(client, parameters)
        self.correlation = client.fresh_correlation()
        count = self.get("num_publishers", 1)
        self.sent: list[list[int]] = [[] for _ in range(count)]
        self.digests = [hashlib.sha256() for _ in range(count)]
        self.returned: list[list[int]] = []
        self.channels: list[Any] = []
        self.unconfirmed: list[dict[int, None]] = [{} for _ in range(count)]
        self.tags = [0] * count
        self.started = self.ended = ""

    async def begin(self) -> None:
        """Open one connection with a channel for each publisher."""
        if self.get("pattern", "p2p") == "none":
            return
        link = await self.open_link()
        for publisher in range(len(self.sent)):
            channel = await link.channel()
            channel.add_on_return_callback(self.on_return)
            if self.get("transactional", default=False):
                await link.call(channel.tx_select)
            else:
                await link.call(channel.confirm_delivery, self.confirmer(publisher))
            self.channels.append(channel)

    def confirmer(self, publisher: int) -> Any:
        """Make what takes confirms, single or for all up to a tag."""
        waiting = self.unconfirmed[publisher]

        def confirm(frame: Any) -> None:
            tag_of = frame.method.delivery_tag
            if frame.method.multiple:
                for one in [tag for tag in waiting if tag <= tag_of]:
                    del waiting[one]
            else:
                waiting.pop(tag_of, None)

        return confirm

    def on_return(self, _channel: Any, method: Any, properties: Any, _body: bytes) -> None:
        """Note a message that came back."""
        headers = properties.headers or {}
        place = [headers.get("PUBLISHER", 0), headers.get("SEQUENCE", -1)]
        self.returned.append([*place, method.reply_code])

    async def start(self, fields: Mapping[str, Any]) -> None:
        """Send one batch from every publisher."""
        first = fields.get("FIRST", 0)
        count = fields.get("MESSAGE_COUNT", self.get("num_messages", 100))
        self.started = self.started or str(time.time_ns())
        if self.channels:
            end = fields.get("TX", "commit")
            await asyncio.gather(
                *(self.send(number, first, count, end) for number in range(len(self.channels)))
            )
        self.ended = str(time.time_ns())

    async def send(self, publisher: int, first: int, count: int, end: str) -> None:
        """Send one publisher's batch and wait until the broker has it."""
        link, channel = self.links[0], self.channels[publisher]
        transactional = self.get("transactional", default=False)
        rate, size = self.get("outgoing_rate", 0), self.get("tx_batch_size", 100)
        began = time.monotonic()
        for done, sequence in enumerate(range(first, first + count), start=1):
            link.check()
            self.send_one(publisher, sequence)
            if rate:
                await asyncio.sleep(max(0.0, began + done / rate - time.monotonic()))
            elif done % CHUNK == 0:
                await asyncio.sleep(0)
            if transactional and end == "commit" and done % size == 0:
                await link.call(channel.tx_commit)
        if transactional and end != "none":
            await link.call(channel.tx_commit if end == "commit" else channel.tx_rollback)
        while self.unconfirmed[publisher]:
            link.check()
            await asyncio.sleep(0.0005)
        await link.call(channel.basic_qos, prefetch_count=0)

    def send_one(self, publisher: int, sequence: int) -> None:
        """Make one message and publish it."""
        headers, properties, body = self.make(publisher, sequence)
        self.sent[publisher].append(sequence)
        if self.get("check", "hash") == "hash":
            self.digests[publisher].update(hashlib.sha256(body).digest())
        self.publish(publisher, sequence, pika.BasicProperties(headers=headers, **properties), body)

    def publish(self, publisher: int, sequence: int, properties: Any, body: bytes) -> None:
        """Hand one message to the library."""
        places = self.parameters["destinations"]
        place = places[(publisher + sequence) % len(places)]
        try:
            self.channels[publisher].basic_publish(
                place["exchange"], place["key"], body, properties,
                mandatory=self.get("mandatory", default=False),
            )  # fmt: skip
        except pika.exceptions.AMQPError:
            self.links[0].check()
            raise
        if not self.get("transactional", default=False):
            self.tags[publisher] += 1
            self.unconfirmed[publisher][self.tags[publisher]] = None

    def make(self, publisher: int, sequence: int) -> tuple[Any, dict[str, Any], bytes]:
        """Give headers, properties and body of one message."""
        if envelopes := self.get("envelopes", []):
            return project(base64.b64decode(envelopes[sequence % len(envelopes)]))
        if tables := self.get("tables", []):
            headers = untag_table(tables[sequence % len(tables)])
            return headers, {"correlation_id": self.correlation}, b""
        headers = untag_table(self.get("header_fields", {}))
        headers |= {"CLIENT_NAME": self.client.name, "PUBLISHER": publisher, "SEQUENCE": sequence}
        if self.get("stamp", default=False):
            headers["SENT_NS"] = time.time_ns()
        properties = {
            "correlation_id": self.correlation,
            "content_type": "application/octet-stream",
            "delivery_mode": 2 if self.get("persistent", default=False) else 1,
        }
        body = make_body(self.get("seed", 1), sequence, self.get("message_bytes", 0))
        return headers, properties, body

    async def status(self, fields: Mapping[str, Any]) -> None:
        """Nothing to wait for."""

    def count(self) -> int:
        """Give how many were sent."""
        return sum(map(len, self.sent))

    def report(self) -> dict[str, Any]:
        """Say what was sent."""
        hashed = self.get("check", "hash") == "hash"
        return {
            "role": "sender",
            "sent": [write_runs(numbers) for numbers in self.sent],
            "digests": [digest.hexdigest() if hashed else "" for digest in self.digests],
            "returned": self.returned,
            "started_ns": self.started,
            "ended_ns": self.ended,
            **self.trouble(),
        }


def project(body: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Carry an envelope as the RabbitMQ binding says; what is absent stays absent."""
    envelope = json.loads(body)
    meta = envelope.get("meta") or {}
    headers = {
        "x-schema-version": meta.get("schema_version"),
        "x-source-lang": meta.get("lang"),
        "x-attempts": envelope.get("attempts"),
    }
    properties = {
        "type": envelope.get("job", envelope.get("urn")),
        "correlation_id": envelope.get("trace_id"),
        "message_id": meta.get("id"),
        "app_id": "babelqueue",
        "content_type": "application/json",
        "content_encoding": "utf-8",
        "delivery_mode": 2,
    }
    return _present(headers), _present(properties), body


def _present(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


class Receiver(Role):
    """Consumes from the moment it accepts the role."""

    def __init__(self, client: Any, parameters: Mapping[str, Any]) -> None:
        super().__init__(client, parameters)
        self.streams: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.unexpected: list[list[Any]] = []
        self.echo: list[dict[str, Any]] = []
        self.received = self.put_back = self.left = self.pending = 0
        self.first = self.last = 0
        self.latency: dict[int, int] = {}
        self.early: list[str] = []
        self.news = asyncio.Event()
        self.consumers: list[dict[str, Any]] = []
        self.due: dict[int, float] = {}

    async def begin(self) -> None:
        """Open one connection for each consumer and consume."""
        if self.get("pattern", "p2p") != "none" and self.get("consumer_out_active", default=True):
            await asyncio.gather(*(self.consume(one) for one in self.get("consumers", [])))

    async def consume(self, asked: Mapping[str, Any]) -> None:
        """Open a connection, a queue if it is pubsub, and consume."""
        link = await self.open_link()
        channel = await link.channel()
        place = self.parameters["destinations"][asked["destination"]]
        queue = place["queue"]
        if self.get("pattern", "p2p") == "pubsub":
            made = await link.call(channel.queue_declare, "", exclusive=True, auto_delete=True)
            queue = made.method.queue
            await link.call(channel.queue_bind, queue, place["exchange"], place["key"])
        if self.get("prefetch_count", 0):
            await link.call(channel.basic_qos, prefetch_count=self.get("prefetch_count", 0))
        mode = self.get("ack_mode", "auto")
        if mode == "tx":
            await link.call(channel.tx_select)
        consumer = {"index": asked["index"], "link": link, "channel": channel, "queue": queue,
                    "mode": mode, "open": 0, "tag": 0}  # fmt: skip

        def arrived(_channel: Any, method: Any, properties: Any, body: bytes) -> None:
            self.client.heard()
            self.pace(consumer, method, properties, body)

        consumer["name"] = f"{self.client.instance}-{asked['index']}"
        self.consumers.append(consumer)
        await link.call(channel.basic_consume, queue, arrived, auto_ack=mode == "no_ack",
                        exclusive=self.get("exclusive", default=False),
                        consumer_tag=consumer["name"])  # fmt: skip

    def pace(self, consumer: dict[str, Any], *message: Any) -> None:
        """Take a message now, or when the inbound rate allows it."""
        rate = self.get("inbound_rate", 0)
        if not rate:
            self.take(consumer, *message)
            return
        now = time.monotonic()
        self.due[consumer["index"]] = max(now, self.due.get(consumer["index"], now)) + 1 / rate
        self.pending += 1

        def later() -> None:
            self.pending -= 1
            self.take(consumer, *message)

        asyncio.get_running_loop().call_later(self.due[consumer["index"]] - now, later)

    def take(self, consumer: dict[str, Any], method: Any, properties: Any, body: bytes) -> None:
        """Look at one delivery and acknowledge it as the mode says."""
        if self.get("echo", default=False):
            self.echo.append(view(consumer["index"], method, properties, body))
        if self.put_back < self.get("requeue_first", 0) and not method.redelivered:
            self.put_back += 1
            consumer["channel"].basic_nack(method.delivery_tag, requeue=True)
            return
        if consumer["mode"] == "pre_ack":
            consumer["channel"].basic_ack(method.delivery_tag)
        self.received += 1
        self.last = time.time_ns()
        self.first = self.first or self.last
        if not self.get("echo", default=False):
            self.note(consumer["index"], method, properties, body)
        self.acknowledge(consumer, method.delivery_tag)
        self.news.set()

    def acknowledge(self, consumer: dict[str, Any], delivery: int) -> None:
        """Settle one delivery, or leave it for later."""
        mode, channel = consumer["mode"], consumer["channel"]
        consumer["tag"] = delivery
        if mode in ("auto", "tx"):
            channel.basic_ack(delivery)
        if mode in ("client", "dups_ok", "tx"):
            consumer["open"] += 1
        if mode == "dups_ok" and consumer["open"] == 10:
            channel.basic_ack(delivery, multiple=True)
            consumer["open"] = 0
        if mode == "tx" and consumer["open"] == self.get("tx_batch_size", 100):
            channel.tx_commit(lambda _frame: None)
            consumer["open"] = 0

    def note(self, index: int, method: Any, properties: Any, body: bytes) -> None:
        """Count a message against its sender, correlation id and publisher (IOP-38)."""
        headers = properties.headers or {}
        if "CLIENT_NAME" not in headers or "SEQUENCE" not in headers:
            self.unexpected.append([index, len(body), hashlib.sha256(body).hexdigest()])
            return
        sequence = headers["SEQUENCE"]
        key = (index, headers["CLIENT_NAME"], properties.correlation_id or "",
               headers.get("PUBLISHER", 0))  # fmt: skip
        fresh = {"received": [], "digest": hashlib.sha256(), "altered": [], "redelivered": []}
        stream = self.streams.setdefault(key, fresh)
        stream["received"].append(sequence)
        if method.redelivered:
            stream["redelivered"].append(sequence)
        if self.get("check", "hash") == "hash":
            digest = hashlib.sha256(body)
            stream["digest"].update(digest.digest())
            wanted = make_body(self.get("seed", 1), sequence, self.get("message_bytes", 0))
            if body != wanted:
                row = [sequence, first_difference(wanted, body), len(body), digest.hexdigest()]
                stream["altered"].append(row)
        if self.get("stamp", default=False) and "SENT_NS" in headers:
            self.measure(self.last - headers["SENT_NS"] + int(self.get("clock_shift_ns", "0")))

    def measure(self, latency: int) -> None:
        """Put a latency into its bucket."""
        if latency < 0:
            self.early.append(str(latency))
            return
        spare = max(0, latency.bit_length() - 11)
        bucket = latency >> spare << spare
        self.latency[bucket] = self.latency.get(bucket, 0) + 1

    async def status(self, fields: Mapping[str, Any]) -> None:
        """Wait for so many messages, or so long; then end the role if it is final."""
        until = time.monotonic() + fields.get("WAIT_MS", 0) / 1000
        while self.received < fields.get("WAIT_COUNT", 0) and time.monotonic() < until:
            self.news.clear()
            waiting = asyncio.ensure_future(self.news.wait())
            closed = [link.closed for link in self.links]
            left = max(0.0, until - time.monotonic())
            await asyncio.wait({waiting, *closed}, timeout=left,
                               return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
            waiting.cancel()
            for link in self.links:
                link.check()
        if fields.get("FINAL", True):
            for consumer in self.consumers:
                await self.finish(consumer)

    async def finish(self, consumer: dict[str, Any]) -> None:
        """Cancel, take in what is on the way, acknowledge, delete what is ours."""
        link, channel = consumer["link"], consumer["channel"]
        await link.call(channel.basic_cancel, consumer["name"])
        while self.pending:
            await asyncio.sleep(0.001)
        if consumer["open"] and consumer["mode"] in ("client", "dups_ok"):
            channel.basic_ack(consumer["tag"], multiple=True)
        if consumer["mode"] == "tx":
            await link.call(channel.tx_commit)
        await link.call(channel.basic_qos, prefetch_count=0)
        if self.get("pattern", "p2p") == "pubsub":
            self.left += (await link.call(channel.queue_delete, consumer["queue"])).method.message_count

    def count(self) -> int:
        """Give how many were received."""
        return self.received

    def report(self) -> dict[str, Any]:
        """Say what was received."""
        hashed = self.get("check", "hash") == "hash"
        streams = [
            {
                "consumer": index, "sender": sender, "correlation_id": correlation,
                "publisher": publisher, "received": write_runs(stream["received"]),
                "digest": stream["digest"].hexdigest() if hashed else "",
                "altered": stream["altered"], "redelivered": write_runs(stream["redelivered"]),
            }
            for (index, sender, correlation, publisher), stream in self.streams.items()
        ]  # fmt: skip
        whole = {"echo": self.echo} if self.get("echo", default=False) else {}
        return {
            "role": "receiver", "streams": streams, "unexpected": self.unexpected,
            "left": self.left, "first_ns": str(self.first or ""), "last_ns": str(self.last or ""),
            "latency": {str(bucket): count for bucket, count in self.latency.items()},
            "early": self.early[:100], **whole, **self.trouble(),
        }  # fmt: skip


def view(index: int, method: Any, properties: Any, body: bytes) -> dict[str, Any]:
    """Show a delivery whole."""
    held = {name: getattr(properties, name) for name in PROPERTIES}
    return {
        "consumer": index,
        "body": base64.b64encode(body).decode(),
        "redelivered": bool(method.redelivered),
        "properties": _present(held),
        "headers": {name: tag(value) for name, value in (properties.headers or {}).items()},
    }
