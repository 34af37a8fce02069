"""OpenTelemetry spans and metrics by the messaging conventions; off by default.

If telemetry is off, nothing of OpenTelemetry is imported and nothing is measured.

    App(url, telemetry=True)                              the providers of the process
    App(url, telemetry=Telemetry(tracers, meters))        other providers

    publish QUEUE   PRODUCER   its context is sent as `traceparent` (ADR-0028) with every message
    receive QUEUE   CLIENT     one per batch that is not empty; links to its messages
    process QUEUE   CONSUMER   one per run of a handler; child of the message's context

Without a usable header, the trace continues with the envelope's `trace_id` (ADR-0025): it is the id
of the trace, and the parent is a span that was never recorded. A message that is made inside a
trace takes its `trace_id` from it. The text of an exception is in no span: it may hold personal
data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from tallystick import __version__
from tallystick.core.binding import headers_of
from tallystick.core.envelope import Envelope
from tallystick.core.extras import importing
from tallystick.core.transport import Delivery
from tallystick.runtime.address import Link
from tallystick.runtime.reading import Reading
from tallystick.runtime.tracing import extract

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Link as TraceLink
    from opentelemetry.trace import Span, SpanContext, TracerProvider

__all__ = ["Probe", "Sending", "Telemetry", "current_trace", "open_probe"]

_SYSTEMS: Final = {"sqs": "aws_sqs", "artemis": "activemq", "memory": "tallystick_memory"}
_TRACE_ID: Final = re.compile(r"(?!0{32})[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Sending:
    """The fields that a publish adds to its messages: the id of the trace, and its headers."""

    trace_id: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    span: Any = field(default=None, repr=False)

    def describe(self, batch: Sequence[Envelope]) -> None:
        """Set the attributes of the sent message on the span."""
        if len(batch) != 1:
            self.span.set_attribute("messaging.batch.message_count", len(batch))
            return
        first = batch[0]
        self.span.set_attribute("messaging.message.id", first.meta.id if first.meta else "")
        self.span.set_attribute("messaging.message.conversation_id", first.trace_id or "")
        self.span.set_attribute("tallystick.message.urn", first.urn)


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The providers for spans and measurements; None means those of the process."""

    tracers: TracerProvider | None = None
    meters: MeterProvider | None = None


