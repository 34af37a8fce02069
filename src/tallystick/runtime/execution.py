"""Handle one delivery: read it, find its handler, run it once, and plan how to settle it.

This module settles nothing. An exception of a handler is an outcome; an exception of our own code
is raised.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from math import inf
from random import random
from typing import Any, Final

from tallystick.core.binding import headers_of
from tallystick.core.transport import Delivery
from tallystick.runtime.claims import Claims
from tallystick.runtime.contracts import Contracts, find_breach
from tallystick.runtime.handlers import Handler, Message, Unfit, convert_payload
from tallystick.runtime.masking import mask_text, show_body
from tallystick.runtime.once import run_claimed, run_in_transaction
from tallystick.runtime.reading import Reading, reader
from tallystick.runtime.settlement import (
    Failure,
    Plan,
    Rules,
    plan_failure,
    plan_gated,
    plan_release,
    plan_skipped,
)
from tallystick.runtime.store_url import StoreUnavailable
from tallystick.runtime.telemetry import Probe

__all__ = ["Execution"]

_LOG: Final = logging.getLogger("tallystick.runtime")
_WORN_OUT: Final = Failure("failed", "delivered too often", final=True, kept=True)


class _WornOut(Exception):
    """The broker has handed this message out so often that its handler is not called."""


@dataclass(frozen=True, slots=True)
class Execution:
    """The parts that run handlers: the rules, the handlers, and a loop for async handlers.

    `redact` removes secrets from the text of an exception.
    """

    rules: Rules
    handlers: Mapping[str, Handler]
    clock: Callable[[], float]
    loop: Callable[[], asyncio.AbstractEventLoop]
    redact: Callable[[str], str]
    claims: Claims | None = None
    contracts: Contracts | None = None
    probe: Probe | None = None
    chance: Callable[[], float] = random
    _is_plain: bool = field(init=False)
    """True if no store, probe or limit comes between a message and its handler."""
    _read: Callable[[Delivery, int], Reading] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        plain = self.claims is None and self.probe is None and self.rules.worn_out == inf
        object.__setattr__(self, "_is_plain", plain)
        object.__setattr__(self, "_read", reader(self.rules.binding))

    def show(self, delivery: Delivery) -> None:
        """Log the received message, if this log level is on."""
        shown = show_body(self.contracts, self._read(delivery, 0).urn, delivery.frame.body)
        _LOG.debug("queue %s: received: %s", delivery.queue, shown)

    def run(self, delivery: Delivery, failed: int = 0) -> Plan | None:
        """Return the plan for one delivery that has already `failed` here this many times.

        None: it was handled, and must be acknowledged.
        """
        reading = self._read(delivery, failed)
        if reading.kind != "message":
            return self._turn_away(reading)
        handler = self.handlers.get(reading.urn)
        if handler is None:
            return self._fail(reading, Failure("unknown_urn", f"no handler for {reading.urn!r}"))
        if self.contracts is not None:
            data = reading.envelope.data if reading.envelope is not None else None
            breach = find_breach(self.contracts, "handle", reading.urn, data)
            if breach is not None:
                failure = Failure("failed", str(breach), label=breach.note, final=True)
                return self._fail(reading, failure)
        return self._handle(handler, reading)

    def _turn_away(self, reading: Reading) -> Plan:
        if reading.kind == "gated":
            return plan_gated(self.rules, reading)
        if reading.kind == "poison":
            return self._fail(reading, Failure("poison", reading.fault, label=reading.label))
        return self._fail(reading, Failure("failed", reading.fault, final=True))

    def _handle(self, handler: Handler, reading: Reading) -> Plan | None:
        try:
            if self._is_plain and handler.is_plain and reading.envelope is not None:
                handler.function(reading.envelope.data or {})
                return None
            verdict = self._run_once(handler, reading)
        except StoreUnavailable as error:
            return self._release(reading, self.redact(str(error)))
        except _WornOut:
            return self._fail(reading, _WORN_OUT)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (whatever a handler raises is its outcome)
            name = f"{type(error).__module__}.{type(error).__qualname__}"
            data = reading.envelope.data if reading.envelope is not None else None
            said = mask_text(self.contracts, reading.urn, data, str(error) or name)
            text = self.redact(said)
            failure = Failure("failed", text, name, final=isinstance(error, Unfit))
            return self._fail(reading, failure)
        if verdict == "held":
            return self._release(reading, "another worker is handling this message")
        return None if verdict == "run" else plan_skipped(reading)

    def _run_once(self, handler: Handler, reading: Reading) -> str:
        """Call the handler unless this message has already taken effect; return the result."""
        if self.claims is None and not handler.wants_transaction:
            self._call(handler, reading)
            return "run"
        meta = reading.envelope.meta if reading.envelope is not None else None
        message_id = meta.id if meta is not None else None
        if handler.wants_transaction:
            return run_in_transaction(
                self.claims, message_id, lambda lent: self._call(handler, reading, lent)
            )
        if self.claims is not None and message_id:
            return run_claimed(self.claims, message_id, lambda: self._call(handler, reading))
        self._call(handler, reading)
        return "run"

    def _call(self, handler: Handler, reading: Reading, transaction: Any = None) -> None:
        envelope = reading.envelope
        if envelope is None:
            raise AssertionError("a message without an envelope reached a handler")
        if reading.attempts >= self.rules.worn_out:  # asked here, where it is ours
            raise _WornOut
        payload = convert_payload(handler, envelope.data)
        if self.probe is None:
            self._run(handler, payload, reading, transaction)
        else:
            with self.probe.processing(reading):
                self._run(handler, payload, reading, transaction)

    def _run(self, handler: Handler, payload: Any, reading: Reading, transaction: Any) -> None:
        arguments = [payload]
        if handler.wants_message and reading.envelope is not None:
            delivery = reading.delivery
            headers = headers_of(self.rules.binding, delivery.frame.sections)
            arguments.append(
                Message(reading.urn, delivery.queue, reading.attempts, reading.envelope, headers)
            )
        named = {"transaction": transaction} if handler.wants_transaction else {}
        result = handler.function(*arguments, **named)
        if handler.is_async:
            self._await(result)

    def _await(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        future: Future[Any] = asyncio.run_coroutine_threadsafe(coroutine, self.loop())
        future.result()

    def _release(self, reading: Reading, note: str) -> Plan:
        return plan_release(self.rules, reading, note, now=self.clock())

    def _fail(self, reading: Reading, failure: Failure) -> Plan:
        if self.probe is not None:
            self.probe.failed(reading.delivery.queue, failure.kind, failure.exception)
        return plan_failure(self.rules, reading, failure, now=self.clock(), chance=self.chance())
