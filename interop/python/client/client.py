"""The Python client of the lab, on pika (docs/reference/lab-protocol.md).

It does what it is told and reports what it did; it never judges. One event loop does everything. This file is
the control conversation, roles.py plays the roles, wire.py makes and reads messages.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from typing import Any

import pika
from roles import Line, Receiver, Role, Sender
from wire import long

WORK = {"ASSIGN_ROLE": "begin", "START": "start", "STATUS_REQUEST": "status"}


class Client(Line):
    """One client on its control connection; `serve` gives its exit code."""

    roles = {"SENDER": Sender, "RECEIVER": Receiver}  # noqa: RUF012 (impostors have others)

    def __init__(self, given: dict[str, str]) -> None:
        super().__init__(pika.URLParameters(given["url"]))
        self.place.heartbeat = 0  # the loop that answers them does everything else too
        self.given, self.name, self.last, self.terminated = given, given["client_name"], float("inf"), False
        self.held: dict[str, Role] = {}

    async def serve(self) -> int:
        """Listen on the control keys until TERMINATE, silence or the loss of the broker."""
        try:
            self.channel = await self.open()
            queue = (await self.call(self.channel.queue_declare, "", exclusive=True, auto_delete=True)).queue
            for key in ("control_key", "private_key"):
                await self.call(self.channel.queue_bind, queue, "amq.topic", self.given[key])
            await self.call(self.channel.basic_consume, queue, self.on_control, auto_ack=True)
            self.ready()
            limit = float(self.given["control_timeout"])
            await self.until(lambda: self.terminated or time.monotonic() - self.last > limit, every=0.05)
        except pika.exceptions.AMQPError as error:
            sys.stderr.write(f"{self.name}: cannot connect, or was cut off: {error!r}\n")
            return 1
        else:
            return 0 if self.terminated else 3
        finally:
            for role in list(self.held.values()):
                role.task.cancel()
                await role.close()
            await self.close()

    def ready(self) -> None:
        print(f"READY {self.name}", flush=True)  # noqa: T201 (the script waits for it)

    def on_control(self, _channel: Any, _method: Any, request: Any, body: bytes) -> None:
        arrived, self.last = time.time_ns(), time.monotonic()
        fields = request.headers or {}
        kind = fields.get("CONTROL_TYPE", fields.get("CONTROL_TOPIC"))
        if kind == "INVITE":
            self.answer_invite(request, fields.get("TEST_NAME"))
        elif kind == "CLOCK_SYNCH":
            self.reply(request, kind, {"T1": long(fields["T1"]), "T2": long(arrived), "T3": long(time.time_ns())})
        elif kind == "ASSIGN_ROLE":
            make = self.roles["RECEIVER" if fields.get("ROLE") == "RECEIVER" else "SENDER"]
            role = self.held[request.correlation_id] = make(self, request.correlation_id, body)
            role.task = asyncio.ensure_future(self.play(role))
        elif kind == "TERMINATE":
            self.terminated = True
        if kind in WORK and request.correlation_id in self.held:
            self.held[request.correlation_id].requests.put_nowait((request, kind, fields))

    def reply(self, request: Any, kind: str, fields: dict[str, Any], body: str = "") -> None:
        about = {"CONTROL_TYPE": kind, "CLIENT_NAME": self.name, "CLIENT_INSTANCE": self.given["instance"]}
        properties = pika.BasicProperties(headers={**about, **fields}, correlation_id=request.correlation_id)
        self.channel.basic_publish("", request.reply_to, body.encode(), properties)

    def answer_invite(self, request: Any, test: str | None) -> None:
        if test is None or test in self.given["tests"].split():
            key = {"CLIENT_PRIVATE_CONTROL_KEY": self.given["private_key"]}
            self.reply(request, "ENLIST", key, self.given["capabilities"])
        else:
            self.reply(request, "DECLINE", {"REASON": f"there is no test {test}"})

    async def play(self, role: Role) -> None:
        """Do what a role is asked, one after the other: accept it when it is ready, then report."""
        final = False
        while not final:
            request, kind, fields = await role.requests.get()
            went_well = await role.attempt(getattr(role, WORK[kind])(fields))
            begun = went_well and kind == "ASSIGN_ROLE"
            final = not begun and fields.get("FINAL", True)
            if final:
                await role.close()
                del self.held[request.correlation_id]
            told = {"CORRELATION_ID": role.correlation, "MESSAGE_COUNT": role.count}
            body = "" if begun else json.dumps(role.report(), separators=(",", ":"))
            self.reply(request, "ACCEPT_ROLE" if begun else "REPORT", told, body)


if __name__ == "__main__":
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    words = dict(word.split("=", 1) for word in sys.argv[1:])
    sys.exit(asyncio.run(Client(words).serve()))
