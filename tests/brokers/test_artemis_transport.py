"""What is Artemis's own: links that end, and objects that stay with their thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from proton import Timeout

from tallystick.brokers.artemis.tap import drain
from tallystick.brokers.artemis.transport import ArtemisTransport
from tallystick.core.errors import Unavailable
from tallystick.core.frame import Frame
from tallystick.core.transport import Address, Delivery
from tallystick.runtime.address import link_to


def refuse() -> Any:
    raise ConnectionRefusedError("nobody listens")


def test_a_delivery_of_a_link_that_is_gone_is_lost_also_while_the_broker_is_away() -> None:
    transport = ArtemisTransport(
        Address("artemis", "artemis"), refuse, timeout=1, credit=1, heartbeat=1
    )
    with pytest.raises(Unavailable) as told:
        transport.leave(Delivery(Frame(b"{}"), "orders", (0, 1)))
    assert told.value.code == "delivery_lost"


def test_no_object_of_the_client_leaves_with_a_delivery(broker_url: Callable[[str], str]) -> None:
    queue = f"own-{uuid4().hex}"
    transport = link_to(broker_url("artemis")).open()
    try:
        transport.send(queue, [Frame(b"{}")])
        (delivery,) = transport.receive(queue, 1, 60.0)
        assert [type(one) for one in delivery.handle] == [int, int]
        transport.ack([delivery])
        with pytest.raises(Unavailable) as told:
            transport.ack([delivery])  # it is no longer out
        assert told.value.code == "delivery_lost"
    finally:
        transport.close()


class Forgetful:
    """A link and its connection, to a broker that lets so many drains fall before it answers."""

    def __init__(self, deaf: int, timeout: float) -> None:
        self.credit = 0
        self.timeout = timeout
        self.asked: list[int] = []
        self._deaf = deaf

    def drain(self, credit: int) -> None:
        self.asked.append(credit)
        self.credit += credit
        if len(self.asked) > self._deaf:
            self.credit = 0

    def wait(self, condition: Callable[[], bool], *, timeout: float) -> None:
        if not condition():
            raise Timeout(f"nothing for {timeout} s")


def test_a_drain_that_is_not_answered_is_asked_again_for_no_more_credit() -> None:
    broker = Forgetful(deaf=2, timeout=60.0)
    drain(broker, broker)
    assert broker.asked == [200, 0, 0]


def test_a_drain_is_not_asked_for_longer_than_a_call_may_take() -> None:
    broker = Forgetful(deaf=2, timeout=0.0)
    with pytest.raises(Timeout):
        drain(broker, broker)
    assert broker.asked == [200]
