"""The app's own laws, in memory; what brokers do is in tests/brokers/behaviour."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event, Thread, get_ident
from typing import Any
from weakref import ref

import msgspec
import pytest

from tallystick import App
from tallystick.core.errors import Unavailable, UsageError
from tallystick.core.frame import Frame
from tallystick.runtime.handlers import Message
from tallystick.runtime.idempotency import MemorySeen
from tallystick.runtime.retry import Backoff

URN = "urn:babel:orders:created"
AT_ONCE = Backoff()


@dataclass
class Order:
    id: int


class Parcel(msgspec.Struct):
    weight: float


def make_app(**settings: Any) -> App:
    return App("memory://", **{"queue": "orders", "backoff": AT_ONCE, **settings})


def received(app: App, queue: str) -> list[Frame]:
    transport = app.link.open()
    return [one.frame for one in transport.receive(queue, 100, 0)]


def test_a_message_reaches_the_handler_of_its_urn_and_no_other() -> None:
    app = make_app()
    seen: list[Any] = []
    app.handler(URN)(seen.append)
    app.handler("urn:babel:orders:paid")(lambda _: pytest.fail("another URN"))
    app.publish(URN, {"id": 7})
    assert app.run(idle=0.01) == {"handled": 1}
    assert seen == [{"id": 7}]


def test_a_batch_does_not_keep_the_payloads_of_messages_that_are_made() -> None:
    app = make_app()
    given: list[ref[Order]] = []
    alive: list[int] = []

    def orders() -> Iterator[tuple[str, Order]]:
        for number in range(5):
            order = Order(number)
            given.append(ref(order))
            yield URN, order
            del order
            alive.append(sum(one() is not None for one in given))

    assert len(app.publish_all(orders())) == 5
    assert max(alive) <= 2  # the first of a batch, and the one in hand
    assert [b'"id":%d}' % n in one.body for n, one in enumerate(received(app, "orders"))] == [
        True
    ] * 5


def test_the_payload_comes_as_the_type_that_the_handler_names() -> None:
    app = make_app()
    seen: list[Any] = []

    @app.handler("urn:one")
    def one(order: Order) -> None:
        seen.append(order)

    @app.handler("urn:two")
    async def two(parcel: Parcel, message: Message) -> None:
        seen.append((parcel, message.urn, message.attempts, message.queue))

    app.publish("urn:one", Order(7))
    app.publish("urn:two", Parcel(0.5))
    app.run(idle=0.01)
    assert seen == [Order(7), (Parcel(0.5), "urn:two", 0, "orders")]


def test_a_payload_that_does_not_fit_is_dead_lettered_without_a_retry() -> None:
    app = make_app()

    @app.handler(URN)
    def one(order: Order) -> None:
        pytest.fail(f"{order} is no order")

    app.publish(URN, {"id": "seven"})
    assert app.run(idle=0.01) == {"dead_lettered": 1}
    (frame,) = received(app, "orders.dlq")
    assert b'"reason":"failed"' in frame.body
    assert b"Expected `int`" in frame.body


def test_as_many_handlers_run_at_once_as_were_asked_for() -> None:
    app, met = make_app(concurrency=3), Event()
    running: set[int] = set()

    @app.handler(URN)
    def one(_: Any) -> None:
        running.add(get_ident())
        if len(running) == 3:
            met.set()
        assert met.wait(10)

    for _ in range(3):
        app.publish(URN, {})
    assert app.run(idle=0.01) == {"handled": 3}


def test_a_failed_message_is_tried_again_up_to_the_limit_then_dead_lettered() -> None:
    app, attempts = make_app(max_attempts=3), []

    @app.handler(URN)
    def one(_: Any, message: Message) -> None:
        attempts.append(message.attempts)
        raise ValueError("not today")

    app.publish(URN, {"v": 1.0})
    assert app.run(idle=0.01) == {"retried": 2, "dead_lettered": 1}
    assert attempts == [0, 1, 2]
    record = msgspec.json.decode(received(app, "orders.dlq")[0].body)
    assert record["attempts"] == record["dead_letter"]["attempts"] == 3
    assert record["dead_letter"]["error"] == "not today"
    assert record["dead_letter"]["exception"] == "builtins.ValueError"


def test_a_message_that_took_effect_is_skipped_but_one_that_failed_is_not() -> None:
    app, runs = make_app(seen=MemorySeen()), []

    @app.handler(URN)
    def one(data: Any) -> None:
        runs.append(data)
        if len(runs) == 1:
            raise ValueError("first")

    app.publish(URN, {})
    frame = received_copy(app)
    assert app.run(idle=0.01) == {"retried": 1, "handled": 1}
    app.link.open().send("orders", [frame])
    assert app.run(idle=0.01) == {"skipped": 1}
    assert len(runs) == 2


def received_copy(app: App) -> Frame:
    transport = app.link.open()
    (delivery,) = transport.receive("orders", 1, 0)
    transport.close()
    return delivery.frame


def test_stopping_finishes_what_runs_and_hands_back_what_does_not() -> None:
    app, began, order = make_app(), Event(), []

    @app.handler(URN)
    def one(data: Any) -> None:
        began.set()
        app.stop()
        order.append(data["n"])

    for number in range(5):
        app.publish(URN, {"n": number})
    counts = app.run()
    assert began.is_set()
    assert counts["handled"] + counts["handed_back"] == 5
    assert counts["handled"] >= 1
    while len(order) < 5:
        app.run(limit=1)
    assert order == [0, 1, 2, 3, 4]


def test_a_handler_that_outlives_the_shutdown_timeout_is_handed_back() -> None:
    app, end = make_app(shutdown_timeout=0.0), Event()

    @app.handler(URN)
    def one(_: Any) -> None:
        app.stop()
        end.wait(10)

    app.publish(URN, {})
    assert app.run() == {"handed_back": 1}
    end.set()
    assert len(received(app, "orders")) == 1


def test_a_second_signal_ends_the_program_at_once() -> None:
    program = """
