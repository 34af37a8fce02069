"""A `Transport` sends and receives frames, not envelopes. Every blocking call has a timeout.

    send      when it returns, the broker has confirmed the frames; a batch is sent together; a
              frame that is known to be too large for the broker is `Refused` before any is sent
    receive   up to `limit` deliveries, waiting `timeout` seconds for the first; a limit of 0 takes
              none, and lets a group of consumers rebalance a `log`
    ack       the deliveries are done
    release   let the broker deliver it again, after a delay if the broker `waits`
    replace   send a frame in place of a delivery: in one step if possible, else send, then ack
    leave     do not settle it: the broker delivers it again by its own rule
    give_up   leave it to the broker's own dead-letter policy
    renew     extend the leases of deliveries that are still in work; gives the lost ones

One thread at a time uses a transport. A call that fails raises `Unavailable` and settles nothing;
the next call connects again. A delivery of a lost connection cannot be settled: the broker
delivers it again. The features of a broker are data (`Capabilities`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, runtime_checkable

from msgspec import Struct

from tallystick.core.errors import Unavailable, UsageError
from tallystick.core.frame import Frame

__all__ = [
    "Address", "Capabilities", "Countable", "Delivery", "Transport", "check_options", "is_on",
    "lost", "read_number", "redact", "unreachable",
]  # fmt: skip

_MOST: Final = 2_000_000
_ON: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


class Delivery(Struct, frozen=True, gc=False):
    """One delivered frame, its queue, and the broker's handle for it.

    `fault` says why the broker cannot count this body; the body is then poison. `lease` is how
    many seconds remain until the broker delivers it again, unless it is renewed; None: no limit.
    Deliveries of one `group` are in order, and are handled one after the other.
    """

    frame: Frame
    queue: str
    handle: Any = None
    fault: str = ""
    lease: float | None = None
    group: str = ""

    def __repr__(self) -> str:
        return f"Delivery({self.frame!r}, {self.queue!r}, fault={self.fault!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The features of a broker.

    `delays`: it can delay sent messages. `waits`: it can also delay released messages.
    `headers`: it carries out-of-band headers. `ordered`: one consumer gets a queue in the order of
    sending. `returns`: what ends an unsettled delivery, a `deadline` or the end of the
    `connection`. `counts`: a repeated delivery has a higher `attempts`. `keyed`: messages of
    one key stay in order, even with competing consumers. `warm_up`: seconds until a new consumer
    may get its first message. `log`: a released message is delivered again with all that follow it,
    settled or not. `buffered`: the client fetches messages in advance, so receiving
    costs no round trip. `options` go to every projection (`tiers_ms`, `delayed_exchange`).
    """

    delays: bool
    headers: bool
    ordered: bool
    returns: str
    counts: bool
    waits: bool = False
    keyed: bool = False
    warm_up: float = 0.0
    log: bool = False
    buffered: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


