"""What is RabbitMQ's own: a queue that is not there, a lost connection, a refused login."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any
from uuid import uuid4

import pika  # type: ignore[import-untyped]
import pytest

from tallystick import App
from tallystick.core.errors import Unavailable, UsageError
from tallystick.core.frame import Frame
from tallystick.core.transport import Delivery, Transport
from tallystick.runtime.address import link_to

pytestmark = pytest.mark.xdist_group("brokers")

URN = "urn:babel:orders:created"


def test_a_message_that_no_queue_takes_is_an_error(broker_url: Callable[[str], str]) -> None:
    transport = link_to(broker_url("rabbitmq")).open()
    with pytest.raises(Unavailable, match="there is no queue"):
        transport.send(f"nobody-{uuid4().hex}", [Frame(b"{}"), Frame(b"{}")])
    transport.close()


def test_a_delivery_of_an_old_connection_cannot_be_settled_and_comes_back(
    broker_url: Callable[[str], str],
) -> None:
    transport = link_to(broker_url("rabbitmq")).open()
    queue = f"tally-{uuid4().hex}"
    transport.ensure([queue])
    transport.send(queue, [Frame(b"{}")])
    (old,) = transport.receive(queue, 1, 10)
    transport.close()
    (new,) = transport.receive(queue, 1, 10)
    with pytest.raises(Unavailable) as raised:
        transport.ack([old])
    assert raised.value.code == "delivery_lost"
    transport.ack([new])
    transport.close()


def test_a_wrong_password_is_one_line_without_the_password(
    broker_url: Callable[[str], str],
) -> None:
    _, _, place = broker_url("rabbitmq").rpartition("@")
    place = place.removeprefix("amqp://")
    transport = link_to(f"amqp://guest:hunter2hunter2@{place}").open()
    with pytest.raises(Unavailable) as raised:
        transport.ensure(["x"])
    assert "hunter2" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_unknown_kind_of_queue_is_refused() -> None:
    with pytest.raises(UsageError):
        link_to("amqp://127.0.0.1?queue_type=stream")


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_what_is_kept_back_does_not_stop_the_queue(
    broker_url: Callable[[str], str], kind: str
) -> None:
    transport = link_to(f"{broker_url('rabbitmq')}?prefetch=5&queue_type={kind}").open()
    queue = f"tally-{uuid4().hex}"
    transport.ensure([queue])
    transport.send(queue, [Frame(b"%d" % n) for n in range(20)])
    kept = take(transport, queue, 20)
    assert [int(one.frame.body) for one in kept] == list(range(20))
    transport.ack(kept[:12])
    transport.leave(kept[12])
    (back,) = take(transport, queue, 1)
    assert back.frame.body == b"12"
    transport.ack([back, *kept[13:]])
    transport.close()
    assert transport.receive(queue, 1, 1.0) == []
    transport.close()


def take(transport: Transport, queue: str, count: int) -> list[Delivery]:
    taken: list[Delivery] = []
    end = monotonic() + 60
    while len(taken) < count:
        assert monotonic() < end, f"{len(taken)} of {count} came"
        taken += transport.receive(queue, count - len(taken), 0.5)
    return taken


def test_what_cannot_be_settled_comes_again_over_the_same_connection(
    broker_url: Callable[[str], str],
) -> None:
    url, queue = f"{broker_url('rabbitmq')}?prefetch=1", f"tally-{uuid4().hex}"
    app = App(url, queue=queue, max_attempts=1, dead_letter_queue=f"{queue}-dead", prefetch=0)
    other = link_to(url).open()
    runs: list[int] = []

    @app.handler(URN)
    def handle(data: Any) -> None:
        runs.append(data["n"])
        if len(runs) == 1:
            with pika.BlockingConnection(pika.URLParameters(broker_url("rabbitmq"))) as broker:
                broker.channel().queue_delete(f"{queue}-dead")
        elif len(runs) == 2:
            other.ensure([f"{queue}-dead"])
        raise ValueError("no")

    app.publish(URN, {"n": 1})
    counts = app.run(limit=2)
    app.close()
    assert counts == {"unsettled": 1, "dead_lettered": 1}
    assert runs == [1, 1]
    (dead,) = take(other, f"{queue}-dead", 1)
    other.ack([dead])
    other.close()