import sys, threading
from tallystick import App
app = App("memory://")
@app.handler("urn:x")
def handle(data):
    print("began", flush=True)
    app._stopping.wait()
    print("stopping", flush=True)
    threading.Event().wait()
app.publish("urn:x", {})
app.run()
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"began\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == b"stopping\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 128 + signal.SIGTERM


def test_no_secret_is_in_a_repr_an_error_or_a_log(caplog: pytest.LogCaptureFixture) -> None:
    secret = "hunter2-hunter2"
    app = App(f"redis://user:{secret}@127.0.0.1:1/0?timeout=0.2")
    with caplog.at_level(logging.DEBUG), pytest.raises(Unavailable) as raised:
        app.publish(URN, {})
    said = f"{app!r} {app.link!r} {app.link.address} {raised.value} {raised.value.hint}"
    assert secret not in said + caplog.text
    with pytest.raises(UsageError) as wrong:
        App(f"nonsense://user:{secret}@host")
    assert secret not in str(wrong.value) + wrong.value.hint


@pytest.mark.parametrize(
    "settings",
    [{"concurrency": 0}, {"max_attempts": 0}, {"on_unknown_urn": "x"}, {"nonsense": 1}],
)
def test_a_setting_that_makes_no_sense_is_a_usage_error(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as raised:
        make_app(**settings)
    assert raised.value.code == "setting"


@pytest.mark.parametrize("url", ["", "redis", "nonsense://x", "memory://a/b", "redis://h:port"])
def test_a_url_that_makes_no_sense_is_a_usage_error(url: str) -> None:
    with pytest.raises(UsageError) as raised:
        App(url)
    assert raised.value.code == "url"


def test_two_handlers_for_one_urn_are_refused() -> None:
    app = make_app()
    app.handler(URN)(lambda _: None)
    with pytest.raises(UsageError):
        app.handler(URN)(lambda _: None)


def test_run_works_from_a_thread_that_is_not_the_main_one() -> None:
    app = make_app()
    seen: list[Any] = []
    app.handler(URN)(seen.append)
    app.publish(URN, {})
    thread = Thread(target=lambda: app.run(limit=1))
    thread.start()
    thread.join(10)
    assert seen == [{}]