class Transport(Protocol):
    """One connection to one broker."""

    @property
    def capabilities(self) -> Capabilities:
        """The features of the broker."""

    def ensure(self, queues: Sequence[str]) -> None:
        """Create the queues that do not exist; existing queues stay unchanged."""

    def send(self, queue: str, frames: Sequence[Frame]) -> None:
        """Send frames in order; when this returns, the broker has confirmed them."""

    def receive(self, queue: str, limit: int, timeout: float) -> list[Delivery]:
        """Give up to `limit` deliveries; an empty list when none came in time."""

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Acknowledge the deliveries."""

    def release(self, delivery: Delivery, delay: float = 0.0) -> None:
        """Let the broker deliver it again; `delay` (seconds) is used if the broker `waits`."""

    def replace(self, delivery: Delivery, queue: str, frame: Frame) -> None:
        """Send the frame, then settle the delivery; it is never settled if sending failed."""

    def leave(self, delivery: Delivery) -> None:
        """Leave it unsettled: the broker delivers it again by its own rule."""

    def give_up(self, delivery: Delivery, reason: str) -> None:
        """Leave it to the broker's own dead-letter policy."""

    def renew(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Renew the lease of each delivery; give those whose lease had ended: they are lost."""

    def close(self) -> None:
        """End the connection; unsettled deliveries stay with the broker. Safe to repeat."""


@runtime_checkable
class Countable(Protocol):
    """A transport whose broker can count the waiting messages."""

    def backlog(self, queue: str) -> int:
        """Give the number of messages that wait in a queue, as far as the broker knows."""


@dataclass(frozen=True, slots=True)
class Address:
    """The parts of a broker URL. Its text and its repr show no secret."""

    broker: str
    scheme: str
    host: str = ""
    port: int | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    path: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """The password in its URL-encoded form."""

    def __str__(self) -> str:
        login = f"{self.user}{':***' if self.password else ''}@" if self.user else ""
        port = f":{self.port}" if self.port is not None else ""
        path = f"/{self.path}" if self.path else ""
        return f"{self.scheme}://{login}{self.host}{port}{path}"


Connect = Callable[[Address], Callable[[], Transport]]
"""`connect` of a transport module: an address -> a function that opens one more connection."""


def check_options(address: Address, known: Sequence[str]) -> None:
    """Raise `UsageError` for a URL option that the transport does not know."""
    unknown = sorted(address.options.keys() - set(known))
    if unknown:
        hint = f"known options: {', '.join(sorted(known)) or 'none'}"
        raise UsageError(
            f"{address.broker} has no URL option {unknown[0]!r}", code="url_option", hint=hint
        )


def read_number(address: Address, name: str, default: float) -> float:
    """Read a numeric URL option: from 0 to the longest wait that the system allows."""
    text = address.options.get(name)
    if text is None:
        return default
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= _MOST:
        raise UsageError(
            f"`{name}` must be a number from 0 to {_MOST}, found {text!r}",
            code="url_option",
            hint=f"for example {name}={default:g}",
        )
    return number


def is_on(address: Address, name: str, *, default: bool = False) -> bool:
    """Read a URL option that is on or off."""
    text = address.options.get(name)
    if text is None:
        return default
    if text.lower() not in _ON:
        raise UsageError(
            f"`{name}` must be 1 or 0, found {text!r}",
            code="url_option",
            hint=f"write {name}=1 or {name}=0",
        )
    return _ON[text.lower()]


_CAUSES: Final = (
    ("login", ("wrongpass", "noauth", "username-password", "access_refused", "authenticat",
               "unauthorized", "not authorized", "invalidclienttokenid", "signaturedoesnotmatch"),
     "the broker refused the login: check the user and the password in the URL"),
    ("untrusted", ("certificate", "self-signed", "ssl handshake"),
     "the certificate is not trusted: name its certificate authority with ca=FILE in the URL"),
    ("full", ("maxmemory", "misconf", "no space", "disk", "resource-limit", "quota", "blocked"),
     "the broker is full and rejected the message: free some space, then send again"),
)  # fmt: skip
"""Code, words in the client's error text, and the hint; the first matching row is used."""
_DOWN: Final = "is the broker running? `tally broker up` starts one; check the host, port and login"


def unreachable(address: Address, error: BaseException) -> Unavailable:
    """Make the error for a failed call to a broker; the text holds no secrets."""
    text = redact(address, str(error).strip().partition("\n")[0] or type(error).__name__)
    found = text.lower()
    code, hint = next(
        ((code, hint) for code, words, hint in _CAUSES if any(word in found for word in words)),
        ("broker", _DOWN),
    )
    return Unavailable(f"{address}: {text}", code=code, hint=hint)


def redact(address: Address, text: str) -> str:
    """Remove the password from a text, plain and URL-encoded."""
    for secret in (address.password, *address.secrets):
        text = text.replace(secret, "***") if secret else text
    return text


def lost() -> Unavailable:
    """Make the error for a delivery that can no longer be settled; the broker delivers it again."""
    return Unavailable(
        "the connection or the lock of this delivery was lost; the broker will deliver it again",
        code="delivery_lost",
        hint="a handler can get a message more than once: make it idempotent",
    )
