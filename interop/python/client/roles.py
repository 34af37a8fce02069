"""The two roles, on connections of pika. Impostors in the tests override single methods."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
import uuid
from collections.abc import Callable, Coroutine
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import pika
from pika.adapters.asyncio_connection import AsyncioConnection
from pika.exceptions import ChannelClosed, ConnectionClosed
from wire import WRITE, first_difference, long, make_body, project, tag_message


class Line:
    """Connections of pika that one can await; `broken` is how any of them ended first."""

    def __init__(self, place: pika.ConnectionParameters) -> None:
        self.place, self.connections = place, []
        self.broken: Exception | None = None

    def end(self, _place: Any, error: Exception) -> None:
        self.broken = self.broken or error

    async def until(self, ready: Callable[[], Any], seconds: float = 1e9, every: float = 0.001) -> None:
        """Wait until something is so, or so long, or raise how a connection ended."""
        limit = time.monotonic() + seconds
        while not ready() and time.monotonic() < limit:
            if self.broken:
                raise self.broken
            await asyncio.sleep(every)

    async def open(self, number: int = 1) -> list[Any]:
        """Open a connection with so many channels."""
        made = AsyncioConnection(self.place, on_open_error_callback=self.end, on_close_callback=self.end)
        self.connections.append(made)
        await self.until(lambda: made.is_open)
        channels = [made.channel() for _ in range(number)]
        for channel in channels:
            channel.add_on_close_callback(self.end)
        await self.until(lambda: all(channel.is_open for channel in channels))
        return channels

    async def call(self, method: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Call a method of pika and wait for the broker's answer."""
        answers: list[Any] = []
        method(*given, **named, callback=answers.append)
        await self.until(lambda: answers)
        return answers[0].method

    async def close(self) -> None:
        for one in self.connections:
            while not one.is_closed:
                if one.is_open:
                    one.close()
                await asyncio.sleep(0.001)


