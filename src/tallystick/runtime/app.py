"""`App`: publish and handle messages over any broker, without losing one.

    app = App("redis://127.0.0.1:6379", queue="orders")

    @app.handler("urn:babel:orders:created")
    def created(order: Order) -> None: ...

    app.publish("urn:babel:orders:created", Order(7))
    app.run()

Delivery is at least once: a message is acknowledged only after its handler has finished and its
outcome is settled. When `publish` returns, the broker has confirmed the message. No log line and no
repr shows the secrets of the URL. With `capture=FOLDER` every frame sent or received is written to
that folder (docs/guides/capture.md).
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Final, Self, TypeVar

from tallystick.core.binding import project_as, read_options
from tallystick.core.envelope import Envelope, make
from tallystick.core.errors import TallystickError, UsageError
from tallystick.core.frame import Frame
from tallystick.core.transport import Transport, redact
from tallystick.runtime.address import Link, link_to
from tallystick.runtime.capture import Sink, wrap
from tallystick.runtime.capture_files import CaptureFiles
from tallystick.runtime.claims import Claims, SeenClaims, Transactional, open_claims
from tallystick.runtime.contracts import open_contracts, refuse_breach
from tallystick.runtime.dead_letter import dead_letter_queue
from tallystick.runtime.execution import Execution
from tallystick.runtime.handlers import Handler, describe_handler
from tallystick.runtime.idempotency import Seen
from tallystick.runtime.ids import new_uuid
from tallystick.runtime.loop import Loop
from tallystick.runtime.masking import show_body
from tallystick.runtime.once import no_transaction
from tallystick.runtime.payload import read_payload
from tallystick.runtime.redrive import Redriven, redrive
from tallystick.runtime.settings import Settings
from tallystick.runtime.settlement import Rules
from tallystick.runtime.shutdown import Signals
from tallystick.runtime.status import Status
from tallystick.runtime.telemetry import Telemetry, open_probe
from tallystick.runtime.worker import Worker
from tallystick.schemas.catalog import Catalog

__all__ = ["App"]

_F = TypeVar("_F", bound=Callable[..., Any])
_BATCH: Final = 500
_LOG: Final = logging.getLogger("tallystick.runtime")


class App:
    """Publish and handle messages over one broker."""

    def __init__(
        self,
        url: str,
        *,
        catalog: str | Path | Catalog | None = None,
        idempotency: str | Claims | None = None,
        seen: Seen | None = None,
        telemetry: bool | Telemetry = False,
        capture: str | Path | Sink | None = None,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] = new_uuid,
        **settings: Any,
    ) -> None:
        try:
            self.settings: Final = Settings(**settings)
        except TypeError as error:
            known = ", ".join(Settings.__dataclass_fields__)
            raise UsageError(f"unknown setting: {error}", code="setting", hint=known) from error
        self.link: Final[Link] = link_to(url)
        self._probe: Final = open_probe(telemetry, self.link)
        self._contracts: Final = open_contracts(
            catalog, self.settings.validate, self.settings.on_unknown_schema
        )
        self._claims: Final = _claims(idempotency, seen, clock)
        self._owns_sink: Final = isinstance(capture, str | Path)
        self._sink: Final = CaptureFiles(capture) if isinstance(capture, str | Path) else capture
        self._clock: Final = clock
        self._new_id: Final = new_id
        self._handlers: Final[dict[str, Handler]] = {}
        self._stopping: Final = Event()
        self._lock: Final = Lock()
        self._publisher: Transport | None = None
        self._known_queues: Final[set[str]] = set()
        self._loop: Final = Loop()
        self._workers: tuple[Worker, ...] = ()

    def __repr__(self) -> str:
        return f"App({str(self.link.address)!r}, queue={self.settings.queue!r})"

    def handler(self, urn: str) -> Callable[[_F], _F]:
        """Register a function for a URN."""

        def register(function: _F) -> _F:
            handler = describe_handler(urn, function)
            if handler.wants_transaction and not isinstance(self._claims, Transactional):
                raise no_transaction()
            if handler.urn in self._handlers:
                raise UsageError(f"there are two handlers for {handler.urn!r}", code="handler")
            self._handlers[handler.urn] = handler
            return function

        return register

    def publish(
        self,
        urn: str,
        data: Any,
        *,
        queue: str = "",
        delay: float | None = None,
        headers: Mapping[str, str] | None = None,
        trace_id: str = "",
        key: str | bytes | None = None,
        group: str = "",
    ) -> str:
        """Publish one message and return its id. The broker has then confirmed the message.

        Messages with the same `key` stay in order if the broker has keys, groups or sessions.
        `group` is another name for `key`, used by ordered queues.
        """
        queue = queue or self.settings.queue
        options: dict[str, Any] = {"headers": headers or {}, "key": key}
        if group or isinstance(key, str):
            options["group"] = group or key
        if delay is not None:
            options |= {"delay": delay, "now": self._clock()}
        return self._publish(queue, [(urn, data)], options, trace_id)[0]

    def publish_all(self, messages: Iterable[tuple[str, Any]], *, queue: str = "") -> list[str]:
        """Publish many messages, `(urn, data)` each, in order and in batches; return their ids.

        A payload is released when its message is made: a batch of payloads would trigger a full
        garbage collection.
        """
        queue = queue or self.settings.queue
        ids: list[str] = []
        rest = iter(messages)
        for first in rest:
            ids += self._publish(queue, chain((first,), islice(rest, _BATCH - 1)), {})
        return ids

    def run(
        self,
        queues: Sequence[str] = (),
        *,
        limit: int | None = None,
        idle: float | None = None,
        signals: bool = True,
    ) -> Counter[str]:
        """Handle messages until stopped, or until `limit` are settled or `idle` seconds pass.

        Returns the number of messages by outcome. With `signals`, the first SIGINT or SIGTERM
        stops it gracefully, and a second one stops it at once.
        """
        self._stopping.clear()
        names = tuple(queues) or (self.settings.queue,)
        workers = [self._worker(name) for name in names]
        self._workers = tuple(worker for worker, _ in workers)
        failures: list[BaseException] = []
        threads = [
            Thread(
                target=_guarded,
                args=(worker, transport, limit, idle, failures, self._stopping),
                name=f"tallystick-{name}",
                daemon=True,
            )
            for name, (worker, transport) in zip(names, workers, strict=True)
        ]
        with Signals(self._stopping, enabled=signals):
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self._loop.close()
        if failures:
            raise failures[0]
        return self.counts()

    def counts(self) -> Counter[str]:
        """Return the number of messages by outcome, of this run or of the last one."""
        copies = (Counter(dict(worker.counts)) for worker in self._workers)  # each at one moment
        return sum(copies, Counter[str]())

    def status(self) -> Status:
        """Return the status of this run, or of the last one; safe from any thread."""
        errors = [worker.last_error for worker in self._workers if worker.last_error]
        return Status(
            self.counts(),
            sum(worker.in_flight for worker in self._workers),
            errors[-1] if errors else "",
        )

    def redrive(self, queue: str = "", *, to: str = "", limit: int | None = None) -> Redriven:
        """Send the dead letters of a queue back to their original queues, or to another queue."""
        transport = self._open()
        try:
            graveyard = self._graveyard(queue or self.settings.queue)
            transport.ensure([graveyard, *([to] if to else [])])
            return redrive(self.link.binding, transport, graveyard, to=to, limit=limit)
        finally:
            transport.close()

    def stop(self) -> None:
        """Ask `run` to end gracefully; safe from any thread."""
        self._stopping.set()

    def close(self) -> None:
        """Close the connections to the broker and the idempotency store, and finish the capture."""
        if self._claims is not None:
            self._claims.close()
        with self._lock:
            if self._publisher is not None:
                self._publisher.close()
                self._publisher = None
        if self._owns_sink and self._sink is not None:
            self._sink.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _publish(
        self,
        queue: str,
        messages: Iterable[tuple[str, Any]],
        options: Mapping[str, Any],
        trace_id: str = "",
    ) -> list[str]:
        probe = self._probe
        if probe is None:
            return self._send(queue, self._make_all(messages, queue, trace_id), options)
        with probe.publishing(queue) as sending:
            batch = self._make_all(messages, queue, trace_id or sending.trace_id)
            headers = {**sending.headers, **options.get("headers", {})}
            sending.describe(batch)
            try:
                ids = self._send(queue, batch, {**options, "headers": headers})
            except TallystickError as error:
                probe.sent(queue, len(batch), error)
                raise
            probe.sent(queue, len(batch))
        return ids

    def _make_all(
        self, messages: Iterable[tuple[str, Any]], queue: str, trace_id: str
    ) -> list[Envelope]:
        return [self._make(urn, data, queue, trace_id) for urn, data in messages]

    def _open(self) -> Transport:
        transport = self.link.open()
        if self._sink is None:
            return transport
        return wrap(transport, self._sink, broker=self.link.address.broker)

    def _make(self, urn: str, data: Any, queue: str, trace_id: str) -> Envelope:
        envelope = make(
            urn,
            read_payload(data),
            now_ms=int(self._clock() * 1000),
            new_id=self._new_id,
            trace_id=trace_id,
            queue=queue,
        )
        refuse_breach(self._contracts, envelope)
        return envelope

    def _send(self, queue: str, batch: list[Envelope], options: Mapping[str, Any]) -> list[str]:
        with self._lock:
            if self._publisher is None:
                self._publisher = self._open()
            transport = self._publisher
            given = read_options({"queue": queue, **transport.capabilities.options, **options})
            binding = self.link.binding
            frames: list[Frame] = [project_as(binding, envelope, given) for envelope in batch]
            if queue not in self._known_queues:
                transport.ensure([queue])
                self._known_queues.add(queue)
            transport.send(queue, frames)
        if _LOG.isEnabledFor(logging.DEBUG):
            for envelope, frame in zip(batch, frames, strict=True):
                shown = show_body(self._contracts, envelope.urn, frame.body)
                _LOG.debug("queue %s: published: %s", queue, shown)
        return [str(envelope.meta.id if envelope.meta else "") for envelope in batch]

    def _worker(self, queue: str) -> tuple[Worker, Transport]:
        transport = self._open()
        rules = Rules(self.link.binding, transport.capabilities, self.settings)
        execution = Execution(
            rules,
            self._handlers,
            self._clock,
            self._loop.get,
            self._redact,
            self._claims,
            self._contracts,
            self._probe,
        )
        transport.ensure([queue, self._graveyard(queue)])
        return Worker(transport, queue, execution, self._stopping), transport

    def _graveyard(self, queue: str) -> str:
        return dead_letter_queue(
            self.link.binding,
            queue,
            explicit=self.settings.dead_letter_queue,
            suffix=self.settings.dead_letter_suffix,
        )

    def _redact(self, text: str) -> str:
        return redact(self.link.address, text)


def _guarded(
    worker: Worker,
    transport: Transport,
    limit: int | None,
    idle: float | None,
    failures: list[BaseException],
    stopping: Event,
) -> None:
    """Run a worker, keep its exception for the caller, and close its connection."""
    try:
        worker.run(limit=limit, idle=idle)
    except BaseException as error:  # noqa: BLE001 (raised again by the caller's thread)
        failures.append(error)
        stopping.set()  # the others stop as well: a dead queue is never silent
    finally:
        transport.close()


def _claims(
    given: str | Claims | None, seen: Seen | None, clock: Callable[[], float]
) -> Claims | None:
    if given is not None and seen is not None:
        raise UsageError("idempotency and seen cannot be used together", code="setting")
    if seen is not None:
        return SeenClaims(seen)
    return open_claims(given, clock) if isinstance(given, str) else given
