"""The two roles, on connections of pika. Impostors in the tests override single methods."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine
from functools import partial
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

    async def open(self, *, new: bool = True) -> Any:
        """Open a channel, on a new connection or on the last one."""
        if new:
            made = AsyncioConnection(self.place, on_open_error_callback=self.end, on_close_callback=self.end)
            self.connections.append(made)
            await self.until(lambda: made.is_open)
        channel = self.connections[-1].channel()
        channel.add_on_close_callback(self.end)
        await self.until(lambda: channel.is_open)
        return channel

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
    """What both have: parameters, a line for each publisher or consumer, what is new since the last report."""

    def __init__(self, client: Any, assignment: str, parameters: bytes) -> None:
        super().__init__(client.place)
        self.client, self.parameters, self.count = client, parameters, 0
        self.correlation = f"{client.given['instance']}.{assignment}"
        self.lines: list[SimpleNamespace] = []
        self.requests: asyncio.Queue[tuple[Any, str, dict[str, Any]]] = asyncio.Queue()
        self.told: defaultdict[str, list[Any]] = defaultdict(list)  # by kind, what happened since the last report

    async def begin(self, _fields: dict[str, Any]) -> None:
        self.p = json.loads(self.parameters)
        for asked in self.p["lines"]:
            one = SimpleNamespace(**asked, channel=await self.open(new=asked["connect"]), tag=0, due=0)
            self.lines.append(one)
            if self.p["tx_batch"]:
                await self.call(one.channel.tx_select)
            await self.prepare(one)

    async def settle(self, one: SimpleNamespace) -> None:
        """Commit, and make a call whose answer says that the broker has all before it."""
        if self.p["tx_batch"]:
            await self.call(one.channel.tx_commit)
        await self.call(one.channel.basic_qos)

    async def attempt(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do something and say whether it went well; tell how the broker closed, or what else went wrong."""
        try:
            await work
        except Exception as caught:  # noqa: BLE001 (whatever it is, it belongs in the report)
            error = self.broken or caught
            if isinstance(error, ChannelClosed | ConnectionClosed):
                level = "channel" if isinstance(error, ChannelClosed) else "connection"
                self.told["closed"].append({"level": level, "code": error.reply_code, "text": error.reply_text})
            self.told["error"].append(repr(error))
            return False
        return True

    def hash(self, body: bytes) -> str:
        return hashlib.sha256(body).hexdigest() if self.p["check"] == "hash" else ""

    def body(self, sequence: int) -> bytes:
        return make_body(self.p["seed"], sequence, self.p["message_bytes"])

    def report(self) -> dict[str, list[Any]]:
        told, self.told = self.told, defaultdict(list)
        return told


class Sender(Role):
    """Publishes when it is told to."""

    async def prepare(self, one: SimpleNamespace) -> None:
        one.unconfirmed = set()
        one.channel.add_on_return_callback(self.on_return)
        # Broker-J has confirms and does not say so: pika refuses to ask for them.
        self.confirms = self.connections[0].publisher_confirms and not self.p["tx_batch"]
        if self.confirms:
            await self.call(one.channel.confirm_delivery, partial(self.on_confirm, one.unconfirmed))

    def on_confirm(self, waiting: set[int], frame: Any) -> None:
        last, many = frame.method.delivery_tag, frame.method.multiple
        waiting.difference_update([one for one in waiting if one <= last] if many else [last])

    def on_return(self, _channel: Any, method: Any, properties: Any, _body: bytes) -> None:
        self.told["returned"].append({"code": method.reply_code, "headers": tag_message(properties)["headers"]})

    async def start(self, fields: dict[str, Any]) -> None:
        """Send message by message, the publishers in turn, and wait until the broker has them."""
        self.told["started_ns"].append(str(time.time_ns()))
        began = time.monotonic()
        every = self.p["every_ns"] / 1e9
        for done in range(fields["MESSAGE_COUNT"]):
            if every or done % 64 == 0:
                await asyncio.sleep(max(0, began + done * every - time.monotonic()) if every else 0)
            for one in self.lines:
                self.send(one.index, fields["FIRST"] + done)
                if self.p["tx_batch"] and (done + 1) % self.p["tx_batch"] == 0:
                    await self.call(one.channel.tx_commit)
        await self.until(lambda: not any(one.unconfirmed for one in self.lines))
        for one in self.lines:
            await self.settle(one)
        self.told["ended_ns"].append(str(time.time_ns()))

    def send(self, publisher: int, sequence: int) -> None:
        headers, properties, body = self.make(publisher, sequence)
        self.publish(publisher, sequence, pika.BasicProperties(headers=headers, **properties), body)
        self.told["messages"].append({"publisher": publisher, "sequence": sequence, "sha256": self.hash(body)})
        self.count += 1

    def publish(self, publisher: int, sequence: int, properties: Any, body: bytes) -> None:
        to, one = self.p["destinations"][(publisher + sequence) % len(self.p["destinations"])], self.lines[publisher]
        one.channel.basic_publish(to["exchange"], to["key"], body, properties, mandatory=self.p["mandatory"])
        if self.confirms:
            one.tag += 1
            one.unconfirmed.add(one.tag)

    def make(self, publisher: int, sequence: int) -> tuple[dict[str, Any], dict[str, Any], bytes]:
        """Give headers, properties and body of one message."""
        if envelopes := self.p["envelopes"]:
            return project(base64.b64decode(envelopes[sequence % len(envelopes)]))
        ours = {"CLIENT_NAME": self.client.name, "PUBLISHER": publisher, "SEQUENCE": sequence}
        headers = {**WRITE["F"](self.p["header_fields"]), **ours, "SENT_NS": long(time.time_ns())}
        properties = {"correlation_id": self.correlation, "content_type": "application/octet-stream"}
        return headers, {**properties, "delivery_mode": self.p["delivery_mode"]}, self.body(sequence)

    async def status(self, fields: dict[str, Any]) -> None:
        """Nothing to wait for."""


