"""The Python client of the lab, on pika (docs/reference/lab-protocol.md).

One event loop does everything: the control connection, and the test connections of every role. It
does what it is told and reports what it did; it never judges.
"""

# ruff: noqa: INP001 (a program of its own, not a package)

from __future__ import annotations

import asyncio
import json
import logging
import platform
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import pika
from receiver import Receiver
from role import Role
from sender import Sender
from wire import Closed, Link, tags_in

TESTS = ["TC1_DummyRun", "TC2_BasicP2P", "TC3_BasicPubSub", "TC4_P2PMessageSize",
         "TC5_PubSubMessageSize", "Circuit", "Envelope", "FieldTable"]  # fmt: skip
CANNOT = {
    "immediate": "pika's basic_publish has no such argument",
    "no_local": "pika's basic_consume has no such argument",
}
PARAMETERS = {
    "SENDER": ("immediate", "mandatory", "transactional", "persistent"),
    "RECEIVER": ("no_local", "exclusive", "ack_mode"),
}
TAGS = "tIlDSATFVx"
LOST, USAGE, SILENT = 1, 2, 3


class Client:
    """One client; `run` gives its exit code."""

    roles: Mapping[str, type[Role]] = {"SENDER": Sender, "RECEIVER": Receiver}

    def __init__(self, host: str, port: int, vhost: str, given: Mapping[str, str]) -> None:
        self.place = (host, port, vhost)
        self.given = dict(given)
        self.name = self.given.get("client_name", "python")
        self.key = self.given.get("control_key", "iop.control")
        self.instance = str(uuid.uuid4())
        self.made = 0
        self.held: dict[str, Role] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.last = time.monotonic()

    def heard(self) -> None:
        """Note that something came (IOP-5)."""
        self.last = time.monotonic()

    def fresh_correlation(self) -> str:
        """Make a correlation id nobody else has (IOP-42)."""
        self.made += 1
        return f"{self.instance}.{self.made}"

    def connection_parameters(self) -> pika.ConnectionParameters:
        """Give what every connection is opened with."""
        host, port, vhost = self.place
        credentials = pika.PlainCredentials(
            self.given.get("username", "guest"), self.given.get("password", "guest")
        )
        return pika.ConnectionParameters(
            host, port, vhost, credentials, heartbeat=0, connection_attempts=1
        )

    def run(self) -> int:
        """Serve until TERMINATE, silence or the loss of the broker."""
        return asyncio.run(self.serve())

    async def serve(self) -> int:
        """Listen on the control keys, then wait for the end."""
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.expecting = asyncio.Event()
        self.control = Link(self.connection_parameters())
        try:
            await self.control.open()
            self.channel = await self.control.channel()
            call = self.control.call
            made = await call(self.channel.queue_declare, "", exclusive=True, auto_delete=True)
            queue = made.method.queue
            for key in (self.key, f"{self.key}.{self.name}"):
                await call(self.channel.queue_bind, queue, "amq.topic", key)
            await call(self.channel.basic_consume, queue, self.on_control, auto_ack=True)
        except (OSError, Closed) as error:
            sys.stderr.write(f"{self.name}: {error}\n")
            return LOST
        self.ready()
        watch = asyncio.ensure_future(self.watch())
        await asyncio.wait({self.ended, self.control.closed, watch},
                           return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
        return await self.leave(watch)

    def ready(self) -> None:
        """Tell the start script that we listen."""
        sys.stdout.write(f"READY {self.name}\n")
        sys.stdout.flush()

    async def watch(self) -> None:
        """End after too long a silence, once we expect messages (IOP-5)."""
        limit = float(self.given.get("control_timeout", "60"))
        await self.expecting.wait()
        left = limit
        while left > 0:
            await asyncio.sleep(left)
            left = self.last + limit - time.monotonic()

    async def leave(self, watch: asyncio.Future[None]) -> int:
        """Close everything; say why."""
        code = SILENT if watch.done() else 0 if self.ended.done() else LOST
        watch.cancel()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(watch, *self.tasks, return_exceptions=True)
        for role in self.held.values():
            await role.close()
        await self.control.close()
        return code

    def on_control(self, _channel: Any, _method: Any, properties: Any, body: bytes) -> None:
        """Do what a control message asks."""
        arrived = time.time_ns()
        self.heard()
        fields = properties.headers or {}
        kind = fields.get("CONTROL_TYPE", fields.get("CONTROL_TOPIC"))
        given = {name: literal(value) for name, value in self.given.items()}
        parameters = {**given, **(json.loads(body) if body else {})}
        if kind == "INVITE":
            self.invited(properties, fields, parameters)
        elif kind == "CLOCK_SYNCH":
            stamps = {"T1": long_of(fields["T1"]), "T2": long_of(arrived)}
            self.reply(properties, kind, {**stamps, "T3": long_of(time.time_ns())})
        elif kind == "ASSIGN_ROLE":
            self.begin(self.assigned(properties, fields, parameters))
        elif kind == "TERMINATE" and not self.ended.done():
            self.ended.set_result(None)
        elif kind in ("START", "STATUS_REQUEST") and properties.correlation_id in self.held:
            self.begin(self.asked(properties, kind, fields))

    def begin(self, work: Any) -> None:
        """Do something beside listening."""
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def reply(self, request: Any, kind: str, fields: Mapping[str, Any],
              body: Mapping[str, Any] | None = None) -> None:  # fmt: skip
        """Answer a control message."""
        about = {"CONTROL_TYPE": kind, "CLIENT_NAME": self.name, "CLIENT_INSTANCE": self.instance}
        properties = pika.BasicProperties(
            headers={**about, **fields}, correlation_id=request.correlation_id
        )
        text = json.dumps(body, separators=(",", ":")).encode() if body else b""
        if self.channel.is_open:
            self.channel.basic_publish("", request.reply_to, text, properties)

    def invited(self, request: Any, fields: Mapping[str, Any], parameters: dict[str, Any]) -> None:
        """Answer an invite: compulsory, to a test, or to one we do not know."""
        about = {"CLIENT_PRIVATE_CONTROL_KEY": f"{self.key}.{self.name}"}
        test = fields.get("TEST_NAME")
        missing = {role: self.missing(role, parameters) for role in self.roles}
        able = [role for role in missing if not missing[role]]
        if test is None:
            self.expecting.set()
            self.reply(request, "ENLIST", about, capabilities())
        elif test not in TESTS:
            self.reply(request, "DECLINE", {"REASON": f"there is no test {test}"})
        elif able:
            reason = "; ".join(filter(None, missing.values()))
            more = {"ROLES": ",".join(able), **({"REASON": reason} if reason else {})}
            self.reply(request, "ENLIST", {**about, **more})
        else:
            self.reply(request, "DECLINE", {"REASON": "; ".join(missing.values())})

    def missing(self, role: str, parameters: Mapping[str, Any]) -> str:
        """Say what the library cannot express, if anything is."""
        for name in PARAMETERS[role]:
            value = parameters.get(name)
            reason = CANNOT.get(f"{name}={value}") or (value is True and CANNOT.get(name))
            if reason:
                return f"{name}: {reason}"
        for table in parameters.get("tables", []) if role == "SENDER" else []:
            for one in sorted(tags_in(["F", table]) - set(TAGS)):
                return f"pika cannot write a header value of type {one}"
        return ""

    async def assigned(
        self, request: Any, fields: Mapping[str, Any], given: dict[str, Any]
    ) -> None:
        """Take a role; accept it when ready."""
        kind = fields["ROLE"]
        if reason := self.missing(kind, given):
            self.reply(request, "DECLINE", {"REASON": reason})
            return
        role = self.roles[kind](self, given)
        self.held[request.correlation_id] = role
        try:
            await role.begin()
        except Exception as error:  # noqa: BLE001 (whatever it is, it belongs in the report)
            role.failure = error
            await self.report(request, role, final=True)
            return
        more = {"CORRELATION_ID": role.correlation} if isinstance(role, Sender) else {}
        self.reply(request, "ACCEPT_ROLE", more)

    async def asked(self, request: Any, kind: str, fields: Mapping[str, Any]) -> None:
        """Do what START or STATUS_REQUEST says, one after the other, and report."""
        role = self.held[request.correlation_id]
        async with role.lock:
            try:
                if kind == "START" and isinstance(role, Sender):
                    await role.start(fields)
                elif kind == "STATUS_REQUEST":
                    await role.status(fields)
            except Exception as error:  # noqa: BLE001 (whatever it is, it belongs in the report)
                role.failure = error
            await self.report(request, role, final=fields.get("FINAL", True))

    async def report(self, request: Any, role: Role, *, final: bool) -> None:
        """Send a report; a final one is the last of its role."""
        if final:
            self.held.pop(request.correlation_id, None)
            await role.close()
        more = {"CORRELATION_ID": role.correlation} if isinstance(role, Sender) else {}
        self.reply(request, "REPORT", {"MESSAGE_COUNT": role.count(), **more}, role.report())


def literal(text: str) -> Any:
    """Read a value of the command line as JSON, or else as text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def long_of(number: int) -> int:
    """Make pika write 64 bits."""
    from pika.compat import long  # noqa: PLC0415

    return long(number)


def capabilities() -> dict[str, Any]:
    """Say what we are and what we cannot do."""
    return {
        "protocol": 1, "language": "python",
        "runtime": f"{platform.python_implementation()} {platform.python_version()}",
        "library": "pika", "library_version": pika.__version__, "platform": sys.platform,
        "tests": TESTS, "cannot": CANNOT, "field_tags": TAGS,
    }  # fmt: skip


def read_arguments(arguments: Sequence[str]) -> tuple[str, int, str, dict[str, str]]:
    """Read -b HOST -p PORT -v VHOST and name=value."""
    options = {"-b": "127.0.0.1", "-p": "5672", "-v": "/"}
    given: dict[str, str] = {}
    left = list(arguments)
    while left:
        one = left.pop(0)
        if one in options and left:
            options[one] = left.pop(0)
        elif "=" in one and not one.startswith("-"):
            name, _, value = one.partition("=")
            given[name] = value
        else:
            sys.stderr.write(f"what is {one!r}? use -b HOST -p PORT -v VHOST name=value\n")
            sys.exit(USAGE)
    return options["-b"], int(options["-p"]), options["-v"], given


def main(kind: type[Client] = Client) -> int:
    """Run a client from the command line."""
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    return kind(*read_arguments(sys.argv[1:])).run()


if __name__ == "__main__":
    sys.exit(main())