class Probe:
    """The tracer and the instruments, for one broker."""

    def __init__(self, telemetry: Telemetry, link: Link) -> None:
        from opentelemetry import metrics, trace  # noqa: PLC0415 (loads only when it is used)

        self._trace: Final = trace
        self._link: Final = link
        self._tracer: Final = (telemetry.tracers or trace.get_tracer_provider()).get_tracer(
            "tallystick", __version__
        )
        meter = (telemetry.meters or metrics.get_meter_provider()).get_meter(
            "tallystick", __version__
        )
        count, unit = meter.create_counter, "{message}"
        self._sent: Final = count(
            "messaging.client.sent.messages", unit, "messages that the broker confirmed"
        )
        self._consumed: Final = count("messaging.client.consumed.messages", unit, "received")
        self._failed: Final = count(
            "tallystick.failed.messages", unit, "messages not handled, by reason"
        )
        self._settled: Final = count(
            "tallystick.settled.messages", unit, "messages completed, by outcome"
        )
        self._in_flight: Final = meter.create_up_down_counter(
            "tallystick.in_flight.messages", unit, "messages received and not settled yet"
        )
        self._processing: Final = meter.create_histogram(
            "messaging.process.duration", "s", "duration of handlers"
        )

    @contextmanager
    def publishing(
        self, queue: str, messages: Sequence[Mapping[str, str]] = ()
    ) -> Iterator[Sending]:
        """Open the span of a publish, with links to messages that already have a context."""
        attributes = _attributes(self._link, queue, "publish", "send")
        kind = self._trace.SpanKind.CLIENT if messages else self._trace.SpanKind.PRODUCER
        links = self._links(messages)
        with self._span(f"publish {queue}", kind, attributes, links=links) as span:
            yield replace(current_trace(), span=span)

    def sent(self, queue: str, count: int, error: BaseException | None = None) -> None:
        """Count the messages that the broker confirmed, or rejected."""
        self._sent.add(count, {**_place(self._link, queue), **_failure(error)})

    def received(self, queue: str, deliveries: Sequence[Delivery], began: int) -> None:
        """Record the span of a receive that returned messages, with links to their contexts."""
        headers = [headers_of(self._link.binding, one.frame.sections) for one in deliveries]
        attributes = _attributes(self._link, queue, "receive", "receive")
        self._tracer.start_span(
            f"receive {queue}",
            kind=self._trace.SpanKind.CLIENT,
            attributes={**attributes, "messaging.batch.message_count": len(deliveries)},
            links=self._links(headers),
            start_time=began,
        ).end()
        self._consumed.add(len(deliveries), _place(self._link, queue))
        self._in_flight.add(len(deliveries), _place(self._link, queue))

    @contextmanager
    def processing(self, reading: Reading) -> Iterator[None]:
        """Open the span of one run of a handler, and measure its time."""
        envelope, queue = reading.envelope, reading.delivery.queue
        attributes = {
            **_attributes(self._link, queue, "process", "process"),
            "messaging.message.body.size": len(reading.delivery.frame.body),
            "tallystick.message.urn": reading.urn,
            "tallystick.message.attempts": reading.attempts,
        }
        trace_id = envelope.trace_id if envelope is not None else None
        headers = headers_of(self._link.binding, reading.delivery.frame.sections)
        if envelope is not None and envelope.meta is not None and envelope.meta.id:
            attributes["messaging.message.id"] = envelope.meta.id
        if trace_id:
            attributes["messaging.message.conversation_id"] = trace_id
        parent = self._parent(self._context(headers, trace_id))
        began, kind = perf_counter(), self._trace.SpanKind.CONSUMER
        failed: BaseException | None = None
        try:
            with self._span(f"process {queue}", kind, attributes, parent):
                yield
        except BaseException as error:
            failed = error
            raise
        finally:
            facts = {**_place(self._link, queue), **_failure(failed)}
            self._processing.record(perf_counter() - began, facts)

    def failed(self, queue: str, kind: str, exception: str | None) -> None:
        """Count a delivery that was not handled."""
        why = {"tallystick.failure": kind, "error.type": exception or kind}
        self._failed.add(1, {**_place(self._link, queue), **why})

    def settled(self, queue: str, outcome: str, number: int, *, stays: bool = False) -> None:
        """Count the outcomes of deliveries, and of runs whose message stays in the worker."""
        self._settled.add(number, {**_place(self._link, queue), "tallystick.outcome": outcome})
        self._in_flight.add(0 if stays else -number, _place(self._link, queue))

    def _links(self, messages: Sequence[Mapping[str, str]]) -> list[TraceLink]:
        contexts = [self._context(headers, None) for headers in messages]
        return [self._trace.Link(one) for one in contexts if one is not None]

    @contextmanager
    def _span(
        self,
        name: str,
        kind: Any,
        attributes: Mapping[str, Any],
        parent: Context | None = None,
        links: Sequence[TraceLink] = (),
    ) -> Iterator[Span]:
        with self._tracer.start_as_current_span(
            name,
            context=parent,
            kind=kind,
            attributes=attributes,
            links=links,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except BaseException as error:
                span.set_attribute("error.type", _name(error))
                span.set_status(self._trace.StatusCode.ERROR)
                raise

    def _context(self, headers: Mapping[str, str], trace_id: str | None) -> SpanContext | None:
        found = extract(headers.get("traceparent"), trace_id)
        if found.parent_span_id is not None:
            span, flags = int(found.parent_span_id, 16), int(found.flags or "0", 16)
            state = headers.get("tracestate", "")
        elif _TRACE_ID.fullmatch(found.trace_id_hex):
            span, flags, state = int(found.trace_id_hex[16:], 16) or 1, 1, ""
        else:
            return None
        return self._trace.SpanContext(
            int(found.trace_id_hex, 16),
            span,
            is_remote=True,
            trace_flags=self._trace.TraceFlags(flags),
            trace_state=self._trace.TraceState.from_header([state] if state else []),
        )

    def _parent(self, context: SpanContext | None) -> Context | None:
        if context is None:
            return None
        return self._trace.set_span_in_context(self._trace.NonRecordingSpan(context))


def current_trace() -> Sending:
    """Return the carrier of the current trace; nothing outside of a trace."""
    with importing("telemetry"):
        from opentelemetry import trace  # noqa: PLC0415 (loads only when it is used)
        from opentelemetry.trace.propagation import tracecontext  # noqa: PLC0415

    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return Sending()
    carrier: dict[str, str] = {}
    tracecontext.TraceContextTextMapPropagator().inject(carrier)
    text = f"{context.trace_id:032x}"
    trace_id = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
    return Sending(trace_id, carrier)


def open_probe(telemetry: bool | Telemetry, link: Link) -> Probe | None:
    """Create the instruments, or nothing if telemetry is off."""
    if not telemetry:
        return None
    with importing("telemetry"):
        return Probe(Telemetry() if telemetry is True else telemetry, link)


def _place(link: Link, queue: str) -> dict[str, str]:
    broker = link.address.broker
    return {
        "messaging.system": _SYSTEMS.get(broker, broker),
        "messaging.destination.name": queue,
    }


def _attributes(link: Link, queue: str, operation: str, kind: str) -> dict[str, Any]:
    address = link.address
    where: dict[str, Any] = {"server.address": address.host} if address.host else {}
    if address.port is not None:
        where["server.port"] = address.port
    return {
        **_place(link, queue),
        **where,
        "messaging.operation.name": operation,
        "messaging.operation.type": kind,
    }


def _failure(error: BaseException | None) -> dict[str, str]:
    return {} if error is None else {"error.type": _name(error)}


def _name(error: BaseException) -> str:
    kind = type(error)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else (f"{kind.__module__}.{kind.__qualname__}")
    )
