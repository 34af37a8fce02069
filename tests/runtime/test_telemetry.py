"""Spans and measurements, by the SDK's in-memory exporters; nothing when nobody asked for it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext, SpanKind, StatusCode

from tallystick import App
from tallystick.core.errors import Unavailable
from tallystick.runtime.outbox import Outbox
from tallystick.runtime.outbox.relay import Relay, Terms
from tallystick.runtime.retry import Backoff
from tallystick.runtime.telemetry import Telemetry, open_probe

URN = "urn:babel:orders:created"
NEXT = "urn:babel:orders:billed"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
OWN = "7b3f9c2a-e41d-4f88-9b2a-1c0d5e6f7a8b"


class Seen:
    """What was exported."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])
        self.telemetry = Telemetry(self.tracers, self.meters)

    def spans(self, operation: str = "") -> list[ReadableSpan]:
        found = sorted(self.exporter.get_finished_spans(), key=lambda one: one.start_time or 0)
        return [one for one in found if one.name.startswith(operation)]

    def points(self, name: str) -> list[Any]:
        data: Any = self.reader.get_metrics_data()
        return [
            point
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    def total(self, name: str, **wanted: str) -> Any:
        given = {key.replace("_", "."): value for key, value in wanted.items()}
        return sum(
            getattr(one, "value", getattr(one, "count", 0))
            for one in self.points(name)
            if given.items() <= one.attributes.items()
        )

    def close(self) -> None:
        self.tracers.shutdown()
        self.meters.shutdown()


@pytest.fixture
def seen() -> Iterator[Seen]:
    found = Seen()
    yield found
    found.close()


@pytest.fixture(params=["memory", "redis"])
def url(request: pytest.FixtureRequest, broker_url: Callable[[str], str]) -> str:
    return f"memory://{uuid4().hex}" if request.param == "memory" else broker_url("redis")


def make_app(url: str, seen: Seen | None, **settings: Any) -> App:
    telemetry: Any = seen.telemetry if seen else False
    given = {"queue": f"orders-{uuid4().hex}", "backoff": Backoff(), **settings}
    return App(url, telemetry=telemetry, **given)


def place(context: SpanContext | None) -> tuple[int, int]:
    assert context
    return context.trace_id, context.span_id


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_trace_goes_from_publish_to_process_and_on_to_the_next_message(
    url: str, seen: Seen
) -> None:
    app = make_app(url, seen)
    queue = app.settings.queue
    found: list[Any] = []

    @app.handler(URN)
    async def created(data: Any, message: Any) -> None:
        found.append(message)
        app.publish(NEXT, data)

    app.handler(NEXT)(lambda _: None)
    app.publish(URN, {"id": 7})
    assert app.run(limit=2) == {"handled": 2}
    app.close()
    first, second = seen.spans("publish")
    process, billed = seen.spans("process")
    assert first.parent is None
    assert place(process.parent) == place(first.context)
    assert place(second.parent) == place(process.context), "what a handler publishes is its child"
    assert place(billed.parent) == place(second.context)
    assert first.context
    assert process.parent
    assert process.parent.is_remote
    (message,) = found
    assert message.headers["traceparent"].startswith(f"00-{first.context.trace_id:032x}-")
    assert message.trace_id.replace("-", "") == f"{first.context.trace_id:032x}"
    assert (first.kind, process.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert (first.name, process.name) == (f"publish {queue}", f"process {queue}")
    receive = seen.spans("receive")
    linked = [link.context.span_id for one in receive for link in one.links]
    assert linked == [one.context.span_id for one in (first, second) if one.context]
    assert {one.kind for one in receive} == {SpanKind.CLIENT}


def test_attributes_follow_the_messaging_conventions(url: str, seen: Seen) -> None:
    app = make_app(url, seen)
    queue = app.settings.queue
    app.handler(URN)(lambda _: None)
    message_id = app.publish(URN, {"id": 7}, trace_id=OWN)
    app.publish_all([(URN, {"id": 8}), (URN, {"id": 9})])
    app.run(limit=3)
    app.close()
    common = {
        "messaging.system": "redis" if url.startswith("redis") else "tallystick_memory",
        "messaging.destination.name": queue,
    }
    one, batch = map(attributes, seen.spans("publish"))
    assert (
        one.items()
        >= {
            **common,
            "messaging.operation.name": "publish",
            "messaging.operation.type": "send",
            "messaging.message.id": message_id,
            "messaging.message.conversation_id": OWN,
        }.items()
    )
    assert batch["messaging.batch.message_count"] == 2
    assert "messaging.message.id" not in batch
    process = attributes(seen.spans("process")[0])
    assert (
        process.items()
        >= {
            **common,
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.message.id": message_id,
            "tallystick.message.urn": URN,
            "tallystick.message.attempts": 0,
        }.items()
    )
    assert process["messaging.message.body.size"] > 0
    received = [attributes(span) for span in seen.spans("receive")]
    assert sum(span["messaging.batch.message_count"] for span in received) == 3
    if url.startswith("redis"):
        assert {"server.address", "server.port"} <= process.keys()


def test_what_came_of_the_messages_is_counted_and_handlers_are_timed(url: str, seen: Seen) -> None:
    app = make_app(url, seen, max_attempts=2)

    @app.handler(URN)
    def created(data: Any) -> None:
        if data["id"] == 7:
            raise ValueError("a text that no span may show")

    for number in (7, 8, 9):
        app.publish(URN, {"id": number})
    app.publish("urn:unknown", {})
    counts = app.run(limit=6)
    app.close()
    assert counts == {"handled": 2, "retried": 2, "dead_lettered": 2}
    assert seen.total("messaging.client.sent.messages") == 4
    assert seen.total("messaging.client.consumed.messages") == 6
    for outcome, number in counts.items():
        assert seen.total("tallystick.settled.messages", tallystick_outcome=outcome) == number
    assert seen.total("tallystick.failed.messages", tallystick_failure="failed") == 2
    assert seen.total("tallystick.failed.messages", error_type="builtins.ValueError") == 2
    assert seen.total("messaging.process.duration") == 4
    assert seen.total("messaging.process.duration", error_type="ValueError") == 2
    assert seen.total("tallystick.in_flight.messages") == 0
    failed = [span for span in seen.spans("process") if not span.status.is_ok]
    assert len(failed) == 2
    for span in failed:
        assert span.status.status_code is StatusCode.ERROR
        assert attributes(span)["error.type"] == "ValueError"
    assert not any("no span may show" in span.to_json() for span in seen.spans())


def test_in_flight_counts_what_is_not_settled_yet(seen: Seen) -> None:
    app = make_app(f"memory://{uuid4().hex}", seen)
    during: list[Any] = []
    app.handler(URN)(lambda _: during.append(seen.total("tallystick.in_flight.messages")))
    app.publish(URN, {})
    app.run(limit=1)
    assert during == [1]


@pytest.mark.parametrize(
    ("headers", "trace", "parent"),
    [
        ({"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "a=b"}, TRACE, SPAN),
        ({"traceparent": f"00-{TRACE.upper()}-{SPAN}-01"}, OWN.replace("-", ""), None),
        ({}, OWN.replace("-", ""), None),
    ],
)
def test_a_trace_of_another_program_is_continued_by_header_else_by_trace_id(
    url: str, seen: Seen, headers: dict[str, str], trace: str, parent: str | None
) -> None:
    app = make_app(url, seen)
    app.handler(URN)(lambda _: None)
    plain = make_app(url, None, queue=app.settings.queue)
    plain.publish(URN, {}, headers=headers, trace_id=OWN)
    app.run(limit=1)
    app.close()
    plain.close()
    (span,) = seen.spans("process")
    assert span.context
    assert span.parent
    assert f"{span.context.trace_id:032x}" == trace
    assert span.parent.is_remote
    if parent:
        assert f"{span.parent.span_id:016x}" == parent
        assert span.context.trace_state.get("a") == "b"
    else:
        (receive,) = seen.spans("receive")
        assert not receive.links, "a link leads to a span that exists"


def test_a_message_that_belongs_to_no_trace_starts_one(seen: Seen) -> None:
    app = make_app(f"memory://{uuid4().hex}", seen)
    app.handler(URN)(lambda _: None)
    plain = App(f"memory://{app.link.address.host}", queue=app.settings.queue)
    plain.publish(URN, {}, trace_id="order 7")
    app.run(limit=1)
    (span,) = seen.spans("process")
    assert span.parent is None


def test_a_traceparent_of_the_callers_own_is_not_replaced(seen: Seen) -> None:
    app = make_app(f"memory://{uuid4().hex}", seen)
    found: list[Any] = []

    @app.handler(URN)
    def created(data: Any, message: Any) -> None:
        found.append(message.headers["traceparent"])

    app.publish(URN, {}, headers={"traceparent": f"00-{TRACE}-{SPAN}-01"})
    app.run(limit=1)
    assert found == [f"00-{TRACE}-{SPAN}-01"]


def test_a_publish_that_fails_is_told_on_its_span(seen: Seen) -> None:
    app = make_app("redis://127.0.0.1:1/0?timeout=0.2", seen)
    with pytest.raises(Unavailable):
        app.publish(URN, {})
    (span,) = seen.spans("publish")
    assert span.status.status_code is StatusCode.ERROR
    kind = "tallystick.core.errors.Unavailable"
    assert attributes(span)["error.type"] == kind
    assert seen.total("messaging.client.sent.messages", error_type=kind) == 1


def test_a_trace_goes_through_the_outbox(seen: Seen, tmp_path: Path) -> None:
    app = make_app(f"memory://{uuid4().hex}", seen)
    app.handler(URN)(lambda _: None)
    with closing(Outbox(f"sqlite:///{tmp_path}/o.db", telemetry=True)) as outbox:
        outbox.create()
        tracer = seen.tracers.get_tracer("test")
        with (
            closing(sqlite3.connect(tmp_path / "o.db")) as connection,
            tracer.start_as_current_span("checkout") as checkout,
        ):
            outbox.add(connection, URN, {}, queue=app.settings.queue)
            connection.commit()
        probe = open_probe(seen.telemetry, app.link)
        assert Relay(outbox, app.link, Terms(), probe).step().sent == 1
    app.run(limit=1)
    (process,), (relayed,) = seen.spans("process"), seen.spans("publish")
    mine = checkout.get_span_context()
    assert process.parent
    assert process.parent.span_id == mine.span_id
    assert [link.context.span_id for link in relayed.links] == [mine.span_id]
    assert seen.total("messaging.client.sent.messages") == 1


def test_nothing_is_imported_unless_telemetry_is_asked_for() -> None:
    program = (
        "import sys\nfrom tallystick import App\napp = App('memory://')\n"
        "app.handler('urn:a')(lambda _: None)\napp.publish('urn:a', {})\napp.run(limit=1)\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_the_process_s_own_providers_are_the_default() -> None:
    app = App(f"memory://{uuid4().hex}", telemetry=True)
    app.handler(URN)(lambda _: None)
    app.publish(URN, {})
    assert app.run(limit=1) == {"handled": 1}
