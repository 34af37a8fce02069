"""Control messages as values (IOP-25 to IOP-31, 34, 41, 48, 49; docs/reference/lab-protocol.md).

`write_control` gives header fields and a body for any AMQP library; `read_control` reads them. A
message that violates the protocol is `Rejected`: the coordinator logs it and continues.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from tallystick.core.errors import Rejected

__all__ = ["CONTROL_KEY", "EXCHANGE", "Control", "Kind", "Role", "read_control", "write_control"]

CONTROL_KEY: Final = "iop.control"
EXCHANGE: Final = "amq.topic"
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1


class Kind(StrEnum):
    """Every type of control message."""

    INVITE = "INVITE"
    ENLIST = "ENLIST"
    DECLINE = "DECLINE"
    ASSIGN_ROLE = "ASSIGN_ROLE"
    ACCEPT_ROLE = "ACCEPT_ROLE"
    START = "START"
    STATUS_REQUEST = "STATUS_REQUEST"
    REPORT = "REPORT"
    CLOCK_SYNCH = "CLOCK_SYNCH"
    TERMINATE = "TERMINATE"


class Role(StrEnum):
    """The two roles of a test case (IOP-28)."""

    SENDER = "SENDER"
    RECEIVER = "RECEIVER"


_TIMES: Final = ("T1", "T2", "T3")
_FROM_CLIENTS: Final = {
    Kind.ENLIST: ("CLIENT_PRIVATE_CONTROL_KEY",),
    Kind.DECLINE: ("REASON",),
    Kind.ACCEPT_ROLE: (),
    Kind.REPORT: ("MESSAGE_COUNT",),
    Kind.CLOCK_SYNCH: _TIMES,
}
"""What a client may send, and the header fields it must have besides its name and instance."""


@dataclass(frozen=True, slots=True)
class Control:
    """One control message: header fields besides CONTROL_TYPE, the JSON body, the assignment."""

    kind: Kind
    fields: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)
    assignment: str = ""

    @property
    def client(self) -> str:
        """The client that sent it."""
        return str(self.fields.get("CLIENT_NAME", ""))


def write_control(control: Control) -> tuple[dict[str, Any], bytes]:
    """Give the header fields and the body."""
    headers = {"CONTROL_TYPE": control.kind.value, **control.fields}
    body = json.dumps(control.body, separators=(",", ":")).encode() if control.body else b""
    return headers, body


def read_control(headers: Mapping[str, Any], body: bytes, assignment: str) -> Control:
    """Read a message of a client."""
    kind = headers.get("CONTROL_TYPE", headers.get("CONTROL_TOPIC"))
    if kind not in _FROM_CLIENTS:
        raise _rejected(f"a client sent an unknown CONTROL_TYPE {kind!r}", "CONTROL_TYPE")
    for name in ("CLIENT_NAME", "CLIENT_INSTANCE", *_FROM_CLIENTS[Kind(kind)]):
        if name not in headers:
            raise _rejected(f"{kind} has no {name}", name)
    count = headers.get("MESSAGE_COUNT", 0)
    if not _is_integer(count) or not _INT_MIN <= count <= _INT_MAX:
        raise _rejected("MESSAGE_COUNT is not a signed 32-bit integer", "MESSAGE_COUNT")
    for name in _TIMES if kind == Kind.CLOCK_SYNCH else ():
        if not _is_integer(headers[name]):
            raise _rejected(f"{name} is not an integer", name)
    try:
        content = json.loads(body) if body else {}
    except (ValueError, RecursionError) as error:
        raise _rejected(f"the body of {kind} is not JSON: {error}", "body") from error
    if not isinstance(content, dict):
        raise _rejected(f"the body of {kind} is not an object", "body")
    fields = {name: value for name, value in headers.items() if name != "CONTROL_TYPE"}
    return Control(Kind(kind), fields, content, assignment)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _rejected(why: str, place: str) -> Rejected:
    return Rejected(why, code="control_message", pointer=f"/{place}")
