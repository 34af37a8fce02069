"""`App`: publish messages, and handle them, over any broker; nothing is lost on the way.

    app = App("redis://127.0.0.1:6379", queue="orders")

    @app.handler("urn:babel:orders:created")
    def created(order: Order) -> None: ...

    app.publish("urn:babel:orders:created", Order(7))
    app.run()

Delivery is at least once: a message is acknowledged after its handler's outcome is settled. A
publish is the broker's when it returns. The URL's secrets are in no log line and no repr.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from threading import Event, Lock, Thread
from typing import Any, Final, Self, TypeVar

import msgspec

from tallystick.core.binding import project_as, read_options
from tallystick.core.envelope import Envelope, make
from tallystick.core.errors import UsageError
from tallystick.core.frame import Frame
from tallystick.core.transport import Transport, redact
from tallystick.runtime.address import Link, link_to
from tallystick.runtime.dead_letter import dead_letter_queue
from tallystick.runtime.execution import Execution
from tallystick.runtime.handlers import Handler, describe_handler
from tallystick.runtime.idempotency import Seen
from tallystick.runtime.ids import new_uuid
from tallystick.runtime.loop import Loop
from tallystick.runtime.redrive import Redriven, redrive
from tallystick.runtime.settings import Settings
from tallystick.runtime.settlement import Rules
from tallystick.runtime.shutdown import Signals
from tallystick.runtime.worker import Worker

__all__ = ["App"]

_F = TypeVar("_F", bound=Callable[..., Any])
_BATCH: Final = 500


class App:
    """Publish and handle messages over one broker."""

    def __init__(
        self,
        url: str,
        *,
        seen: Seen | None = None,
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
        self._seen: Final = seen
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
            if handler.urn in self._handlers:
                raise UsageError(f"two handlers for {handler.urn!r}", code="handler")
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
        """Publish one message and give its id; it is the broker's when this returns."""
        queue = queue or self.settings.queue
        envelope = self._make(urn, data, queue, trace_id)
        options: dict[str, Any] = {"headers": headers or {}, "key": key}
        if group:
            options["group"] = group
        if delay is not None:
            options |= {"delay": delay, "now": self._clock()}
        self._send(queue, [envelope], options)
        return str(envelope.meta.id if envelope.meta else "")

    def publish_all(self, messages: Iterable[tuple[str, Any]], *, queue: str = "") -> list[str]:
        """Publish many messages, `(urn, data)` each, in order and in batches; give their ids."""
        queue = queue or self.settings.queue
        ids: list[str] = []
        batch: list[Envelope] = []
        for urn, data in messages:
            batch.append(self._make(urn, data, queue, ""))
            if len(batch) == _BATCH:
                ids += self._send(queue, batch, {})
                batch = []
        return ids + self._send(queue, batch, {})

    def run(
        self,
        queues: Sequence[str] = (),
        *,
        limit: int | None = None,
        idle: float | None = None,
        signals: bool = True,
    ) -> Counter[str]:
        """Handle messages until stopped, `limit` are settled or nothing came for `idle` seconds.

        Gives how many ended in which way. With `signals`, SIGINT and SIGTERM stop it gracefully,
        and a second one at once.
        """
        self._stopping.clear()
        names = tuple(queues) or (self.settings.queue,)
        workers = [self._worker(name) for name in names]
        self._workers = tuple(worker for worker, _ in workers)
        failures: list[BaseException] = []
        threads = [
            Thread(
                target=_guarded,
                args=(worker, transport, limit, idle, failures),
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
        """Give how many messages ended in which way in this run, or in the last one."""
        return sum((worker.counts for worker in self._workers), Counter[str]())

    def redrive(self, queue: str = "", *, to: str = "", limit: int | None = None) -> Redriven:
        """Send the dead letters of a queue back to where they came from, or to another queue."""
        transport = self.link.open()
        try:
            graveyard = self._graveyard(queue or self.settings.queue)
            transport.ensure([graveyard, *([to] if to else [])])
            return redrive(self.link.binding, transport, graveyard, to=to, limit=limit)
        finally:
            transport.close()

    def stop(self) -> None:
        """Ask `run` to end gracefully; from any thread."""
        self._stopping.set()

    def close(self) -> None:
        """End the connection that publishes."""
        with self._lock:
            if self._publisher is not None:
                self._publisher.close()
                self._publisher = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _make(self, urn: str, data: Any, queue: str, trace_id: str) -> Envelope:
        return make(
            urn,
            _payload(data),
            now_ms=int(self._clock() * 1000),
            new_id=self._new_id,
            trace_id=trace_id,
            queue=queue,
        )

    def _send(self, queue: str, batch: list[Envelope], options: Mapping[str, Any]) -> list[str]:
        if not batch:
            return []
        with self._lock:
            if self._publisher is None:
                self._publisher = self.link.open()
            transport = self._publisher
            given = read_options({"queue": queue, **transport.capabilities.options, **options})
            binding = self.link.binding
            frames: list[Frame] = [project_as(binding, envelope, given) for envelope in batch]
            if queue not in self._known_queues:
                transport.ensure([queue])
                self._known_queues.add(queue)
            transport.send(queue, frames)
        return [str(envelope.meta.id if envelope.meta else "") for envelope in batch]

    def _worker(self, queue: str) -> tuple[Worker, Transport]:
        transport = self.link.open()
        rules = Rules(self.link.binding, transport.capabilities, self.settings)
        execution = Execution(
            rules, self._handlers, self._clock, self._loop.get, self._redact, self._seen
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
) -> None:
    """Run a worker, keep what it raises for the caller, and close its connection."""
    try:
        worker.run(limit=limit, idle=idle)
    except BaseException as error:  # noqa: BLE001 (raised again by the caller's thread)
        failures.append(error)
    finally:
        transport.close()


def _payload(data: Any) -> Mapping[str, Any]:
    if isinstance(data, msgspec.Struct) or is_dataclass(data):
        data = msgspec.to_builtins(data)
    if not isinstance(data, Mapping):
        raise UsageError(
            f"a payload is an object, not {type(data).__name__}",
            code="payload",
            hint="give a mapping, a dataclass or a msgspec struct",
        )
    return data
