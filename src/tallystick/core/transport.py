"""A `Transport` moves frames. It knows no envelope, and every blocking call has a timeout.

    send      confirmed by the broker when it returns; a batch is sent together; a frame that a
              transport knows to be too much for its broker is `Refused` before any is sent
    receive   up to `limit` deliveries, waiting `timeout` seconds for the first; a limit of 0 takes
              none, and lets a group of consumers share a `log` out anew
    ack       these are done
    release   hand it out again, natively, after a delay where the broker `waits`
    replace   send a frame in place of a delivery: at once where the broker can, else send, then ack
    leave     do not settle it: the broker hands it out again by its own rule
    give_up   leave it to the broker's own dead-letter policy
    renew     these are still being worked on: begin their time again; gives those that are lost

One thread at a time uses a transport. A call that fails raises `Unavailable` and settles nothing;
the next call connects again. A delivery of a connection that is gone cannot be settled: the broker
hands it out again. What a broker can do by itself is data (`Capabilities`).
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
    "lost", "missing_client", "read_number", "redact", "unreachable",
]  # fmt: skip

_MOST: Final = 2_000_000
_ON: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


class Delivery(Struct, frozen=True, gc=False):
    """One frame that was handed out, from which queue, and what the broker knows it by.

    `fault` says why the broker itself cannot count this body; it is poison then. `lease` is how
    many seconds it has until the broker hands it out again, unless it is renewed; None: no limit.
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
    """What a broker does by itself.

    `delays`: it can hold back what was sent, and where it `waits` also what was released.
    `headers`: it carries out-of-band headers. `ordered`: one consumer gets a queue in the order of
    sending. `returns`: what brings an unsettled delivery back, a `deadline` or the end of the
    `connection`. `counts`: a delivery that comes back shows it in `attempts`. `keyed`: messages of
    one key stay in order, whoever competes for them. `warm_up`: seconds until a new consumer may
    get its first message. `log`: what is released is handed out again with all that follows it,
    settled or not. `buffered`: the client has messages before they are asked for, so receiving
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
        """What the broker does by itself."""

    def ensure(self, queues: Sequence[str]) -> None:
        """Make sure that these queues exist; one that does is left as it is."""

    def send(self, queue: str, frames: Sequence[Frame]) -> None:
        """Send frames in order; they are the broker's when this returns."""

    def receive(self, queue: str, limit: int, timeout: float) -> list[Delivery]:
        """Give up to `limit` deliveries; an empty list when none came in time."""

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Tell the broker that these are done."""

    def release(self, delivery: Delivery, delay: float = 0.0) -> None:
        """Hand it out again, natively; `delay` in seconds is kept where the broker `waits`."""

    def replace(self, delivery: Delivery, queue: str, frame: Frame) -> None:
        """Send the frame and end the delivery; never the second without the first."""

    def leave(self, delivery: Delivery) -> None:
        """Leave it unsettled: the broker hands it out again by its own rule."""

    def give_up(self, delivery: Delivery, reason: str) -> None:
        """Leave it to the broker's own dead-letter policy."""

    def renew(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Begin the lease of each again; give those whose lease was over and that are lost."""

    def close(self) -> None:
        """End the connection; what is unsettled stays with the broker. Safe to repeat."""


@runtime_checkable
class Countable(Protocol):
    """A transport whose broker tells how many messages wait."""

    def backlog(self, queue: str) -> int:
        """Give how many messages of a queue nobody has taken yet, as far as the broker knows."""


@dataclass(frozen=True, slots=True)
class Address:
    """A broker's URL, taken apart. As text, and in a repr, it shows no secret."""

    broker: str
    scheme: str
    host: str = ""
    port: int | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    path: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """The password as URLs write it."""

    def __str__(self) -> str:
        login = f"{self.user}{':***' if self.password else ''}@" if self.user else ""
        port = f":{self.port}" if self.port is not None else ""
        path = f"/{self.path}" if self.path else ""
        return f"{self.scheme}://{login}{self.host}{port}{path}"


Connect = Callable[[Address], Callable[[], Transport]]
"""What a transport's module offers as `connect`: an address -> how to open one more connection."""


def check_options(address: Address, known: Sequence[str]) -> None:
    """Refuse an option of the URL that the transport does not know."""
    unknown = sorted(address.options.keys() - set(known))
    if unknown:
        hint = f"it knows {', '.join(sorted(known))}" if known else "it knows none"
        raise UsageError(
            f"{address.broker} has no URL option {unknown[0]!r}", code="url_option", hint=hint
        )


def read_number(address: Address, name: str, default: float) -> float:
    """Read an option of the URL: a number from 0 that the waits of the system can hold."""
    text = address.options.get(name)
    if text is None:
        return default
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= _MOST:
        raise UsageError(
            f"{name} is {text!r}, not a number from 0 to {_MOST}",
            code="url_option",
            hint=f"for example {name}={default:g}",
        )
    return number


def is_on(address: Address, name: str, *, default: bool = False) -> bool:
    """Read an option of the URL that is on or off."""
    text = address.options.get(name)
    if text is None:
        return default
    if text.lower() not in _ON:
        raise UsageError(
            f"{name} is {text!r}, not 1 or 0", code="url_option", hint=f"write {name}=1 or {name}=0"
        )
    return _ON[text.lower()]


_CAUSES: Final = (
    ("login", ("wrongpass", "noauth", "username-password", "access_refused", "authenticat",
               "unauthorized", "not authorized", "invalidclienttokenid", "signaturedoesnotmatch"),
     "the broker refused the login: check the user and the password in the URL"),
    ("untrusted", ("certificate", "self-signed", "ssl handshake"),
     "the certificate is not one to trust: give its authority with ca=FILE in the URL"),
    ("full", ("maxmemory", "misconf", "no space", "disk", "resource-limit", "quota", "blocked"),
     "the broker has no room and took nothing: make room, then send again"),
)  # fmt: skip
"""Code, words in what a client says, and what to do; the first row that fits counts."""
_DOWN: Final = "is the broker up? `tally broker up` starts one; check the host, port and login"


def unreachable(address: Address, error: BaseException) -> Unavailable:
    """Say that a broker did not do what it was asked to, and why, without its secrets."""
    text = redact(address, str(error).strip().partition("\n")[0] or type(error).__name__)
    found = text.lower()
    code, hint = next(
        ((code, hint) for code, words, hint in _CAUSES if any(word in found for word in words)),
        ("broker", _DOWN),
    )
    return Unavailable(f"{address}: {text}", code=code, hint=hint)


def redact(address: Address, text: str) -> str:
    """Take the password out of a text, as it is and as a URL writes it."""
    for secret in (address.password, *address.secrets):
        text = text.replace(secret, "***") if secret else text
    return text


def lost() -> Unavailable:
    """Say that a delivery cannot be settled any more; the broker hands it out again."""
    return Unavailable(
        "the connection or reservation of this delivery is gone; the broker hands it out again",
        code="delivery_lost",
        hint="handlers see a message more than once: make them idempotent",
    )


def missing_client(extra: str, error: ImportError) -> Unavailable:
    """Say that the client library of a broker is not installed."""
    return Unavailable(
        f"the client library for {extra} is not installed ({error.name})",
        code="no_client",
        hint=f"pip install 'tallystick[{extra}]'",
    )
