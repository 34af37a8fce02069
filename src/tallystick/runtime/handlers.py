"""Handlers by URN: plain or async functions of the payload, and of the message if they take it.

    @app.handler("urn:babel:orders:created")
    def created(order: Order) -> None: ...            a dataclass or msgspec struct, validated

    @app.handler("urn:babel:orders:paid")
    async def paid(data, message: Message) -> None: ...

    @app.handler("urn:babel:orders:shipped")
    def shipped(order: Order, transaction: sqlite3.Connection) -> None: ...

A payload that does not match its type is never tried again. A parameter named `transaction`
receives the open transaction of the app's idempotency store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass
from inspect import Parameter, iscoroutinefunction, signature
from typing import Any, Final, get_type_hints

import msgspec

from tallystick.core.envelope import ASCII_SPACE, Envelope
from tallystick.core.errors import UsageError

__all__ = ["Handler", "Message", "Unfit", "convert_payload", "describe_handler"]

_TRANSACTION: Final = "transaction"
_POSITIONAL: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class Unfit(Exception):
    """The payload does not match the handler's type; another attempt cannot help."""


@dataclass(frozen=True, slots=True)
class Message:
    """The data about a message that a handler may use beside its payload."""

    urn: str
    queue: str
    attempts: int
    envelope: Envelope = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def id(self) -> str | None:
        """The message's own id, `meta.id`: the key for idempotency."""
        return self.envelope.meta.id if self.envelope.meta else None

    @property
    def trace_id(self) -> str | None:
        """The id of the trace that the message belongs to."""
        return self.envelope.trace_id


@dataclass(frozen=True, slots=True)
class Handler:
    """A function for one URN, the type of its payload, and how to call it."""

    urn: str
    function: Callable[..., Any]
    payload: Any = None
    wants_message: bool = False
    is_async: bool = False
    wants_transaction: bool = False
    is_plain: bool = field(init=False)
    """True if the function takes only the unconverted payload."""

    def __post_init__(self) -> None:
        more = self.wants_message or self.is_async or self.wants_transaction
        object.__setattr__(self, "is_plain", self.payload is None and not more)


def describe_handler(urn: str, function: Callable[..., Any]) -> Handler:
    """Read from a function's signature how it is called."""
    if not urn.strip(ASCII_SPACE):
        raise UsageError("the URN of a handler is blank", code="handler")
    parameters = signature(function).parameters
    taken = [
        one for one in parameters.values() if one.kind in _POSITIONAL and one.name != _TRANSACTION
    ]
    required = [one for one in taken if one.default is Parameter.empty]
    if not taken or len(required) > 2:
        name = getattr(function, "__qualname__", str(function))
        raise UsageError(
            f"the handler {name} takes {len(required)} arguments",
            code="handler",
            hint="a handler takes the payload, or the payload and the message",
        )
    is_async = iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__)
    if is_async and _TRANSACTION in parameters:
        raise UsageError(
            "an async handler cannot use a transaction: it would block the event loop",
            code="handler",
            hint="use a plain function; it runs in its own thread",
        )
    return Handler(
        urn.strip(ASCII_SPACE),
        function,
        _payload_type(function, taken[0].name),
        len(required) == 2,
        is_async,
        _TRANSACTION in parameters,
    )


def _payload_type(function: Callable[..., Any], first: str) -> Any:
    hint = get_type_hints(function).get(first)
    typed = isinstance(hint, type) and (is_dataclass(hint) or issubclass(hint, msgspec.Struct))
    return hint if typed else None


def convert_payload(handler: Handler, data: Mapping[str, Any] | None) -> Any:
    """Give the payload as the handler's type, or raise `Unfit`; without a type it is a dict."""
    if handler.payload is None:
        return data or {}
    try:
        return msgspec.convert(data, handler.payload)
    except msgspec.ValidationError as error:
        raise Unfit(f"the payload is not a valid {handler.payload.__name__}: {error}") from error