class Role(Line):
    """What both have: parameters, connections, and what is new since the last report."""

    def __init__(self, client: Any, parameters: dict[str, Any]) -> None:
        super().__init__(client.place)
        self.client, self.p, self.count = client, parameters, 0
        self.correlation = str(uuid.uuid4())
        self.requests: asyncio.Queue[tuple[Any, str, dict[str, Any]]] = asyncio.Queue()
        self.told: dict[str, Any] = {
            "messages": [], "returned": [], "left": 0, "closed": None, "error": "", "started_ns": "0", "ended_ns": "0",
        }  # fmt: skip

    async def attempt(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do something and say whether it went well; tell how the broker closed, or what else went wrong."""
        try:
            await work
        except Exception as caught:  # noqa: BLE001 (whatever it is, it belongs in the report)
            error = self.broken or caught
            if isinstance(error, ChannelClosed | ConnectionClosed):
                level = "channel" if isinstance(error, ChannelClosed) else "connection"
                self.told["closed"] = {"level": level, "code": error.reply_code, "text": error.reply_text}
            else:
                self.told["error"] = repr(error)
            return False
        return True

    def hash(self, body: bytes) -> str:
        return hashlib.sha256(body).hexdigest() if self.p["check"] == "hash" else ""

    def body(self, sequence: int) -> bytes:
        return make_body(self.p["seed"], sequence, self.p["message_bytes"])

    def report(self) -> dict[str, Any]:
        told, self.told = self.told, {**self.told, "messages": [], "returned": []}
        return told


class Sender(Role):
    """Publishes when it is told to."""

    async def begin(self, _fields: dict[str, Any]) -> None:
        self.channels = await self.open(self.p["num_publishers"])
        self.tags, self.unconfirmed = [count(1) for _ in self.channels], [set() for _ in self.channels]
        # Broker-J has confirms and does not say so: pika refuses to ask for them.
        self.confirms = self.connections[0].publisher_confirms and not self.p["transactional"]
        for channel, waiting in zip(self.channels, self.unconfirmed, strict=True):
            channel.add_on_return_callback(self.on_return)
            if self.p["transactional"]:
                await self.call(channel.tx_select)
            elif self.confirms:
                await self.call(channel.confirm_delivery, partial(self.on_confirm, waiting))

    def on_confirm(self, waiting: set[int], frame: Any) -> None:
        last, many = frame.method.delivery_tag, frame.method.multiple
        waiting.difference_update([one for one in waiting if one <= last] if many else [last])

    def on_return(self, _channel: Any, method: Any, properties: Any, _body: bytes) -> None:
        self.told["returned"].append({"code": method.reply_code, "headers": tag_message(properties)["headers"]})

    async def start(self, fields: dict[str, Any]) -> None:
        """Send message by message, the publishers in turn, and wait until the broker has them."""
        first, number = fields["FIRST"], fields["MESSAGE_COUNT"]
        self.told["started_ns"], began = str(time.time_ns()), time.monotonic()
        rate = self.p["outgoing_rate"]
        for done in range(number):
            if rate or done % 64 == 0:
                await asyncio.sleep(max(0, began + done / rate - time.monotonic()) if rate else 0)
            for publisher in range(len(self.channels)):
                self.send(publisher, first + done)
            if self.p["transactional"] and (done + 1 == number or (done + 1) % self.p["tx_batch_size"] == 0):
                for channel in self.channels:
                    await self.call(channel.tx_commit)
        await self.until(lambda: not any(self.unconfirmed))
        for channel in self.channels:
            await self.call(channel.basic_qos)
        self.told["ended_ns"] = str(time.time_ns())

    def send(self, publisher: int, sequence: int) -> None:
        headers, properties, body = self.make(publisher, sequence)
        self.publish(publisher, sequence, pika.BasicProperties(headers=headers, **properties), body)
        self.told["messages"].append({"publisher": publisher, "sequence": sequence, "sha256": self.hash(body)})
        self.count += 1

    def publish(self, publisher: int, sequence: int, properties: Any, body: bytes) -> None:
        to = self.p["destinations"][(publisher + sequence) % len(self.p["destinations"])]
        channel, must = self.channels[publisher], self.p["mandatory"]
        channel.basic_publish(to["exchange"], to["key"], body, properties, mandatory=must)
        if self.confirms:
            self.unconfirmed[publisher].add(next(self.tags[publisher]))

    def make(self, publisher: int, sequence: int) -> tuple[dict[str, Any], dict[str, Any], bytes]:
        """Give headers, properties and body of one message."""
        if envelopes := self.p["envelopes"]:
            return project(base64.b64decode(envelopes[sequence % len(envelopes)]))
        ours = {"CLIENT_NAME": self.client.name, "PUBLISHER": publisher, "SEQUENCE": sequence}
        headers = {**WRITE["F"](self.p["header_fields"]), **ours, "SENT_NS": long(time.time_ns())}
        properties = {"correlation_id": self.correlation, "content_type": "application/octet-stream"}
        properties["delivery_mode"] = 2 if self.p["persistent"] else 1
        return headers, properties, self.body(sequence)

    async def status(self, fields: dict[str, Any]) -> None:
        """Nothing to wait for."""


class Receiver(Role):
    """Consumes from the moment it accepts the role, each consumer on a connection of its own."""

    async def begin(self, _fields: dict[str, Any]) -> None:
        self.consumers, self.put_back = [], 0
        for asked in self.p["consumers"]:
            (channel,) = await self.open()
            place = self.p["destinations"][asked["destination"]]
            one = SimpleNamespace(index=asked["index"], channel=channel, queue=place["queue"], own=not place["queue"])
            one.tag = one.open = one.acknowledged = one.due = 0
            if one.own:
                one.queue = (await self.call(channel.queue_declare, "", exclusive=True)).queue
                await self.call(channel.queue_bind, one.queue, place["exchange"], place["key"])
            if self.p["prefetch_count"]:
                await self.call(channel.basic_qos, prefetch_count=self.p["prefetch_count"])
            if self.p["ack_tx"]:
                await self.call(channel.tx_select)
            self.consumers.append(one)
            how = {"auto_ack": self.p["no_ack"], "exclusive": self.p["exclusive"], "consumer_tag": "lab"}
            await self.call(channel.basic_consume, one.queue, partial(self.pace, one), **how)

    def pace(self, one: SimpleNamespace, _channel: Any, *message: Any) -> None:
        """Take a message now, or when the inbound rate allows it."""
        self.client.last = time.monotonic()
        if not self.p["inbound_rate"]:
            self.take(one, *message)
        else:
            one.due = max(time.monotonic(), one.due) + 1 / self.p["inbound_rate"]
            asyncio.get_running_loop().call_at(one.due, self.take, one, *message)

    def take(self, one: SimpleNamespace, method: Any, properties: Any, body: bytes) -> None:
        """Look at one delivery and acknowledge it as we were told, or put it back."""
        if self.put_back < self.p["requeue_first"] and not method.redelivered:
            self.put_back += 1
            self.note(one.index, method, properties, body, put_back=True)
            one.channel.basic_nack(method.delivery_tag)
            return
        one.tag = method.delivery_tag
        one.open += not self.p["no_ack"]
        if self.p["ack_first"]:
            self.acknowledge(one)
        self.count += 1
        self.note(one.index, method, properties, body)
        if one.open == self.p["ack_every"]:
            self.acknowledge(one)

    def acknowledge(self, one: SimpleNamespace) -> None:
        """Acknowledge what is open; a transaction ends after so many."""
        if one.open:
            one.channel.basic_ack(one.tag, multiple=self.p["ack_every"] != 1)
            one.open = 0
            one.acknowledged += 1
            if self.p["ack_tx"] and one.acknowledged % self.p["tx_batch_size"] == 0:
                one.channel.tx_commit(lambda _frame: None)

    def note(self, index: int, method: Any, properties: Any, body: bytes, *, put_back: bool = False) -> None:
        """List one delivery."""
        arrived, sha256 = time.time_ns(), self.hash(body)
        sequence = (properties.headers or {}).get("SEQUENCE", 0)
        told = {
            "consumer": index, "redelivered": method.redelivered, "put_back": put_back, "length": len(body),
            "arrived_ns": str(arrived), "sha256": sha256,
            "differs": first_difference(self.body(sequence), body) if sha256 else -1, "properties": properties,
        }  # fmt: skip
        if self.p["echo"]:
            told["body"] = base64.b64encode(body).decode()
        self.told["messages"].append(told)

    def report(self) -> dict[str, Any]:
        """Write out properties and headers now, not while messages come."""
        for message in self.told["messages"]:
            message.update(tag_message(message["properties"]))
        return super().report()

    async def status(self, fields: dict[str, Any]) -> None:
        """Wait for so many messages, or so long; then end the role if it is final."""
        await self.until(lambda: self.count >= fields["WAIT_COUNT"], fields["WAIT_MS"] / 1000)
        for one in self.consumers if fields["FINAL"] else ():
            await self.call(one.channel.basic_cancel, "lab")
            await asyncio.sleep(max(0, one.due - time.monotonic()))
            self.acknowledge(one)
            if self.p["ack_tx"]:
                await self.call(one.channel.tx_commit)
            await self.call(one.channel.basic_qos)  # the answer says that the broker has the acknowledgements
            if one.own:
                self.told["left"] += (await self.call(one.channel.queue_delete, one.queue)).message_count
