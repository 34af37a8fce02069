"""The receiver of the Python client: it consumes from the moment it accepts the role.

It reports what came, message by message, and judges nothing. Impostors override single methods.
"""

# ruff: noqa: INP001 (a program of its own, not a package)

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from collections.abc import Mapping
from typing import Any

from role import Role, present
from wire import first_difference, make_body, tag, write_runs

PROPERTIES = ("content_type", "content_encoding", "delivery_mode", "priority", "correlation_id",
              "reply_to", "expiration", "message_id", "type", "user_id", "app_id")  # fmt: skip


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
        self.news = asyncio.Event()
        self.idle = asyncio.Event()
        self.idle.set()
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
            made = await link.call(channel.queue_declare, "", exclusive=True)
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
        self.idle.clear()

        def later() -> None:
            self.take(consumer, *message)
            self.pending -= 1
            if not self.pending:
                self.idle.set()

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
        """Put a latency into its bucket; below zero it is that of its size."""
        spare = max(0, latency.bit_length() - 11)
        bucket = (abs(latency) >> spare << spare) * (-1 if latency < 0 else 1)
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
        await self.idle.wait()
        if consumer["open"] and consumer["mode"] in ("client", "dups_ok"):
            channel.basic_ack(consumer["tag"], multiple=True)
        if consumer["mode"] == "tx":
            await link.call(channel.tx_commit)
        await link.call(channel.basic_qos, prefetch_count=0)
        if self.get("pattern", "p2p") == "pubsub":
            self.left += (
                await link.call(channel.queue_delete, consumer["queue"])
            ).method.message_count

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
            **whole, **self.trouble(),
        }  # fmt: skip


def view(index: int, method: Any, properties: Any, body: bytes) -> dict[str, Any]:
    """Show a delivery whole."""
    held = {name: getattr(properties, name) for name in PROPERTIES}
    return {
        "consumer": index,
        "body": base64.b64encode(body).decode(),
        "redelivered": bool(method.redelivered),
        "properties": present(held),
        "headers": {name: tag(value) for name, value in (properties.headers or {}).items()},
    }
