"""While messages wait nothing else does: not heartbeats, not the queue, not what was taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from threading import Event, Timer
from typing import Any
from uuid import uuid4

import pulsar  # type: ignore[import-untyped]
import pytest
from botocore.exceptions import EndpointConnectionError  # type: ignore[import-untyped]

from tallystick import App
from tallystick.brokers.pulsar.transport import PulsarTransport
from tallystick.brokers.sqs.transport import SqsTransport
from tallystick.core.errors import Unavailable
from tallystick.core.frame import Frame
from tallystick.core.transport import Address, Transport
from tallystick.runtime.retry import Backoff
from tallystick.runtime.worker import _BUSY

pytestmark = pytest.mark.xdist_group("brokers")

URN = "urn:babel:orders:created"
WAVE = 250


def test_a_handler_of_artemis_may_take_longer_than_the_connection_may_be_idle(
    broker_url: Callable[[str], str],
) -> None:
    app = App(f"{broker_url('artemis')}?heartbeat=3", queue=f"tally-{uuid4().hex}", prefetch=0)
    never = Event()
    app.handler(URN)(lambda _: never.wait(9))
    app.publish(URN, {"n": 1})
    assert app.run(limit=1) == {"handled": 1}
    app.publish(URN, {"n": 2})
    app.close()


@pytest.mark.parametrize(
    ("server", "options"),
    [("rabbitmq", ""), ("redis", ""), ("sqs", "?fifo=1"), ("kafka", "?group={0}&reinject=0")],
)
def test_a_wave_of_failures_does_not_stop_the_queue(
    broker_url: Callable[[str], str], server: str, options: str
) -> None:
    queue = f"tally-{uuid4().hex}" + (".fifo" if server == "sqs" else "")
    url = broker_url(server)
    url += options.format(queue).replace("?", "&") if "?" in url else options.format(queue)
    app = App(url, queue=queue, backoff=Backoff(3600, 1, 3600), concurrency=4)
    seen: set[int] = set()
    patience = Timer(60, app.stop)
    patience.start()

    @app.handler(URN)
    def handle(data: Any) -> None:
        seen.add(data["n"])
        if len(seen) > WAVE:
            app.stop()
        if data["n"] < WAVE:
            raise ValueError("not now")

    for n in range(WAVE + 1):
        app.publish(URN, {"n": n}, key=str(n))
    app.run()
    app.close()
    patience.cancel()
    assert seen == set(range(WAVE + 1))


class Notes:
    """A sink that remembers what went by."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Frame]] = []

    def record(
        self, direction: str, _broker: str, _queue: str, _at: int, frames: Sequence[Frame]
    ) -> None:
        self.seen += [(direction, frame) for frame in frames]

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("server", ["servicebus", "artemis", "pulsar"])
def test_the_copy_that_waits_at_the_broker_is_captured_with_its_attempts(
    broker_url: Callable[[str], str], server: str
) -> None:
    notes = Notes()
    settings: dict[str, Any] = {"on_unknown_urn": "release", "release_delay": 0.1}
    app = App(broker_url(server), queue=f"tally-{uuid4().hex}", capture=notes, **settings)
    app.publish(URN, {"n": 1})
    assert app.run(limit=2) == {"released": 2}
    app.close()
    assert [direction for direction, _ in notes.seen] == [
        "sent", "received", "sent", "received", "sent",
    ]  # fmt: skip
    assert len({frame.body for _, frame in notes.seen}) == 1


class Faltering:
    """A client that hands out some messages and then fails, until it is well again."""

    def __init__(self, messages: int, error: Exception) -> None:
        self._left = messages
        self.error: Exception | None = error

    def take(self, most: int) -> int:
        if not self._left and self.error is not None:
            raise self.error
        given = min(most, self._left)
        self._left -= given
        return given


class Consumer(Faltering):
    """As pulsar-client's."""

    def subscribe(self, *_: Any, **__: Any) -> Consumer:
        return self

    def receive(self, _timeout: int) -> Any:
        if not self.take(1):
            raise pulsar.Timeout("none")
        return PulsarMessage()


class PulsarMessage:
    def properties(self) -> dict[str, str]:
        return {}

    def redelivery_count(self) -> int:
        return 0

    def message_id(self) -> str:
        return "an id"

    def data(self) -> bytes:
        return b"{}"


class Client(Faltering):
    """As boto3's."""

    def get_queue_url(self, **_: Any) -> dict[str, str]:
        return {"QueueUrl": "here"}

    def get_queue_attributes(self, **_: Any) -> dict[str, Any]:
        return {"Attributes": {"VisibilityTimeout": "30"}}

    def receive_message(self, **asked: Any) -> dict[str, Any]:
        count = self.take(asked["MaxNumberOfMessages"])
        return {"Messages": [{"Body": "{}", "ReceiptHandle": "r"} for _ in range(count)]}


def faltering_pulsar() -> tuple[Transport, Faltering]:
    consumer = Consumer(33, pulsar.ConnectError("cut"))
    return PulsarTransport(Address("pulsar", "pulsar"), lambda: consumer, 1.0), consumer


def faltering_sqs() -> tuple[Transport, Faltering]:
    client = Client(20, EndpointConnectionError(endpoint_url="cut"))
    return SqsTransport(Address("sqs", "sqs", "eu"), client), client


@pytest.mark.parametrize("make", [faltering_pulsar, faltering_sqs])
def test_what_was_taken_before_a_failure_is_handed_out(
    make: Callable[[], tuple[Transport, Faltering]],
) -> None:
    transport, client = make()
    assert len(transport.receive("orders", 100, 0.01)) in (20, 33)
    with pytest.raises(Unavailable):
        transport.receive("orders", 100, 0.01)
    client.error = None
    assert transport.receive("orders", 100, 0.01) == []


def test_a_busy_worker_asks_sqs_less_and_less_often_and_at_once_when_told_to_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, asked = [0.0], list[float]()

    class Clock:
        def monotonic(self) -> float:
            return now[0]

        def sleep(self, seconds: float) -> None:
            now[0] += seconds

    class Empty(Client):
        def receive_message(self, **_: Any) -> dict[str, Any]:
            asked.append(now[0])
            return {}

    monkeypatch.setattr("tallystick.brokers.sqs.transport.time", Clock())
    transport = SqsTransport(Address("sqs", "sqs", "eu"), Empty(0, OSError()))
    while now[0] < 10:
        assert transport.receive("orders", 10, _BUSY) == []
    assert len(asked) < 20
    assert max(later - earlier for earlier, later in pairwise(asked)) < 1.1
    for timeout, more in ((1.0, 1), (0, 1), (0.3, 1), (0.03, 1), (_BUSY, 0)):
        before = len(asked)
        assert transport.receive("orders", 10, timeout) == []
        assert len(asked) == before + more, timeout
