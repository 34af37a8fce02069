"""The Python client of the lab, on pika (docs/reference/lab-protocol.md).

One event loop does everything: the control connection, and the test connections of every role. It
does what it is told and reports what it did; it never judges.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import platform
import sys
import time
import uuid
from collections.abc import Mapping
from typing import Any

import pika
from roles import Receiver, Role, Sender
from wire import WRITE, Closed, Link, long

TESTS = ["TC1_DummyRun", "TC2_BasicP2P", "TC3_BasicPubSub", "TC4_P2PMessageSize",
         "TC5_PubSubMessageSize", "Circuit", "Envelope", "FieldTable"]  # fmt: skip
CANNOT = {
    "immediate": "pika's basic_publish has no such argument",
    "no_local": "pika's basic_consume has no such argument",
}
LOST, SILENT = 1, 3


class Client:
    """One client; `run` gives its exit code."""

    roles: Mapping[str, type[Role]] = {"SENDER": Sender, "RECEIVER": Receiver}

    def __init__(self, given: Mapping[str, str]) -> None:
        self.given = given
        self.name, self.key = given["client_name"], given["control_key"]
        self.instance, self.numbers = str(uuid.uuid4()), itertools.count()
        self.held: dict[str, Role] = {}
        self.tasks: set[asyncio.Task[None]] = set()

    def heard(self) -> None:
        self.last = time.monotonic()

    def connection_parameters(self) -> pika.ConnectionParameters:
        return pika.ConnectionParameters(
            self.given["host"], int(self.given["port"]), self.given["vhost"],
            pika.PlainCredentials(self.given["username"], self.given["password"]),
            heartbeat=0, connection_attempts=1,
        )  # fmt: skip

    def run(self) -> int:
        return asyncio.run(self.serve())

    async def serve(self) -> int:
        """Listen on the control keys until TERMINATE, silence or the loss of the broker."""
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.control = Link(self.connection_parameters(), lambda: self.stop(LOST))
        call = self.control.call
        try:
            self.channel = await self.control.channel()
            made = await call(self.channel.queue_declare, "", exclusive=True, auto_delete=True)
            queue = made.method.queue
            for key in (self.key, f"{self.key}.{self.name}"):
                await call(self.channel.queue_bind, queue, "amq.topic", key)
            await call(self.channel.basic_consume, queue, self.on_control, auto_ack=True)
        except Closed as error:
            sys.stderr.write(f"{self.name}: cannot connect: {error}\n")
            return LOST
        self.ready()
        code = await self.ended
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for link in (*(link for role in self.held.values() for link in role.links), self.control):
            await link.close()
        return code

    def ready(self) -> None:
        sys.stdout.write(f"READY {self.name}\n")
        sys.stdout.flush()

    def stop(self, code: int) -> None:
        if not self.ended.done():
            self.ended.set_result(code)

    def watch(self) -> None:
        """End after too long a silence; it begins when we are invited (IOP-5)."""
        rest = self.last + float(self.given["control_timeout"]) - time.monotonic()
        if rest <= 0:
            self.stop(SILENT)
        else:
            asyncio.get_running_loop().call_later(rest, self.watch)

    def on_control(self, _channel: Any, _method: Any, properties: Any, body: bytes) -> None:
        arrived = time.time_ns()
        self.heard()
        fields = properties.headers or {}
        kind = fields.get("CONTROL_TYPE", fields.get("CONTROL_TOPIC"))
        if kind == "INVITE":
            self.watch()
            self.invited(properties, fields.get("TEST_NAME"))
        elif kind == "CLOCK_SYNCH":
            stamps = {"T1": fields["T1"], "T2": arrived, "T3": time.time_ns()}
            self.reply(properties, kind, {name: long(one) for name, one in stamps.items()})
        elif kind == "ASSIGN_ROLE":
            role = self.roles[fields["ROLE"]](self, json.loads(body))
            self.held[properties.correlation_id] = role
            self.tasks.add(asyncio.ensure_future(self.play(role, properties)))
        elif kind == "TERMINATE":
            self.stop(0)
        elif role := self.held.get(properties.correlation_id):
            role.requests.put_nowait((properties, kind, fields))

    def reply(self, request: Any, kind: str, fields: Mapping[str, Any],
              body: Mapping[str, Any] | None = None) -> None:  # fmt: skip
        about = {"CONTROL_TYPE": kind, "CLIENT_NAME": self.name, "CLIENT_INSTANCE": self.instance}
        properties = pika.BasicProperties(
            headers={**about, **fields}, correlation_id=request.correlation_id
        )
        text = json.dumps(body, separators=(",", ":")).encode() if body else b""
        if self.channel.is_open:
            self.channel.basic_publish("", request.reply_to, text, properties)

    def invited(self, request: Any, test: str | None) -> None:
        if test is not None and test not in TESTS:
            self.reply(request, "DECLINE", {"REASON": f"there is no test {test}"})
            return
        about = {
            "protocol": 2, "language": "python",
            "runtime": f"{platform.python_implementation()} {platform.python_version()}",
            "library": "pika", "library_version": pika.__version__, "platform": sys.platform,
            "tests": TESTS, "cannot": CANNOT, "field_tags": "".join(WRITE),
            "given": {name: text for name, text in self.given.items() if name != "password"},
        }  # fmt: skip
        private = {"CLIENT_PRIVATE_CONTROL_KEY": f"{self.key}.{self.name}"}
        self.reply(request, "ENLIST", private, about)

    async def play(self, role: Role, request: Any) -> None:
        """Accept a role when it is ready, do what it is asked, one after the other, and report."""
        await role.attempt(role.begin())
        final = role.failure is not None
        if not final:
            self.reply(request, "ACCEPT_ROLE", {"CORRELATION_ID": role.correlation})
        while not final:
            request, kind, fields = await role.requests.get()
            await role.attempt(role.start(fields) if kind == "START" else role.status(fields))
            final = fields["FINAL"]
            if not final:
                self.report(request, role)
        for link in role.links:
            await link.close()
        del self.held[request.correlation_id]
        self.report(request, role)

    def report(self, request: Any, role: Role) -> None:
        fields = {"MESSAGE_COUNT": role.count, "CORRELATION_ID": role.correlation}
        self.reply(request, "REPORT", fields, role.report())


if __name__ == "__main__":
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    pairs = [word.partition("=") for word in sys.argv[1:]]
    sys.exit(Client({name: value for name, _, value in pairs}).run())
