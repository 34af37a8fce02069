"""What is RabbitMQ's own: a queue that is not there, a lost connection, a refused login."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest

from tallystick.core.errors import Unavailable, UsageError
from tallystick.core.frame import Frame
from tallystick.runtime.address import link_to

pytestmark = pytest.mark.xdist_group("brokers")


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