class Receiver(Role):
    """Consumes from the moment it accepts the role, each consumer on a connection of its own."""

    async def prepare(self, one: SimpleNamespace) -> None:
        one.own = not one.queue
        if one.own:
            one.queue = (await self.call(one.channel.queue_declare, "", exclusive=True)).queue
            await self.call(one.channel.queue_bind, one.queue, one.exchange, one.key)
        await self.call(one.channel.basic_qos, prefetch_count=self.p["prefetch_count"])
        how = {"auto_ack": self.p["no_ack"], "exclusive": self.p["exclusive"], "consumer_tag": "lab"}
        await self.call(one.channel.basic_consume, one.queue, partial(self.pace, one), **how)

    def pace(self, one: SimpleNamespace, _channel: Any, *message: Any) -> None:
        """Take a message now, or when the inbound rate allows it."""
        self.client.last = time.monotonic()
        if not self.p["every_ns"]:
            self.take(one, *message)
        else:
            one.due = max(time.monotonic(), one.due) + self.p["every_ns"] / 1e9
            asyncio.get_running_loop().call_at(one.due, self.take, one, *message)

    def take(self, one: SimpleNamespace, method: Any, properties: Any, body: bytes) -> None:
        """Look at one delivery and acknowledge it as we were told, or put it back."""
        tag, every, batch = method.delivery_tag, self.p["ack_every"], self.p["tx_batch"]
        put_back = tag <= self.p["requeue_first"]
        due = every and tag % every == 0 and not put_back
        if due and self.p["ack_first"]:
            one.channel.basic_ack(tag, multiple=every > 1)
        self.count += not put_back
        self.note(one.index, method, properties, body, put_back=put_back)
        if put_back:
            one.channel.basic_nack(tag)
        elif due and not self.p["ack_first"]:
            one.channel.basic_ack(tag, multiple=every > 1)
        if batch and tag % batch == 0:
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

    def report(self) -> dict[str, list[Any]]:
        """Write out properties and headers now, not while messages come."""
        for message in self.told["messages"]:
            message.update(tag_message(message["properties"]))
        return super().report()

    async def status(self, fields: dict[str, Any]) -> None:
        """Wait for so many messages, or so long; then end the role if it is final."""
        await self.until(lambda: self.count >= fields["WAIT_COUNT"], fields["WAIT_MS"] / 1000)
        for one in self.lines if fields["FINAL"] else ():
            await self.call(one.channel.basic_cancel, "lab")
            await asyncio.sleep(max(0, one.due - time.monotonic()))
            if self.p["ack_rest"]:
                one.channel.basic_ack(0, multiple=True)
            await self.settle(one)
            if one.own:
                left = (await self.call(one.channel.queue_delete, one.queue)).message_count
                self.told["left"].append(left)
