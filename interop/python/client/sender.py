"""The sender of the Python client: it publishes when it is told to, and judges nothing.

Impostors in the tests override single methods.
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
from role import Role, present
from wire import make_body, untag_table, write_runs

CHUNK = 64


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
        self.taken: dict[int, asyncio.Future[None]] = {}
        self.started = self.ended = ""

    async def begin(self) -> None:
        """Open one connection with a channel for each publisher."""
        if self.get("pattern", "p2p") == "none":
            return
        link = await self.open_link()
        for publisher in range(len(self.sent)):
            channel = await link.channel()
            channel.add_on_return_callback(self.on_return)
            if self.transactional:
                await link.call(channel.tx_select)
            elif self.confirms(link):
                await link.call(channel.confirm_delivery, self.confirmer(publisher))
            self.channels.append(channel)

    def confirms(self, link: Any) -> bool:
        """Say whether pika lets us ask for confirms: Broker-J has them and does not say so."""
        return bool(link.connection.publisher_confirms) and not self.transactional

    @property
    def transactional(self) -> bool:
        """Whether channels are transactional."""
        return bool(self.get("transactional", default=False))

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
            taken = self.taken.get(publisher)
            if not waiting and taken and not taken.done():
                taken.set_result(None)

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
        transactional = self.transactional
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
        if self.unconfirmed[publisher]:
            self.taken[publisher] = asyncio.get_running_loop().create_future()
            await link.wait(self.taken[publisher])
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
        if self.confirms(self.links[0]):
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
    return present(headers), present(properties), body
